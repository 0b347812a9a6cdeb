"""From which line of the program, through which function, a call comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shim.core.tracing.places import INTERNAL, OBJECTS, Place, place_of_caller


def function_in(module: str, name: str, inner: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function *name* of a made-up module, which calls *inner*."""
    names: dict[str, Any] = {"__name__": module, "inner": inner}
    exec(f"def {name}():\n    return inner()", names)
    return names[name]


def asked(*modules: tuple[str, str]) -> Place:
    """Return the place of a call that goes through functions of these modules, the last one first."""
    function: Callable[[], Any] = lambda: Place(*place_of_caller(1))  # noqa: E731
    for module, name in reversed(modules):
        function = function_in(module, name, function)
    return function()


@pytest.mark.parametrize(
    ("modules", "name", "kinds"),
    [
        ((("shim.frontends.torch.distributed._reductions", "all_reduce"), ("shim.core.calls", "all_reduce")), "torch.distributed.all_reduce", 0),
        ((("shim.frontends._paddle.collectives.moving", "broadcast"),), "paddle.distributed.broadcast", 0),
        ((("shim.frontends.mindspore.ops", "__call__"), ("shim.core.groups.agreement", "agree")), "mindspore.ops.__call__", INTERNAL),
        ((("shim.frontends.torch.distributed", "gather_object"), ("shim.core.objects", "gather")), "torch.distributed.gather_object", OBJECTS),
        ((("torch.distributed.c10d_logger", "wrapper"), ("torch.distributed.distributed_c10d", "barrier")), "torch.distributed.distributed_c10d.barrier", 0),
        ((("torch.nn.parallel.distributed", "forward"), ("shim.frontends.torch._backend.group", "allreduce")), "torch.nn.parallel.distributed.forward", 0),
    ],
)  # fmt: skip
def test_the_outermost_function_between_is_the_called_one(
    modules: tuple[tuple[str, str], ...], name: str, kinds: int
) -> None:
    place = asked(*modules)
    assert place.function_name() == name
    assert place.kinds & (INTERNAL | OBJECTS) == kinds
    assert place.text().startswith(f"{__file__}:")
    assert place.text().endswith(" in asked")


@pytest.mark.parametrize("module", ["shimmer", "torchvision.ops", "shim.trace.replaying.rank", "my.torch"])
def test_other_modules_are_the_program(module: str) -> None:
    place = asked((module, "step"))
    assert place.text() == "<string>:2 in step"
    assert place.function_name() == ""
