"""Any framework's tensor: how an engine reads it, and how to make another one like it."""

from __future__ import annotations

from shim.core.tensors.new_tensors import *  # noqa: F403  # all that it lists
from shim.core.tensors.new_tensors import __all__ as _new_tensors
from shim.core.tensors.readers import *  # noqa: F403  # all that it lists
from shim.core.tensors.readers import __all__ as _readers

__all__ = [*_new_tensors, *_readers]
