"""One engine behind the collective-communication APIs of PyTorch, PaddlePaddle and MindSpore.

Put ``shim.frontends.`` in front of a framework's import path and its code runs on this engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "empty", "explain", "move_to_shared_memory", "shared_allocations", "survivors"]


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


def shared_allocations(at_least: int = 32 * 1024) -> AbstractContextManager[None]:
    """Return a context in which tensors of *at_least* that many bytes are allocated in memory that the other ranks can read where it is.

    It holds for the calling thread, and for all that torch, Paddle and numpy allocate on the host, whichever of their functions does it: tensors that
    a program makes, results of operators, parameters and gradients. Frameworks have to be imported before. Contexts may be nested; a smaller or
    larger *at_least* holds inside. Where there is not enough shared memory, or too many files are open, tensors get ordinary memory, and are
    communicated as ever. Tensors may outlive the context. ``SHIM_SHARED_ALLOCATIONS=on`` does the same for a program as it is, from the
    initialisation of its world on. See docs/shared_tensors.md.

    Raises: ArgumentError for a wrong *at_least*; UnsupportedError where an imported framework allocates in some unknown way.
    """
    from shim.core import shared_allocations as allocations  # as below

    return allocations.shared_allocations(at_least)


def move_to_shared_memory(holder: Any) -> None:
    """Move the memory of *holder*, a torch tensor or module, to where the other ranks can read it, in place.

    Of a module, its parameters, their gradients and its buffers are moved; of a tensor, its gradient too. Views and all other tensors that share the
    memory follow; what has its address in other ways must not be used any more. What is there already stays.

    Raises: ArgumentError for what is neither; TensorError for tensors that are not dense or not on the host; UnsupportedError for tensors of other
    frameworks, and where a numpy array or a file has the same memory; EngineError when there is not enough memory.
    """
    from shim.core import shared_allocations as allocations  # as below

    allocations.move_to_shared_memory(holder)


def explain() -> str:
    """Tell which engine serves each group this process knows, why, and with which thresholds; one line for each group."""
    from shim.core import explanations  # the engine is loaded by those who use it, not by `shim --help`

    return "\n".join(explanations.of_groups()) or "The world is not initialised: no engine is in use."


def survivors() -> list[int]:
    """Return the ranks of the world whose processes have neither died nor left it, as far as this process knows; it is one of them.

    After a PeerLostError the world cannot be used any more, while its survivors can make a group of their own, with a function that its members
    alone call: torch's ``shrink_group``, or ``new_group`` with ``use_local_synchronization=True``, and MindSpore's ``create_group``. See docs/reliability.md.

    Raises: StateError before initialisation.
    """
    from shim.core import groups  # as above

    return groups.survivors()
