"""torch's ProcessGroupGloo: a group that meets at a store by itself and belongs to no world."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.core import groups
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.torch._calls.options import seconds_of
from shim.frontends.torch._errors import ArgumentTypeError, torch_function
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch._stores.meeting_place import meeting_place

_INIT = torch_function("ProcessGroupGloo")
_ALLOCATES_ON: tuple[str, ...] = ()  # devices
_HALF_AN_HOUR = timedelta(seconds=1800)
_THREADS = 2  # torch's own default; there is one progress thread


class _Device:
    """The loopback device, which stands for the memory that the ranks of a host share."""


class _Options:
    """What a ProcessGroupGloo can be told: how long it waits, in ``_timeout``, and its ``group_name``."""

    def __init__(self) -> None:
        self._timeout = _HALF_AN_HOUR
        self._devices: list[_Device] = []
        self._threads = _THREADS
        self.group_name = ""


def _options_of(options: Any, timeout: Any) -> _Options:
    """Return *options*, or new ones where a timeout is given instead; raise for options without a meaning here."""
    if not isinstance(options, _Options):
        made = _Options()
        made._timeout = options if timeout is None else timeout
        return made
    if timeout is not None:
        raise _INIT.explain(
            ArgumentTypeError(
                f"timeout must not be given beside options, which hold one, got {timeout!r}\nSet _timeout."
            )
        )
    if options._threads != _THREADS:
        raise _unsupported(f"threads to choose the number of: _threads must be {_THREADS}, got {options._threads!r}")
    if not all(isinstance(device, _Device) for device in options._devices):
        raise _unsupported(f"devices but what create_device returns: got _devices {options._devices!r}")
    return options


class ProcessGroupGloo(ProcessGroup):
    """A group of *size* ranks who meet at *store*, each with its *rank*, served by the engine that serves all groups.

    *options* is an ``Options``, or the timeout. Its ranks are numbered from 0, as in a world of its own.
    It holds memory and a thread until ``shutdown`` or the end of the process, not only until it is dropped.
    Deviates: it is a ProcessGroup, which the functions of the package take too; torch's has only methods.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.ProcessGroup
    """

    Device = _Device
    Options = _Options
    _Options = _Options

    def __init__(
        self, store: Any, rank: int, size: int, options: Any = _HALF_AN_HOUR, timeout: timedelta | None = None
    ) -> None:
        self._options_given = _options_of(options, timeout)
        seconds = seconds_of(_INIT, self.options._timeout)
        place = meeting_place(_INIT, None, store, rank, size, seconds)
        core = groups.open_apart(_INIT, rank, size, store=place.store, backend="gloo", timeout=seconds)
        self._store = store
        super().__init__(core, self.options.group_name or core.name, "undefined", "gloo")

    @property
    def options(self) -> Any:
        """What it was told."""
        return self._options_given

    def get_group_store(self) -> Any:
        """Return the store at which its ranks met."""
        return self._store

    @property
    def supports_splitting(self) -> bool:
        """Only groups of the world can be split."""
        return False

    @property
    def supports_shrinking(self) -> bool:
        """Only groups of the world can be shrunk."""
        return False

    @property
    def supports_coalescing(self) -> bool:
        """Several works can begin together."""
        return True

    @property
    def supports_time_estimate(self) -> bool:
        """No times are estimated."""
        return False

    _supports_time_estimate = supports_time_estimate  # torch 2.14 and later

    @property
    def mem_allocator(self) -> Any:
        """Refuse: tensors need no memory of the engine's own. Raises: UnsupportedError, always."""
        raise _unsupported("mem_allocator")

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Return False: it allocates no tensors, whatever the *device*."""
        return str(device) in _ALLOCATES_ON

    @classmethod
    def create_device(cls, hostname: str = "", interface: str = "", lazy_init: bool | None = None) -> _Device:
        """Return the one device there is, for no *hostname*, *interface* or *lazy_init* in particular.

        Raises: UnsupportedError for one in particular.
        """
        if (hostname, interface, lazy_init) not in (("", "", None), ("localhost", "", None), ("127.0.0.1", "", None)):
            raise _unsupported(f"create_device({hostname!r}, {interface!r}, {lazy_init!r})")
        return _Device()

    @classmethod
    def create_default_device(cls, lazy_init: bool | None = None) -> _Device:
        """Return the one device there is. Raises: UnsupportedError for a *lazy_init* other than None."""
        if lazy_init is not None:
            raise _unsupported(f"create_default_device({lazy_init!r})")
        return _Device()

    def allocate_tensor(self, size: int, *, dtype: Any, device: Any) -> Any:
        """Refuse a tensor of *size* elements of *dtype* on *device*. Raises: UnsupportedError, always."""
        raise _unsupported(f"allocate_tensor({size}, dtype={dtype}, device={device})")

    def memory_stats(self) -> dict[str, int]:
        """Refuse. Raises: UnsupportedError, always."""
        raise _unsupported("memory_stats")

    def eager_connect_single_device(self, device: Any, /) -> None:
        """Return: the ranks have met already. Raises: ValueError for another *device* than the CPU."""
        if not str(device).startswith("cpu"):
            raise _INIT.explain(ArgumentError(f"device must be the CPU, got {device!r}"))

    def shrink(self, ranks_to_exclude: Any, shrink_flags: int = 0, opts_override: Any = None) -> Any:
        """Refuse *ranks_to_exclude*, *shrink_flags* and *opts_override*. Raises: UnsupportedError, always."""
        raise _unsupported(f"shrink({ranks_to_exclude}, {shrink_flags}, {opts_override})")

    def setUsePgForSymmMemRendezvous(self, value: bool) -> None:
        """Accept False. Raises: UnsupportedError for another *value*."""
        if value:
            raise _unsupported("setUsePgForSymmMemRendezvous(True)")

    def suspend(self) -> None:
        """Refuse. Raises: UnsupportedError, always."""
        raise _unsupported("suspend")

    def resume(self) -> None:
        """Refuse. Raises: UnsupportedError, always."""
        raise _unsupported("resume")


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"torch.distributed.ProcessGroupGloo: the torch frontend's engine, which serves it, has no {what}"
    )
