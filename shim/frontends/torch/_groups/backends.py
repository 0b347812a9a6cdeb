"""Backend strings, which torch code passes and asks for; here the one engine serves host memory whatever they say."""

from __future__ import annotations

import sys
import warnings
from typing import Any, ClassVar

from shim.core.callers import Caller
from shim.core.engines.choosing import serves_devices
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError, torch_function


class Backend(str):
    """The backend names as constants; calling it with a name returns that name in lower case.

    Raises: ValueError for what is not a string.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.Backend
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    SHIM = "shim"  # as torch has it where this project is installed

    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
        SHIM: ["cpu"],
    }
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ArgumentError(f"torch.distributed.Backend: name must be a string, got {name!r}")
        return name.lower()  # type: ignore[return-value]  # torch returns a plain str as well

    @classmethod
    def register_backend(
        cls, name: str, func: Any, extended_api: bool = False, devices: Any = None, *, _backend_type: Any = None
    ) -> None:
        """Refuse the backend *name* of *_backend_type*, made by *func* with or without *extended_api* for *devices*.

        Raises: UnsupportedError, always: groups are served by this project's engines.
        """
        raise UnsupportedError(
            f"torch.distributed.Backend.register_backend: the frontend runs on its own engine and takes "
            f"no other backends, got {name!r} made by {func!r} (extended_api={extended_api}, devices={devices}, "
            f"_backend_type={_backend_type})"
        )


_KNOWN = (*Backend.backend_list, Backend.SHIM)


def _plugged_in() -> dict[str, list[str]]:
    """Return the backends that packages have registered with torch itself, such as hccl, each with the devices that it serves."""
    torchs: Any = getattr(sys.modules.get("torch.distributed"), "Backend", None)
    names = () if torchs is None else (name.lower() for name in torchs._plugins)
    return {name: list(torchs.backend_capability[name]) for name in names if name not in _KNOWN}


class BackendConfig:
    """Which backend serves each kind of device, according to the string *backend*.

    Raises: ValueError for ``device:backend`` pairs that are none, or name a device twice.
    """

    def __init__(self, backend: str) -> None:
        self.device_backend_map = _device_map(str(backend).lower())

    def get_device_backend_map(self) -> dict[str, str]:
        """Return the backend's name for each device's."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())


def _device_map(backend: str) -> dict[str, str]:
    if backend == Backend.UNDEFINED:
        torch = sys.modules.get("torch")
        kind = "cpu" if torch is None else torch._C._get_accelerator().type
        return {kind: _default_backends().get(kind, Backend.UNDEFINED)}
    capability = Backend.backend_capability | _plugged_in()
    if backend in capability:
        return dict.fromkeys(capability[backend], backend)
    if ":" in backend:
        caller = torch_function("BackendConfig")
        _names(caller, backend)
        return dict(pair.split(":", 1) for pair in backend.split(","))
    warnings.warn(
        f"torch.distributed.BackendConfig: the devices of backend {backend!r} are not known; cpu, cuda and xpu are "
        "assumed\nWrite it like 'cpu:gloo,cuda:nccl'.",
        stacklevel=3,
    )
    return dict.fromkeys(("cpu", "cuda", "xpu"), backend)


def _default_backends() -> dict[str, str]:
    """Return the backend for each kind of device, those that packages have registered with torch included."""
    torchs: Any = getattr(sys.modules.get("torch.distributed"), "Backend", Backend)
    backends: dict[str, str] = torchs.default_device_backend_map | Backend.default_device_backend_map
    return backends


def backend_of(caller: Caller, backend: str | None) -> str:
    """Return *backend* in lower case after checking it as torch does; None is ``undefined``, which torch calls it."""
    if backend is None:
        return Backend.UNDEFINED
    if not isinstance(backend, str):
        raise caller.explain(ArgumentError(f"backend must be a string, got {backend!r}"))
    name = backend.lower()
    known = (*_KNOWN, *_plugged_in())
    for one in _names(caller, name):
        if one == Backend.FAKE:
            raise caller.explain(UnsupportedError("the torch frontend has no backend 'fake': the engine communicates"))
        if one not in known:
            named = ", ".join(one for one in known if one not in (Backend.UNDEFINED, Backend.FAKE))
            raise caller.explain(ArgumentAssertionError(f"backend must be one of {named}, got {backend!r}"))
    return name


def _names(caller: Caller, backend: str) -> list[str]:
    """Return the names in *backend*, which is one name or ``device:name`` pairs with commas between them."""
    if ":" not in backend:
        return [backend]
    pairs = [pair.split(":") for pair in backend.split(",")]
    if any(len(pair) != 2 for pair in pairs) or len({pair[0] for pair in pairs}) != len(pairs):
        raise caller.explain(
            ArgumentError(f"backend must name each device once, got {backend!r}\nWrite it like 'cpu:gloo,cuda:nccl'.")
        )
    return [name for _, name in pairs]


def default_backend_for(caller: Caller, device: Any) -> str:
    """Return the backend that torch takes for *device*, a ``torch.device`` or the name of one."""
    kind = getattr(device, "type", device)
    if not isinstance(kind, str):
        raise caller.explain(ArgumentTypeError(f"device must be a torch.device or the name of one, got {device!r}"))
    backends = _default_backends()
    backend = backends.get(kind.partition(":")[0])
    if backend is None:
        raise caller.explain(ArgumentError(f"device must be one of {', '.join(backends)}, got {device!r}"))
    return backend


def has_backend(backend: str) -> bool:
    """Tell whether *backend*, or each of those in ``device:name`` pairs, is served: gloo and shim always, others where they are installed."""
    name = str(backend).lower()
    names = BackendConfig(name).get_device_backend_map().values() if ":" in name else [name]
    served = {Backend.GLOO, Backend.SHIM, *_plugged_in()}
    return all(
        one in served or (one == Backend.NCCL and has_nccl()) or (one == Backend.XCCL and has_xccl()) for one in names
    )


def has_nccl() -> bool:
    """Tell whether an engine for tensors of the devices that torch calls cuda can be had."""
    return serves_devices("cuda") or serves_devices("rocm")


def has_xccl() -> bool:
    """Tell whether torch has its backend for tensors of XPU devices."""
    return bool(getattr(sys.modules.get("torch.distributed"), "is_xccl_available", bool)())
