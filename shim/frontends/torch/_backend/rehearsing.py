"""torch's own ``init_process_group`` in a rehearsal, where no other rank is met."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from shim.core.job import stores
from shim.core.job.rehearsal import job_of
from shim.core.job.variables import Variables, rehearsed_size

_SCHEMES = ("env", "file", "tcp")


def meet_nobody() -> None:
    """Have ranks that meet at an address be alone with a store of the rehearsal's."""
    from torch.distributed.rendezvous import _rendezvous_handlers  # torch lets nobody replace its own ones otherwise

    _rendezvous_handlers.update(dict.fromkeys(_SCHEMES, _alone))


def _alone(url: str, *_: Any, **__: Any) -> Iterator[tuple[Any, int, int]]:
    from shim.frontends.torch._backend.store import EngineStore  # here: this module comes while torch is being imported

    variables = Variables(os.environ)
    job = job_of(None, None, rehearsed_size(variables), variables)
    yield EngineStore(lambda: stores.LocalStore(f"rehearsal at {url}")), job.rank, job.size
