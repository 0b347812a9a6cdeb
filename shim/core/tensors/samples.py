"""Tensors of the frameworks by which the engine finds where their C++ objects hold what it would have to ask of every one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

_COUNTS = (41, 3, 17, 29, 7)  # of the samples


class Sample(NamedTuple):
    """A tensor, where its framework's C++ object for it lies, and what a guard's method says of it."""

    tensor: Any
    address: int
    answer: bool


class Versions(NamedTuple):
    """How a framework counts the times that a tensor was written in place, by which its autograd sees that a value it kept has changed.

    ``rise`` raises a tensor's number by one, ``read`` returns it. Where the numbers of ``samples`` show where they stand in memory, all tensors'
    are raised there.
    """

    rise: Callable[[Any], object]
    read: Callable[[Any], int]
    samples: Sequence[Any] = ()


class Memory(NamedTuple):
    """How the memory of a framework's tensors is held, whatever becomes of them: by what ``hold`` returns of one.

    Where that may still be told to give the memory back, ``samples`` of such objects show which bit forbids it.
    """

    hold: Callable[[Any], object]
    samples: Sequence[Sample] = ()


def samples_of_is_neg() -> list[Sample]:
    """Return tensors, some negative and some not, that differ in other ways independently of that; none where torch makes no plain ones.

    The negative ones come in no regular order: an address that grows from one to the next must not look like an answer. The program's own
    modes, which may count operations or refuse them, see nothing of it.
    """
    torch = sys.modules["torch"]
    made = []
    try:
        with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction():
            made += [torch.zeros(3, device="cpu"), torch.ones(2, 2, dtype=torch.int64, device="cpu").t()]
            for number in range(32):
                dtype = torch.complex128 if number & 1 else torch.complex64
                numbers = torch.zeros(2 + number, dtype=dtype, device="cpu", requires_grad=bool(number & 2))
                part = (numbers.conj() if number.bit_count() % 2 else numbers).imag
                made.append(part[1:] if number & 4 else part.detach() if number & 8 else part)
            is_plain = all(type(tensor) is torch.Tensor for tensor in made)
            return [Sample(tensor, tensor._cdata, tensor.is_neg()) for tensor in made] if is_plain else []
    except Exception:  # of a torch without these names, or in a mode that cannot be turned off: every tensor is asked
        return []


@cache
def torch_versions() -> Versions:
    """Return how torch counts. (Its own function takes half a microsecond.)"""
    torch = sys.modules["torch"]
    rise = torch.autograd.graph.increment_version
    made: list[Any] = []
    try:
        disabled = torch.utils._python_dispatch._disable_current_modes()
        with disabled, torch._C.DisableTorchFunction(), torch.inference_mode(False):
            for count in _COUNTS:
                made.append(torch.zeros(3, device="cpu"))
                rise([made[-1]] * count)
            is_plain = all(type(tensor) is torch.Tensor for tensor in made)
    except Exception:  # as above
        is_plain = False
    return Versions(rise, lambda tensor: int(tensor._version), made if is_plain else ())


@cache
def paddle_versions() -> Versions:
    """Return how paddle counts."""
    paddle = sys.modules["paddle"]
    made = [paddle.zeros([3]) for _ in _COUNTS] if paddle.in_dynamic_mode() else []
    for tensor, count in zip(made, _COUNTS, strict=False):
        for _ in range(count):
            tensor._bump_inplace_version()
    return Versions(paddle.Tensor._bump_inplace_version, lambda tensor: int(tensor.inplace_version), made)


@cache
def mindspore_versions() -> Versions | None:
    """Return how MindSpore counts, if it does. Where it records no gradient, nobody will ask for the number.

    Its objects do not all hold their numbers at the same place, so that there are no samples.
    """
    set_versions: Any = getattr(sys.modules["mindspore._c_expression"], "_unsafe_set_version_counter", None)
    executor: Any = getattr(sys.modules.get("mindspore.graph.api"), "_pynative_executor", None)
    if set_versions is None or executor is None:
        return None
    is_recording = executor._executor.requires_grad  # past its wrapper in Python

    def rise(tensor: Any) -> None:
        if is_recording():
            set_versions([tensor], [tensor._version + 1])

    return Versions(rise, lambda tensor: int(tensor._version))


@cache
def torch_memory() -> Memory:
    """Hold torch's storages, which cannot be resized meanwhile. (An array that ``numpy()`` makes meanwhile no longer forbids it afterwards.)"""
    torch = sys.modules["torch"]
    samples = []

    def hold(tensor: Any) -> Any:
        with torch._C.DisableTorchFunction():  # the program's own modes and subclasses see nothing of it
            return torch.Tensor.untyped_storage(tensor)

    try:
        with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction():
            for number in range(32):
                tensor = torch.zeros(2 + number, device="cpu")
                if number.bit_count() % 2:
                    tensor.numpy()  # makes its storage one that cannot be resized
                storage = hold(tensor)
                samples.append(Sample(storage, storage._cdata, storage.resizable()))
    except Exception:  # as in samples_of_is_neg
        samples = []
    return Memory(hold, samples)


@cache
def paddle_memory() -> Memory:
    """Hold paddle's allocations as other frameworks do that a tensor is exported to."""
    return Memory(sys.modules["paddle"].utils.dlpack.to_dlpack)


@cache
def mindspore_memory() -> Memory | None:
    """Hold MindSpore's storages, which can still be told to give their memory back."""
    hold = getattr(sys.modules["mindspore"].Tensor, "untyped_storage", None)
    return None if hold is None else Memory(hold)
