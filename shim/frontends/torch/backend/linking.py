"""Registering the backend with torch, and keeping torch's record of groups and the frontend's as one."""

from __future__ import annotations

from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch.backend import making
from shim.frontends.torch.backend.group import EngineGroup
from shim.frontends.torch.backend.own_record import OwnRecord

__all__ = ["link", "make_group"]


def link() -> None:
    """From now on, a group that torch's own ``torch.distributed`` or the frontend makes is one to both."""
    if registry.torch_world() is None:
        registry.keep_in_step(OwnRecord(EngineGroup))


def make_group(asked: object, options: object) -> ProcessGroup:
    """Make the group that torch has *asked* the backend for."""
    link()
    return making.make_group(asked, options)
