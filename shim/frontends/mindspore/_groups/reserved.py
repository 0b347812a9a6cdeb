"""Arguments that MindSpore keeps for later."""

from __future__ import annotations

from shim.core.callers import Caller, warn_user


def pass_over_reserved(caller: Caller, **arguments: object) -> None:
    """Warn of *arguments* unless they are None: MindSpore passes over them as well."""
    for parameter, value in arguments.items():
        if value is not None:
            warn_user(f"{caller.function}: {parameter} is reserved, and ignored as MindSpore ignores it")
