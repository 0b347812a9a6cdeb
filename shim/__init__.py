"""One engine behind the collective-communication APIs of PyTorch, PaddlePaddle and MindSpore.

Put ``shim.frontends.`` in front of a framework's import path and its code runs on this engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "empty", "explain"]


def empty(shape: int | Sequence[int], dtype: Any = None, like: Any = None) -> Any:
    """Return a new tensor of *shape* and *dtype* in memory that the other ranks can read where it is.

    Collectives on such tensors copy once instead of twice; nothing else has to be done for it, before or after the world is
    initialised, and views of the tensor have it too. *dtype* is a name ("float32", "bfloat16") or a framework's own. *like* says whose tensor
    it is: a tensor, or one of the names "numpy", "torch", "paddle" and "mindspore"; numpy's without it. Without *dtype*, it is that of the tensor *like*.
    All elements are zero at first. The memory is given back when the last tensor that refers to it has gone. See docs/shared_tensors.md.

    Raises: ArgumentError for a wrong shape, dtype or like; UnsupportedError for a dtype that the framework does not have;
    StateError where that framework is not imported; EngineError when there is not enough memory or too many files are open.
    """
    from shim.core.shared_tensors import new_shared  # as below

    return new_shared(shape, dtype, like)


def explain() -> str:
    """Tell which engine serves each group this process knows, why, and with which thresholds; one line for each group."""
    from shim.core import groups  # the engine is loaded by those who use it, not by `shim --help`

    return "\n".join(groups.explanations()) or "The world is not initialised: no engine is in use."
