"""``paddle.Model`` on the frontend: Paddle's own module is executed once more, with views for its imports.

It asks for the world in too many places for a derived class, and always by the names of ``paddle`` and ``paddle.distributed``. Paddle's own module,
and whoever in Paddle uses it, stay as they are.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from shim.errors import UnsupportedError
from shim.substitution.imports import scoped_builtins

__all__ = ["Model"]

Model: type[Any]  # made when a program asks for it

_PATH = "paddle.hapi.model"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _model()


@functools.cache
def _model() -> type[Any]:
    again = _executed_again()
    its_own: Any = again.Model

    class Model(its_own):  # type: ignore[misc]  # mypy does not see paddle
        __doc__ = its_own.__doc__

        def __init__(self, network: Any, inputs: Any = None, labels: Any = None) -> None:
            if not again.in_dynamic_mode() and again.paddle.distributed.get_world_size() > 1:
                raise UnsupportedError(
                    "paddle.Model: trains in dynamic mode alone, and in static mode would leave each rank to itself\n"
                    "Call paddle.disable_static first."
                )
            super().__init__(network, inputs, labels)

    Model.__module__ = __name__
    return Model


@functools.cache
def _executed_again() -> ModuleType:
    spec = sys.modules[_PATH].__spec__
    assert spec is not None
    code = getattr(spec.loader, "get_code")(_PATH)  # noqa: B009  # not every loader has it, as mypy knows
    module = ModuleType(_PATH)
    module.__dict__.update(__builtins__=scoped_builtins(), __file__=spec.origin, __package__=spec.parent, __spec__=spec)
    exec(code, module.__dict__)
    return module
