"""``mindspore.communication.management``, where older programs import these from."""

from __future__ import annotations

from shim.frontends.mindspore.communication import *  # noqa: F403  # all that it lists
from shim.frontends.mindspore.communication import __all__ as _names

__all__ = [*_names]
