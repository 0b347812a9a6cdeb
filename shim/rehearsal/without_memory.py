"""Rehearsals of torch's tensors without memory: a model of any size runs in a laptop's memory, also one that wants ``cuda`` devices.

New tensors of more than a MB, and what comes of these, have a shape and a dtype, and no elements. Small ones are as always: programs count
and plan with them. Devices are played by host memory, as a torch without CUDA has no gradients there: so it is what tensors say.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch._dynamo.config  # which takes seconds, and is asked for by every mode
from torch._subclasses.fake_tensor import (  # torch's own way to do so, which has no public name
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.overrides import TorchFunctionMode

from shim.errors import UnsupportedError
from shim.rehearsal.made_up import note_reading

_MOST = 1 << 20  # bytes of a new tensor in host memory that has elements
_HOST = torch.device("cpu")
_ATEN: Any = torch.ops.aten
_device: Any = torch.device
_Generator: Any = torch.Generator
_DO_NOTHING = (
    "empty_cache", "init", "ipc_collect", "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats", "set_per_process_memory_fraction", "set_stream", "synchronize",
)  # fmt: skip


class _WithoutMemory(FakeTensorMode):  # type: ignore[no-untyped-call]  # of torch
    """Carries out torch's operators on tensors without memory, and leaves others to torch."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if _is_elsewhere(given.get("device")):  # from C++, or where functions are not seen
            given["device"] = _HOST
        if func is _ATEN.copy_.default and not isinstance(args[0], FakeTensor) and _is_hollow(args[1]):
            return args[0]  # a small tensor keeps its elements, where a checkpoint has none
        if any(issubclass(kind, FakeTensor) for kind in types):
            return self._without_memory(func, types, args, given)
        if not _has_tensors(args):
            made = self._without_memory(func, types, args, given)
            if isinstance(made, torch.Tensor) and made.numel() * made.element_size() > _MOST:
                return made
        return func(*args, **given)

    def _without_memory(self, func: Any, types: Sequence[type], args: Sequence[Any], given: dict[str, Any]) -> Any:
        if func is _ATEN._local_scalar_dense.default:
            note_reading()
            return _number(args[0].dtype)
        try:
            return super().__torch_dispatch__(func, types, args, given)
        except (DataDependentOutputException, DynamicOutputShapeException):
            raise UnsupportedError(
                f"the result of {func} depends on elements, and its tensor has none in a rehearsal without memory\n"
                "Make that tensor in host memory with less than a MB, or rehearse without --no-memory."
            ) from None


def _number(dtype: torch.dtype) -> Any:
    """Return what an element is said to be: counts are 1, so that one can divide by them, and nothing is true or infinite."""
    if dtype is torch.bool:
        return False
    return 0.0 if dtype.is_floating_point else 0j if dtype.is_complex else 1


def _is_elsewhere(device: Any) -> bool:
    return isinstance(device, int) or (device is not None and _device(device).type not in ("cpu", "meta"))


def _is_hollow(tensor: Any) -> bool:
    return isinstance(tensor, FakeTensor) or tensor.device.type == "meta"


def _has_tensors(args: Sequence[Any]) -> bool:
    return any(isinstance(one, torch.Tensor) or (isinstance(one, (list, tuple)) and _has_tensors(one)) for one in args)


@contextlib.contextmanager
def without_memory(local_rank: int, per_host: int) -> Iterator[None]:
    """Give the block's new tensors no memory, and have ``torch.cuda`` say that there are *per_host* devices, of which *local_rank* is current.

    This process is a rank's, and ends with it.
    """
    mode = _WithoutMemory()
    _take_devices(mode, local_rank, per_host)
    torch._C._set_only_lift_cpu_tensors(True)  # for torch.tensor(..., device="cuda")
    with mode, _HostForDevices():
        yield


class _HostForDevices(TorchFunctionMode):
    """Puts the host in the place of devices that a program names or numbers, which torch would look for."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if _is_elsewhere(given.get("device")):
            given["device"] = _HOST
        if func is torch.Tensor.to and len(args) > 1 and isinstance(args[1], (int, str, _device)):
            args = (args[0], _HOST if _is_elsewhere(args[1]) else args[1], *args[2:])
        return func(*args, **given)


class _Devices(type):
    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        device = arguments[0] if len(arguments) == 1 else _device(*arguments, **named)
        return _HOST if _is_elsewhere(device) else _device(device)

    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, _device)


class _Device(metaclass=_Devices):
    """``torch.device``, of which all devices are in host memory."""


class _Generators(type):
    def __call__(cls, device: Any = "cpu") -> Any:
        return _Generator(_HOST if _is_elsewhere(device) else device)

    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, _Generator)

    def __or__(cls, other: Any) -> Any:
        return _Generator | other


class _HostGenerator(metaclass=_Generators):
    """``torch.Generator``, of which all are in host memory."""


class _Current(contextlib.nullcontext[None]):
    """A block in which another device is current."""


class _Properties:
    """Of a device that is not there."""

    name = "a device that is not there"
    total_memory = 80 << 30
    major, minor, multi_processor_count = 9, 0, 132


class _Stream(AbstractContextManager["_Stream"]):
    """A stream or an event, on which nothing runs. All that one can have it do is over at once."""

    cuda_stream = stream_id = 0
    device = _HOST

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take what torch's own classes do."""

    def __exit__(self, *_: object) -> None:
        """Nothing was made current."""

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or _Stream()

    def elapsed_time(self, end_event: Any) -> float:
        return 0.0

    def synchronize(self, *_: Any, **__: Any) -> None:
        """Nothing is waited for."""

    wait = wait_event = wait_stream = record = synchronize


def _take_devices(mode: Any, local_rank: int, per_host: int) -> None:
    """Put what needs no device in the place of the functions of torch that ask for one."""
    current = [local_rank]

    def set_device(device: Any) -> None:
        index = device if isinstance(device, int) else getattr(device, "index", None)
        current[0] = (
            int(str(device).rpartition(":")[2]) if ":" in str(device) else current[0] if index is None else index
        )

    cuda: dict[str, Any] = {
        "_lazy_init": _nothing,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device": _Current,
        "device_of": _Current,
        "mem_get_info": lambda device=None: (_Properties.total_memory, _Properties.total_memory),
        "memory_summary": lambda device=None, abbreviated=False: "",
        "memory_stats": lambda device=None: {},
        "device_count": lambda: per_host,
        "set_device": set_device,
        "default_generators": tuple(torch.Generator() for _ in range(per_host)),
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_name": lambda device=None: _Properties.name,
        "get_device_properties": lambda device=None: _Properties,
        "is_bf16_supported": lambda including_emulation=True: True,
        "Stream": _Stream,
        "Event": _Stream,
        "current_stream": lambda device=None: _Stream(),
        "default_stream": lambda device=None: _Stream(),
        "stream": lambda stream: stream or contextlib.nullcontext(),
    }
    cuda |= dict.fromkeys(_DO_NOTHING, _nothing)
    cuda |= dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved"), lambda device=None: 0)
    for name, answer in cuda.items():
        setattr(torch.cuda, name, answer)
    core: Any = torch._C
    core._cuda_getDevice, core._cuda_setDevice = lambda: current[0], set_device
    framework: Any = torch
    framework.device = _Device
    framework.Tensor.cuda = lambda tensor, *_, **__: tensor.to("cuda")
    framework.Tensor.record_stream = _nothing
    framework.Tensor.pin_memory = lambda tensor, device=None: tensor
    framework.Generator = _HostGenerator
    framework.save = _nothing
    fake: Any = FakeTensor
    fake.__format__ = lambda tensor, how: format(tensor.item() if how and not tensor.dim() else repr(tensor), how)
    for name in ("mark", "range_push", "range_pop"):
        setattr(torch.cuda.nvtx, name, _nothing)
    swap: Any = torch.utils.swap_tensors

    def swap_tensors(one: Any, other: Any) -> None:
        mode.fake_tensor_converter.meta_converter.tensor_memo.clear()  # whose weak references are in the way
        swap(one, other)

    torch.utils.swap_tensors = swap_tensors
    _take_classes()


def _take_classes() -> None:
    """Have blocks that compute in another dtype on devices do so in host memory, where DDP has no devices to name."""
    autocast, parallel = torch.autocast, torch.nn.parallel.DistributedDataParallel
    begin: Any = autocast.__init__
    wrap = parallel.__init__

    def begin_there(self: Any, device_type: str, dtype: Any = None, *arguments: Any, **named: Any) -> None:
        if _is_elsewhere(device_type):
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, *arguments, **named)

    def wrap_there(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *a: Any, **k: Any
    ) -> None:
        wrap(self, module, None, None, *a, **k)

    autocast.__init__, parallel.__init__ = begin_there, wrap_there  # type: ignore[method-assign]


def _nothing(*_: Any, **__: Any) -> None:
    """As what waits for a device does where there is none."""
