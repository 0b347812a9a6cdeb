"""Meeting at a URL, at torch's signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._stores import url_handlers

_RENDEZVOUS = torch_function("rendezvous")
_REGISTER = torch_function("register_rendezvous_handler")


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[tuple[Any, int, int]]:
    """Return what yields a store, a rank and a world size for *url*, which *rank* and *world_size* are added to.

    *kwargs*, such as ``timeout`` (a timedelta), go to the handler of the scheme: ``env``, ``tcp``, ``file`` or a registered one.
    Raises: RuntimeError for a scheme without a handler; AssertionError for a rank or size that is also in *url*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#tcp-initialization
    """
    return url_handlers.meet(_RENDEZVOUS, url, rank, world_size, kwargs)


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[tuple[Any, int, int]]]) -> None:
    """Let *handler*, a generator function of a URL that yields a store, a rank and a world size, serve *scheme*.

    ``init_process_group`` then takes an *init_method* of that scheme, and gives the handler its ``timeout``, a timedelta.
    Raises: RuntimeError where *scheme* has a handler.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.register_rendezvous_handler
    """
    url_handlers.register(_REGISTER, scheme, handler)
