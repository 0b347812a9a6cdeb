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
    """Return a new tensor of *shape* and *dtype* in shared memory, which the other ranks read in place.

    Collectives on such tensors, and on views of them, copy once instead of twice. You may call this before or after the
    world is initialised. *dtype* is a name ("float32", "bfloat16") or a framework's own dtype; by default, it is that of the
    tensor *like*. *like* chooses the kind of tensor: a tensor, or "numpy" (the default), "torch", "paddle" or "mindspore".
    All elements are zero. The memory is given back when the last tensor that refers to it is gone. See docs/shared_tensors.md.

    Raises: ArgumentError for a wrong shape, dtype or like; UnsupportedError for a dtype that the framework does not have;
    StateError if that framework is not imported; EngineError if there is not enough memory or too many files are open.
    """
    from shim.core.shared_tensors.new_tensors import new_shared  # as below

    return new_shared(shape, dtype, like)


def shared_allocations(at_least: int = 32 * 1024) -> AbstractContextManager[None]:
    """Return a context in which tensors of *at_least* that many bytes are allocated in shared memory.

    It covers the allocations of the calling thread by torch, Paddle and numpy on the host, whichever of their functions
    allocates: new tensors, results of operators, parameters and gradients. Import the frameworks before. You may nest contexts:
    the *at_least* of the inner one counts. If shared memory or files run out, tensors get ordinary memory. Tensors may outlive
    the context. ``SHIM_SHARED_ALLOCATIONS=on`` does the same in an unchanged program, once its world is initialised. See
    docs/shared_tensors.md.

    Raises: ArgumentError for a wrong *at_least*; UnsupportedError if an imported framework allocates in an unknown way.
    """
    from shim.core.shared_tensors import allocations as allocations  # as below

    return allocations.shared_allocations(at_least)


def move_to_shared_memory(holder: Any) -> None:
    """Move the memory of *holder*, a torch tensor or module, to shared memory, in place.

    A module moves with its parameters, their gradients and its buffers; a tensor with its gradient. Views and other tensors
    of the same memory follow. Addresses that you have taken before become invalid. Memory that is already shared stays.

    Raises: ArgumentError if *holder* is neither; TensorError for tensors that are not dense or not on the host;
    UnsupportedError for tensors of other frameworks, and for memory that a numpy array or a file shares; EngineError if there
    is not enough memory.
    """
    from shim.core.shared_tensors import allocations as allocations  # as below

    allocations.move_to_shared_memory(holder)


def explain() -> str:
    """Return a line for each group of this process: its engine and the reason, its thresholds, and its lost ranks."""
    from shim.core.groups import all_groups  # the engine is loaded by those who use it, not by `shim --help`

    return (
        "\n".join(group.explanation() for group in all_groups()) or "The world is not initialised: no engine is in use."
    )


def survivors() -> list[int]:
    """Return the ranks of the world that have neither died nor left, as far as this process knows, including its own.

    After a PeerLostError the world cannot be used any more. Its survivors can create a new group with a function that only
    its members call: torch's ``shrink_group``, or ``new_group`` with ``use_local_synchronization=True``, or MindSpore's
    ``create_group``. See docs/reliability.md.

    Raises: StateError before initialisation.
    """
    from shim.core import groups  # as above

    return groups.survivors()
