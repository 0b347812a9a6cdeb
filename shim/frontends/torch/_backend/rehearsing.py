"""torch's own ``init_process_group`` in a rehearsal, where no other rank is met."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from shim.core.job import stores
from shim.core.job.rehearsal import job_of
from shim.core.job.variables import Variables, rehearsed_size

_SCHEMES = ("env", "file", "tcp")
_kept: list[Any] = []  # stores, of which torch's C++ code keeps no more than its own half


def meet_nobody() -> None:
    """Have ranks that meet at an address be alone with a store of the rehearsal's."""
    from torch.distributed.rendezvous import _rendezvous_handlers  # torch lets nobody replace its own ones otherwise

    _rendezvous_handlers.update(dict.fromkeys(_SCHEMES, _alone))


def _alone(url: str, *_: Any, **__: Any) -> Iterator[tuple[Any, int, int]]:
    from shim.frontends.torch._backend.store import EngineStore  # here: this module comes while torch is being imported

    place, query = url.partition("?")[::2]
    said = dict(parse_qsl(query))
    rank, size = (int(said[name]) if said.get(name, "").isdigit() else None for name in ("rank", "world_size"))
    variables = Variables(os.environ)
    job = job_of(rank, size, rehearsed_size(variables), variables)
    store = EngineStore(lambda: stores.LocalStore(f"rehearsal at {place}"))
    _kept.append(store)
    yield store, job.rank, job.size
