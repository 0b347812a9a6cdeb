"""Any framework's tensor: how the engine reads it.

Frameworks are recognised by the module of a tensor's type and found in ``sys.modules``; none is ever imported here.
The engine asks ``reader_for`` once per type and remembers the answer, so the usual tensors are read by C functions alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from shim.core.tensors.elements import Elements
from shim.core.tensors.hollow import hollow_address, is_taken
from shim.core.tensors.kinds_of_devices import EXTENSION, name_in_torch
from shim.core.tensors.samples import (
    Memory,
    Sample,
    Versions,
    mindspore_memory,
    mindspore_versions,
    paddle_memory,
    paddle_versions,
    samples_of_is_neg,
    torch_memory,
    torch_versions,
)
from shim.core.tensors.unreadable import why_not_dense, why_not_here
from shim.errors import TensorError

__all__ = [
    "Access",
    "Description",
    "Guard",
    "InPlace",
    "Reader",
    "describe_mindspore",
    "dtype_name",
    "framework_of",
    "name_of_mindspore_dtype",
    "reader_for",
]

_CUDA, _EXTENSION = 2, 12  # by DLPack's numbers
_HOST = (1, 0)  # as DLPack numbers devices: a type, and which one of it


class Description(NamedTuple):
    """Where a tensor's elements are. ``strides`` counts elements, ``device`` is as DLPack numbers them; ``owner`` keeps the memory alive."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: tuple[int, int]
    read_only: bool
    owner: Any


class Access(NamedTuple):
    """How C++ reads a framework's tensors: by descriptors of their class, of which ``initializer`` gives None once there is
    memory, and by functions of the tensor. ``device`` is None where the host is the only one, ``data_ptr`` waits for the framework's operators.
    """

    initializer: Any
    device: Any
    dtype: Any
    shape: Any
    is_contiguous: Callable[[Any], bool]
    data_ptr: Callable[[Any], int]
    dtype_name: Callable[[Any], str]


class InPlace(NamedTuple):
    """How C++ reads the C fields of numpy's arrays: by the objects ``dtypes``, of which all arrays of a dtype have the same one. What it reads of
    ``samples`` has to be what their buffers say; where it is not, all arrays' buffers are read.
    """

    dtypes: Sequence[Any]
    samples: Sequence[Any]


class Guard(NamedTuple):
    """A method without arguments that must answer False, and the message for the user when it does not; ``only_complex`` where it
    is not asked of real elements.

    Where the answers to the ``samples`` show which bit of a tensor's C++ object they come from, that is read in the method's place. They have
    the tensor's type or one that it is derived from, whose objects begin alike.
    """

    method: str
    message: str
    only_complex: bool
    samples: Sequence[Sample] = ()


class Reader(NamedTuple):
    """How to read tensors of one type.

    ``way`` is one of

    - ``exchange``: the C functions of the capsule ``exchange``;
    - ``buffer``: what the object exports, and must not resize meanwhile;
    - ``array``: a buffer too, which is given back at once, as a reference to the object holds the memory as well as that; with
      ``in_place``, the C fields of numpy's arrays instead;
    - ``dlpack``: the ``__dlpack__`` method;
    - ``attributes``: those that ``access`` names; what is not contiguous in host memory is described;
    - ``describe``: the function ``describe`` from a tensor to its Description, which is also tried when another way fails: it reads
      more, or says better what is wrong.

    No tensor is read of which a guard says yes. ``versions`` says how one is told to have been written, ``memory`` how its memory is held,
    ``stream`` which stream of its device is current, where ``exchange`` does not.
    """

    way: str
    exchange: Any = None
    describe: Callable[[Any], Description] | None = None
    guards: Sequence[Guard] = ()
    access: Access | None = None
    in_place: InPlace | None = None
    versions: Versions | None = None
    memory: Memory | None = None
    stream: Callable[[], int] | None = None


_IS_CONJ = Guard(
    "is_conj", "{role} must not be a conjugate view\nPass tensor.resolve_conj(), and read the result there.", True
)
_IS_NEG = Guard(
    "is_neg", "{role} must not be a negative view\nPass tensor.resolve_neg(), and read the result there.", False
)


def _framework_of(kind: type) -> str:
    """Return the top-level module of *kind* or of the first of its bases that is a framework's tensor, or ''."""
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        if root in _FRAMEWORKS:
            return root
    return ""


framework_of: Callable[[type], str] = cache(_framework_of)  # which keeps the types alive, as the engine does


def dtype_name(tensor: Any) -> str:
    """Return what the engine calls the dtype of *tensor*, a tensor of any framework."""
    if framework_of(type(tensor)) == "mindspore":
        return name_of_mindspore_dtype(tensor.dtype)
    return str(tensor.dtype).rpartition(".")[2]


def reader_for(kind: type) -> Reader:
    """Choose how tensors of type *kind* are read. Raises TensorError for what is no tensor."""
    if issubclass(kind, type):
        raise TensorError("{role} must be a tensor, got a class\nPass an object of it.")
    framework = framework_of(kind)
    if framework in _READERS:
        return _READERS[framework](kind)
    if kind is Elements:
        return Reader("describe", describe=_describe_elements)
    exchange = getattr(kind, "__dlpack_c_exchange_api__", None)
    if exchange is not None:
        return Reader("exchange", exchange)
    if hasattr(kind, "__dlpack__"):
        return Reader("dlpack")
    if issubclass(kind, (bytearray, memoryview)) or kind.__module__ == "array":
        return Reader("buffer")
    raise TensorError(
        f"{{role}} must be a tensor, got {kind.__module__}.{kind.__qualname__}\n"
        "Tensors of numpy, torch, paddle, mindspore and cupy work, any object with __dlpack__, bytearray, memoryview and array.array."
    )


def _cupy_reader(kind: type) -> Reader:
    if not issubclass(kind, sys.modules["cupy"].ndarray):
        raise TensorError(f"{{role}} must be an array, got {kind.__qualname__}")
    return Reader("describe", describe=_describe_cupy, stream=_stream_of_cupy)


def _stream_of_cupy() -> int:
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)


def _describe_cupy(array: Any) -> Description:
    """Read an array of CuPy by its address: its ``__dlpack__`` tells no stream."""
    if any(one % array.itemsize for one in array.strides):
        raise TensorError(
            "{role} has strides that are not a multiple of its element size\nPass a copy of it, and read the result there."
        )
    strides = tuple(one // array.itemsize for one in array.strides)
    return Description(array.data.ptr, str(array.dtype), array.shape, strides, (_CUDA, array.device.id), False, array)


def _describe_elements(elements: Elements) -> Description:
    read_only = elements.memory.readonly
    return Description(elements.address, elements.dtype, (elements.count,), None, _HOST, read_only, elements.memory)


def _torch_reader(kind: type[Any]) -> Reader:
    torch, of_torch = sys.modules["torch"], (torch_versions(), torch_memory())
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)  # torch has it since 2.10
    if kind in (torch.Tensor, torch.nn.Parameter) and exchange is not None:
        guards = (_IS_CONJ, _IS_NEG._replace(samples=samples_of_is_neg()))
        return Reader("exchange", kind.__dlpack_c_exchange_api__, _describe_torch, guards, None, None, *of_torch)
    # A subclass may hold its elements elsewhere, or nowhere, without its C functions saying so; these tell the stream all the same.
    stream = _stream_of_torch if exchange is None else None
    return Reader("describe", exchange, _describe_torch, (_IS_CONJ, _IS_NEG), None, None, *of_torch, stream)


def _stream_of_torch() -> int:
    return int(sys.modules["torch"].cuda.current_stream().cuda_stream)


def _describe_torch(tensor: Any) -> Description:
    if hasattr(tensor, "trigger_wait"):  # the AsyncCollectiveTensor of torch's functional collectives
        tensor = tensor.trigger_wait()
    why = why_not_dense(tensor)
    if not why and is_taken(tensor):
        return _describe_hollow(tensor)
    if why := why or why_not_here(tensor):
        raise TensorError(why)
    address = tensor.data_ptr()
    if address == 0 and tensor.numel() > 0:
        raise TensorError(
            f"{{role}} has no memory of its own, got a {type(tensor).__name__}\nPass a plain torch.Tensor, and read the result there."
        )
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Description(
        address, dtype, tuple(tensor.shape), tuple(tensor.stride()), _device_of_torch(tensor), False, tensor
    )


def _describe_hollow(tensor: Any) -> Description:
    dtype, shape = str(tensor.dtype).removeprefix("torch."), tuple(map(int, tensor.shape))
    address = hollow_address(tensor.numel() * tensor.element_size())
    return Description(address, dtype, shape, tuple(map(int, tensor.stride())), _HOST, False, tensor)


def _device_of_torch(tensor: Any) -> tuple[int, int]:
    device = tensor.device
    if device.type == "cpu":
        return _HOST
    if device.type == name_in_torch(EXTENSION):  # which torch's own method does not know
        return (_EXTENSION, device.index or 0)
    kind, number = tensor.__dlpack_device__()
    return (int(kind), int(number))


def _paddle_reader(kind: type[Any]) -> Reader:
    exchange = getattr(kind, "__dlpack_c_exchange_api__", None)  # paddle has it since 3.3
    way = "describe" if exchange is None else "exchange"
    return Reader(way, exchange, _describe_paddle, (), None, None, paddle_versions(), paddle_memory())


def _describe_paddle(tensor: Any) -> Description:
    if not tensor.is_dense():
        raise TensorError(
            "{role} must be dense, got a sparse tensor\nPass tensor.to_dense(), and read the result there."
        )
    place = tensor.place
    is_read_so = not hasattr(type(tensor), "__dlpack_c_exchange_api__")
    if not is_read_so or not (place.is_cpu_place() or place.is_gpu_place()):
        raise TensorError(f"{{role}} cannot be carried, got a tensor of dtype {tensor.dtype} on {place}")
    where = _HOST if place.is_cpu_place() else (_CUDA, int(place.gpu_device_id()))
    shape, strides = tuple(tensor.shape), tuple(tensor.strides)
    address = tensor.data_ptr() or 0  # None of an empty one, in paddle 2
    return Description(address, dtype_name(tensor), shape, strides, where, False, tensor)


def _mindspore_reader(kind: type) -> Reader:
    if not issubclass(kind, sys.modules["mindspore"].Tensor):
        raise TensorError(f"{{role}} must be a dense tensor, got {kind.__qualname__}")
    access = _mindspore_access(sys.modules["mindspore"].Tensor)
    of_mindspore = (mindspore_versions(), mindspore_memory(), _stream_of_mindspore)
    return Reader("attributes", None, describe_mindspore, (), access, None, *of_mindspore)


def _stream_of_mindspore() -> int:
    """MindSpore's streams on a GPU are non-blocking, so that nothing that is put on another one comes before or after their work."""
    raise TensorError(
        "{role} is a tensor of MindSpore on a GPU, whose stream cannot be told\nSet SHIM_STAGE=host for all ranks, or pass tensors of torch or CuPy."
    )


@cache
def _mindspore_access(tensor: Any) -> Access:
    """Reach past MindSpore's wrappers in Python, of which each would cost as much as the whole reading."""
    in_cpp = tensor.__mro__[1]
    # As mindspore.device_context's is_available() does, which logs warnings where a device is missing.
    context = sys.modules["mindspore._c_expression"].MSContext.get_instance()
    has_others = any(map(context.is_pkg_support_device, ("Ascend", "GPU")))
    return Access(
        initializer=in_cpp.init,
        device=in_cpp.device if has_others else None,
        dtype=in_cpp._dtype,
        shape=in_cpp._shape,
        is_contiguous=in_cpp.is_contiguous,
        data_ptr=in_cpp._data_ptr,
        dtype_name=name_of_mindspore_dtype,
    )


def describe_mindspore(tensor: Any) -> Description:
    """Read a MindSpore tensor, which has no DLPack methods, by its address.

    A lazily initialised one has no address before ``init_data``; ``stride()`` counts elements, whereas ``strides`` is
    wrong for transposed views, and ``asnumpy`` copies views. Operators run behind the caller's back, and one that was
    issued before may still be reading or writing this memory: ``data_ptr`` first waits for all of them.
    """
    if tensor.has_init:
        tensor.init_data()
    kind, _, number = tensor.device.partition(":")
    if kind not in _MINDSPORE_DEVICES:
        raise TensorError(f"{{role}} must be in host memory, got device {tensor.device}\nMove it with .to('CPU').")
    where = (_MINDSPORE_DEVICES[kind], int(number or 0))
    dtype = name_of_mindspore_dtype(tensor.dtype)
    strides = None if tensor.is_contiguous() else tuple(tensor.stride())
    return Description(tensor.data_ptr(), dtype, tuple(tensor.shape), strides, where, False, tensor)


_MINDSPORE_DEVICES = {"CPU": 1, "GPU": 2, "Ascend": 12}  # by DLPack's numbers; 12 is for those that have none


def name_of_mindspore_dtype(dtype: Any) -> str:
    return str(dtype).lower().replace("float8e", "float8_e")


def _numpy_reader(kind: type) -> Reader:
    if not issubclass(kind, sys.modules["numpy"].ndarray):
        raise TensorError(
            f"{{role}} must be an array, got {kind.__module__}.{kind.__qualname__}\nPass numpy.array(value), and read the result there."
        )
    if issubclass(kind, sys.modules["numpy"].ma.MaskedArray):
        raise TensorError(
            "{role} must be a plain array, got a masked one, whose mask would be lost\nPass array.filled(), and read the result there."
        )
    is_plain = kind is sys.modules["numpy"].ndarray  # a subclass may export another buffer
    return Reader("array", None, _describe_numpy, in_place=_numpy_in_place() if is_plain else None)


def _numpy_in_place() -> InPlace:
    numpy = sys.modules["numpy"]
    dtypes = [numpy.dtype(character) for character in "?bBhHiIlLqQefdFD"]
    written, read_only = numpy.zeros((2, 4), "float32")[:, 1:], numpy.zeros(3, "int16")
    read_only.flags.writeable = False
    return InPlace(dtypes, (written, read_only))


def _describe_numpy(array: Any) -> Description:
    """Read an array that has no buffer: its dtype comes from an extension such as ml_dtypes."""
    dtype = array.dtype
    is_known = dtype.isnative and dtype.itemsize > 0 and dtype.kind not in "mMOSU" and dtype.char not in "gG"
    if not is_known or dtype.fields is not None or dtype.type is sys.modules["numpy"].void:
        is_of_numbers = dtype.kind not in "OSUV"
        hint = (
            "Pass array.astype(...), and read the result there."
            if is_of_numbers
            else "Use a function for Python objects."
        )
        raise TensorError(f"{{role}} has elements that cannot be carried: dtype {dtype}\n{hint}")
    steps = [stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1]
    if array.size > 0 and any(step % array.itemsize for step in steps):
        raise TensorError(
            "{role} has strides that are not a multiple of its element size\nPass a copy of it, and read the result there."
        )
    interface = array.__array_interface__
    address, read_only = interface["data"]
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Description(address, dtype.name, array.shape, strides, _HOST, read_only, array)


_READERS: dict[str, Callable[[type], Reader]] = {
    "numpy": _numpy_reader,
    "torch": _torch_reader,
    "paddle": _paddle_reader,
    "mindspore": _mindspore_reader,
    "cupy": _cupy_reader,
}
_FRAMEWORKS = frozenset(_READERS)
