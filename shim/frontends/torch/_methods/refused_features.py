"""The methods of ProcessGroup for what the engine does not have: each says what to do instead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn

from shim.errors import UnsupportedError
from shim.frontends.torch._errors import torch_function

_HALF_AN_HOUR = timedelta(seconds=1800)
INSTEAD_OF_RECONFIGURING = (
    "Make a group of the ranks that remain with shrink_group, or have `shim run --replace` start lost ranks again."
)


class RefusedFeatures:
    """What no group has here; the properties say so to programs that ask first."""

    __slots__ = ()

    @property
    def supports_window(self) -> bool:
        """Never, as in torch's gloo: no rank writes into another's memory by itself."""
        return False

    def new_window(self, tensor: Any = None) -> Any:
        """Refuse to let the other ranks write into *tensor*. Raises: UnsupportedError, always."""
        given = "" if tensor is None else f", got a {type(tensor).__qualname__}"
        _refuse(
            "new_window",
            f"the torch frontend's engines have no windows{given}\nSend with isend and receive with irecv on the other rank.",
        )

    @property
    def supports_reconfigure(self) -> bool:
        """Never. Deviates: groups of torch's gloo can be reconfigured."""
        return False

    def get_reconfigure_handle(self) -> str:
        """Refuse to say how others reach this rank. Raises: UnsupportedError, always."""
        _refuse(
            "get_reconfigure_handle",
            f"the ranks of a group cannot be replaced in the torch frontend\n{INSTEAD_OF_RECONFIGURING}",
        )

    def reconfigure(self, opts: Any) -> Any:
        """Refuse to replace its ranks by those of *opts*. Raises: UnsupportedError, always."""
        _refuse(
            "reconfigure",
            f"the ranks of a group cannot be replaced in the torch frontend, got {opts!r}\n{INSTEAD_OF_RECONFIGURING}",
        )

    def merge_remote_group(
        self,
        store: Any,
        size: int,
        timeout: timedelta = _HALF_AN_HOUR,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> Any:
        """Refuse to merge with groups that meet at *store* into one of *size*, *timeout*, *group_name* and *group_desc*.

        Raises: UnsupportedError, always.
        """
        _refuse(
            "merge_remote_group",
            "the torch frontend's engine makes groups of one world's ranks only, got "
            f"{store!r}, size {size}, timeout {timeout}, group_name {group_name!r} and group_desc {group_desc!r}",
        )

    def boxed(self) -> Any:
        """Refuse to be put into a script object. Raises: UnsupportedError, always."""
        _refuse("boxed", "torch's script objects hold groups of torch's own classes, and this is the torch frontend's")

    @classmethod
    def unbox(cls, boxed: Any, /) -> Any:
        """Refuse to take a group out of *boxed*. Raises: UnsupportedError, always."""
        _refuse("unbox", f"the torch frontend's groups cannot be in a script object, got {boxed!r}")


def _refuse(method: str, text: str) -> NoReturn:
    raise torch_function(f"ProcessGroup.{method}").explain(UnsupportedError(text))
