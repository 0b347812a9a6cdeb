"""Any framework's tensor: how the engine reads it, and how to make another one like it.

Frameworks are recognised by the module of a tensor's type and found in ``sys.modules``; none is ever imported here.
The engine asks ``reader_for`` once per type and remembers the answer, so the usual tensors are read by C functions alone.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from shim._native import has_repeated
from shim.errors import TensorError

__all__ = [
    "Access",
    "Description",
    "Guard",
    "InPlace",
    "Reader",
    "Sample",
    "copy_of",
    "dtype_name",
    "framework_of",
    "has_repeated",
    "new_like",
    "reader_for",
    "why_not_dense",
]

_HOST = 1  # DLPack's kDLCPU


class Description(NamedTuple):
    """Where a tensor's elements are. ``strides`` counts elements; ``owner`` keeps the memory alive."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device_type: int
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


class Sample(NamedTuple):
    """A tensor, where its framework's C++ object for it lies, and what a guard's method says of it."""

    tensor: Any
    address: int
    answer: bool


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

    No tensor is read of which a guard says yes.
    """

    way: str
    exchange: Any = None
    describe: Callable[[Any], Description] | None = None
    guards: Sequence[Guard] = ()
    access: Access | None = None
    in_place: InPlace | None = None


_IS_CONJ = Guard("is_conj", "{role} must not be a conjugate view\nPass tensor.resolve_conj().", True)
_IS_NEG = Guard("is_neg", "{role} must not be a negative view\nPass tensor.resolve_neg().", False)


def framework_of(kind: type) -> str:
    """Return the top-level module of *kind* or of the first of its bases that is a framework's tensor, or ''."""
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        if root in _FRAMEWORKS:
            return root
    return ""


def dtype_name(tensor: Any) -> str:
    """Return what the engine calls the dtype of *tensor*, a tensor of any framework."""
    if framework_of(type(tensor)) == "mindspore":
        return _name_of_mindspore_dtype(tensor.dtype)
    return str(tensor.dtype).rpartition(".")[2]


def reader_for(kind: type) -> Reader:
    """Choose how tensors of type *kind* are read. Raises TensorError for what is no tensor."""
    if issubclass(kind, type):
        raise TensorError("{role} must be a tensor, got a class\nPass an object of it.")
    framework = framework_of(kind)
    if framework in _READERS:
        return _READERS[framework](kind)
    exchange = getattr(kind, "__dlpack_c_exchange_api__", None)
    if exchange is not None:
        return Reader("exchange", exchange)
    if hasattr(kind, "__dlpack__"):
        return Reader("dlpack")
    if issubclass(kind, (bytearray, memoryview)) or kind.__module__ == "array":
        return Reader("buffer")
    raise TensorError(
        f"{{role}} must be a tensor, got {kind.__module__}.{kind.__qualname__}\n"
        "Tensors of numpy, torch, paddle and mindspore work, any object with __dlpack__, bytearray, memoryview and array.array."
    )


def _torch_reader(kind: type[Any]) -> Reader:
    torch = sys.modules["torch"]
    if kind in (torch.Tensor, torch.nn.Parameter):
        guards = (_IS_CONJ, _IS_NEG._replace(samples=_samples_of_is_neg()))
        return Reader("exchange", kind.__dlpack_c_exchange_api__, _describe_torch, guards)
    # A subclass may hold its elements elsewhere, or nowhere, without its C functions saying so.
    return Reader("describe", None, _describe_torch, (_IS_CONJ, _IS_NEG))


def _samples_of_is_neg() -> list[Sample]:
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


def why_not_dense(tensor: Any) -> str:
    """Return what to say of a torch tensor whose elements do not lie in plain memory, '' of one whose do."""
    if tensor.is_nested:
        return "{role} must be dense, got a nested tensor\nPass the tensors of tensor.unbind()."
    if tensor.layout is not sys.modules["torch"].strided:
        return f"{{role}} must be dense, got layout {tensor.layout}\nPass tensor.to_dense()."
    return ""


def _describe_torch(tensor: Any) -> Description:
    if hasattr(tensor, "trigger_wait"):  # the AsyncCollectiveTensor of torch's functional collectives
        tensor = tensor.trigger_wait()
    if why := why_not_dense(tensor):
        raise TensorError(why)
    if tensor.device.type != "cpu":
        raise TensorError(f"{{role}} must be in host memory, got device {tensor.device}\nMove it with .cpu().")
    address = tensor.data_ptr()
    if address == 0 and tensor.numel() > 0:
        raise TensorError(
            f"{{role}} has no memory of its own, got a {type(tensor).__name__}\nPass a plain torch.Tensor."
        )
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Description(address, dtype, tuple(tensor.shape), tuple(tensor.stride()), _HOST, False, tensor)


def _paddle_reader(kind: type[Any]) -> Reader:
    return Reader("exchange", kind.__dlpack_c_exchange_api__, _describe_paddle)


def _describe_paddle(tensor: Any) -> Description:
    if not tensor.is_dense():
        raise TensorError("{role} must be dense, got a sparse tensor\nPass tensor.to_dense().")
    if not tensor.place.is_cpu_place():
        raise TensorError(f"{{role}} must be in host memory, got {tensor.place}\nMove it with .cpu().")
    raise TensorError(f"{{role}} cannot be carried, got a tensor of dtype {tensor.dtype}")


def _mindspore_reader(kind: type) -> Reader:
    if not issubclass(kind, sys.modules["mindspore"].Tensor):
        raise TensorError(f"{{role}} must be a dense tensor, got {kind.__qualname__}")
    return Reader("attributes", None, _describe_mindspore, (), _mindspore_access(sys.modules["mindspore"].Tensor))


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
        dtype_name=_name_of_mindspore_dtype,
    )


def _describe_mindspore(tensor: Any) -> Description:
    """Read a MindSpore tensor, which has no DLPack methods, by its address.

    A lazily initialised one has no address before ``init_data``; ``stride()`` counts elements, whereas ``strides`` is
    wrong for transposed views, and ``asnumpy`` copies views. Operators run behind the caller's back, and one that was
    issued before may still be reading or writing this memory: ``data_ptr`` first waits for all of them.
    """
    if tensor.has_init:
        tensor.init_data()
    if not tensor.device.startswith("CPU"):
        raise TensorError(f"{{role}} must be in host memory, got device {tensor.device}\nMove it with .to('CPU').")
    dtype = _name_of_mindspore_dtype(tensor.dtype)
    strides = None if tensor.is_contiguous() else tuple(tensor.stride())
    return Description(tensor.data_ptr(), dtype, tuple(tensor.shape), strides, _HOST, False, tensor)


def _name_of_mindspore_dtype(dtype: Any) -> str:
    return str(dtype).lower().replace("float8e", "float8_e")


def _numpy_reader(kind: type) -> Reader:
    if not issubclass(kind, sys.modules["numpy"].ndarray):
        raise TensorError(
            f"{{role}} must be an array, got {kind.__module__}.{kind.__qualname__}\nPass numpy.array(value), and read the result there."
        )
    if issubclass(kind, sys.modules["numpy"].ma.MaskedArray):
        raise TensorError(
            "{role} must be a plain array, got a masked one, whose mask would be lost\nPass array.filled()."
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
        raise TensorError(f"{{role}} has elements that cannot be carried: dtype {dtype}\nConvert it with .astype().")
    steps = [stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1]
    if array.size > 0 and any(step % array.itemsize for step in steps):
        raise TensorError("{role} has elements that are not a whole number of items apart\nPass a copy of it.")
    interface = array.__array_interface__
    address, read_only = interface["data"]
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return Description(address, dtype.name, array.shape, strides, _HOST, read_only, array)


_READERS: dict[str, Callable[[type], Reader]] = {
    "numpy": _numpy_reader,
    "torch": _torch_reader,
    "paddle": _paddle_reader,
    "mindspore": _mindspore_reader,
}


def new_like(tensor: Any, shape: Sequence[int] | None = None) -> Any:
    """Return a new, uninitialised tensor of *tensor*'s kind and dtype, with its shape or another one."""
    framework = framework_of(type(tensor))
    if framework in _MAKERS:
        return _MAKERS[framework](tensor, tuple(tensor.shape if shape is None else shape))
    raise TensorError(f"cannot make a new tensor like a {type(tensor).__qualname__}")


def _new_numpy(array: Any, shape: tuple[int, ...]) -> Any:
    return sys.modules["numpy"].empty(shape, array.dtype)


def _new_torch(tensor: Any, shape: tuple[int, ...]) -> Any:
    return tensor.detach().new_empty(shape)


def _new_paddle(tensor: Any, shape: tuple[int, ...]) -> Any:
    return sys.modules["paddle"].empty(list(shape), tensor.dtype)


def _new_mindspore(tensor: Any, shape: tuple[int, ...]) -> Any:
    """Lend MindSpore an array: ``mint.empty`` is an operator, for whose thread the engine would wait a millisecond."""
    mindspore, dtype = sys.modules["mindspore"], tensor.dtype
    if id(dtype) not in _ARRAY_DTYPES:
        _ARRAY_DTYPES[id(dtype)] = (dtype, _array_dtype_of(dtype))
    of_array = _ARRAY_DTYPES[id(dtype)][1]
    if of_array is None:
        return mindspore.mint.empty(shape, dtype=dtype)
    return mindspore.Tensor.from_numpy(sys.modules["numpy"].empty(shape, of_array))


# numpy's dtype for each of MindSpore's, which are single objects and are kept alive here: to hash one takes longer.
_ARRAY_DTYPES: dict[int, tuple[Any, Any]] = {}


def _array_dtype_of(dtype: Any) -> Any:
    """Return numpy's dtype for MindSpore's *dtype*, None for float8. (MindSpore's own function logs with every call.)"""
    try:
        found = sys.modules["numpy"].dtype(_name_of_mindspore_dtype(dtype))
        if found.isbuiltin == 1:  # not one that ml_dtypes has added, of which MindSpore knows nothing
            return found
    except TypeError:
        pass
    try:
        return sys.modules["mindspore"].dtype_to_nptype(dtype)  # bfloat16, for which MindSpore has a dtype of its own
    except KeyError:
        return None


_MAKERS: dict[str, Callable[[Any, tuple[int, ...]], Any]] = {
    "numpy": _new_numpy,
    "torch": _new_torch,
    "paddle": _new_paddle,
    "mindspore": _new_mindspore,
}


def copy_of(tensor: Any) -> Any:
    """Return a new tensor of *tensor*'s kind with its elements, of which nothing knows how to take the gradient."""
    framework = framework_of(type(tensor))
    if framework in _COPIERS:
        return _COPIERS[framework](tensor)
    raise TensorError(f"cannot copy a {type(tensor).__qualname__}")


def _copy_mindspore(tensor: Any) -> Any:
    """Copy without an operator where the elements lie together; ``copy()`` of a Parameter would be a Parameter."""
    copied = new_like(tensor)
    if not tensor.is_contiguous():
        return copied.copy_(tensor)
    source = _describe_mindspore(tensor)
    ctypes.memmove(copied.data_ptr(), source.address, tensor.nbytes)
    return copied


_COPIERS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda array: array.copy(),
    "torch": lambda tensor: tensor.detach().clone(),
    "paddle": lambda tensor: tensor.detach().clone(),
    "mindspore": _copy_mindspore,
}
_FRAMEWORKS = frozenset(_READERS)
