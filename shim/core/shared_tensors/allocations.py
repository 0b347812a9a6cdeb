"""What the frameworks themselves allocate, in memory that the other ranks can read where it is.

numpy has an interface for that. torch's and Paddle's tensors come from ``posix_memalign`` and go to ``free``, both called
from one of the framework's libraries; for that library the two are replaced, once. Which allocations then go to shared
memory is decided by what the calling thread has asked for.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from shim._native import hook_aligned_allocations, is_shared, set_array_allocator, share_allocations
from shim.core.job.variables import Variables, checked_bytes
from shim.core.tensors import framework_of
from shim.errors import ArgumentError, EngineError, TensorError, UnsupportedError

LEAST = 32 * 1024  # bytes, of which collectives make use
_LIBRARIES = {"torch": "libc10.so", "paddle": "libphi_core.so"}
_hooked: set[str] = set()


def chosen_to_share(variables: Variables) -> int:
    """Return from how many bytes on ``SHIM_SHARED_ALLOCATIONS`` has what is allocated shared, 0 where nothing.

    Raises ArgumentError for what is neither ``on``, ``off`` nor a number of bytes from 1 on.
    """
    text = variables.get("SHIM_SHARED_ALLOCATIONS") or "off"
    if text in ("on", "off"):
        return LEAST if text == "on" else 0
    return checked_bytes("SHIM_SHARED_ALLOCATIONS", text, "on, off")


def share_from_now_on(at_least: int) -> None:
    """Send what this thread allocates to shared memory, as ``shim.shared_allocations`` does, until it ends; nothing where *at_least* is 0."""
    if at_least > 0:
        _share(at_least)


@contextmanager
def shared_allocations(at_least: int) -> Iterator[None]:
    """Send what this thread allocates to shared memory; see ``shim.shared_allocations``."""
    try:
        threshold = operator.index(at_least)
    except TypeError:
        threshold = 0
    if not 0 < threshold <= sys.maxsize:
        raise ArgumentError(f"shim.shared_allocations: at_least must be a positive number of bytes, got {at_least!r}")
    with _share(threshold):
        yield


def _share(at_least: int) -> ExitStack:
    """Begin to share, and return what undoes it."""
    for framework in _LIBRARIES:
        if framework in sys.modules:
            _hook("shared_allocations", framework)
    with ExitStack() as undone:
        undone.callback(share_allocations, share_allocations(at_least))
        if "numpy" in sys.modules:
            array_api = _array_api()
            undone.callback(set_array_allocator, array_api, set_array_allocator(array_api, None))
        return undone.pop_all()


def _array_api() -> object:
    """Return the table of numpy's C functions."""
    module = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    return module._ARRAY_API


def _hook(function: str, framework: str) -> None:
    """Hook the allocations of *framework*, and see whether its tensors are among them."""
    if framework in _hooked:
        return
    if hook_aligned_allocations(_LIBRARIES[framework]):
        before = share_allocations(1)
        try:
            probe, address = _PROBES[framework]()
        finally:
            share_allocations(before)
        if is_shared(address, 1):
            _hooked.add(framework)
        del probe
    if framework not in _hooked:
        raise UnsupportedError(
            f"shim.{function}: this version of {framework} allocates its tensors in an unknown way\n"
            "Make those that are communicated with shim.empty."
        )


_PROBED = 4096  # bytes


def _probe_torch() -> tuple[object, int]:
    storage = sys.modules["torch"].UntypedStorage(_PROBED, device="cpu")  # a tensor might be of some mode's kind
    return storage, storage.data_ptr()


def _probe_paddle() -> tuple[object, int]:
    paddle = sys.modules["paddle"]
    tensor = paddle.base.core.DenseTensor()  # which programs that build static graphs make too
    tensor.set(sys.modules["numpy"].zeros(_PROBED, "uint8"), paddle.CPUPlace())
    return tensor, tensor._ptr()


_PROBES: dict[str, Callable[[], tuple[object, int]]] = {"torch": _probe_torch, "paddle": _probe_paddle}


def move_to_shared_memory(holder: Any) -> None:
    """Move a torch tensor, or all that a module holds; see ``shim.move_to_shared_memory``."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(holder, (torch.Tensor, torch.nn.Module)):
        told = framework_of(type(holder))
        if told in ("numpy", "paddle", "mindspore"):
            raise UnsupportedError(
                f"shim.move_to_shared_memory: {told}'s tensors cannot be moved\n"
                "Make them inside shim.shared_allocations, or with shim.empty."
            )
        raise ArgumentError(
            f"shim.move_to_shared_memory: holder must be a torch tensor or module, got a {type(holder).__name__}"
        )
    _hook("move_to_shared_memory", "torch")
    tensors = [holder] if isinstance(holder, torch.Tensor) else [*holder.parameters(), *holder.buffers()]
    gradients = [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    storages = [_storage_to_move(tensor) for tensor in tensors + gradients]
    before = share_allocations(1)
    try:
        for storage in storages:
            _move(storage)
    finally:
        share_allocations(before)


def _storage_to_move(tensor: Any) -> Any:
    """Return the memory of *tensor*, having checked all that can be known before anything is moved."""
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise TensorError(
            "shim.move_to_shared_memory: tensors must be dense and in host memory,"
            f" got layout {tensor.layout} on {tensor.device}"
        )
    storage = tensor.untyped_storage()
    # Torch takes a mapping for resizable.
    if (storage.is_shared() or not storage.resizable()) and not _is_shared(storage):
        raise UnsupportedError(
            "shim.move_to_shared_memory: tensors must not share memory with a numpy array, a file or another process\n"
            "Pass a clone of the tensor."
        )
    return storage


def _move(storage: Any) -> None:
    if storage.nbytes() > 0 and not _is_shared(storage):
        storage.resize_(storage.nbytes())  # allocates anew and copies; all tensors that have this storage follow
        if not _is_shared(storage):
            raise EngineError(f"shim.move_to_shared_memory: cannot reserve {storage.nbytes()} bytes of shared memory")


def _is_shared(storage: Any) -> bool:
    return is_shared(storage.data_ptr(), storage.nbytes())
