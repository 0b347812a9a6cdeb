"""What in a framework uses its own process groups, and what a program gets for it where these are not the engine's: an object that says so when it is used.

A substituted program does not start Paddle's or MindSpore's own process groups. What needs them, and no frontend has, would fail for want of them, do
without them in silence, or start them as a second world beside the program's. torch's are the engine's (``torch_groups``), but for what has a transport of its own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from shim.errors import UnsupportedError
from shim.substitution.mirrors import mirrors_of

# Where each framework has what uses its process groups, as far as programs come to it.
PLACES = {
    "torch": ("torch.distributed", "torch.nn.parallel", "torch.nn.modules.batchnorm"),
    "paddle": ("paddle.distributed", "paddle.hapi.model", "paddle.nn.layer.norm", "paddle.sparse.nn.layer.norm"),
    "mindspore": (
        *("mindspore.communication", "mindspore.mint.distributed", "mindspore.ops.communication"),
        *("mindspore.ops.function.comm_func", "mindspore.parallel", "mindspore.nn.wrap.grad_reducer"),
        *("mindspore.nn.layer.normalization", "mindspore.mint.nn.layer.normalization"),
    ),
}
# What starts processes or groups, or uses them in a kernel, without coming to a function that a frontend has.
_ALSO = {
    ("paddle.nn.layer.norm", "SyncBatchNorm"),
    ("paddle.sparse.nn.layer.norm", "SyncBatchNorm"),
}
# Parts of frameworks that no process group serves, and why.
_NEVER_SERVED = {
    "torch.distributed.rpc": "has a transport of its own",
    "torch.distributed.autograd": "works over torch.distributed.rpc, which has a transport of its own",
    "torch.distributed.optim.optimizer": "works over torch.distributed.rpc, which has a transport of its own",
    "torch.distributed.nn.api.remote_module": "works over torch.distributed.rpc, which has a transport of its own",
    "torch.distributed._symmetric_memory": "needs the memory of accelerators",
    "paddle.distributed.fleet.fleet": "belongs to paddle's own fleet, which works on its own process groups and parameter servers",
    "paddle.distributed.rpc": "has a transport of its own, which Paddle's packages for CPUs lack",
}
_INSTEAD = "Call the collectives of the frontends instead, or run the program without substitution."
_ALONE = "Without its process groups it would normalise each rank's batch by itself. Use BatchNorm for that"
# What to do instead of what lies at a place.
_INSTEAD_OF = {
    "mindspore.mint.nn.layer.normalization": f"{_ALONE}; MindSpore has this for Ascend alone.",
    "mindspore.nn.layer.normalization": f"{_ALONE}; MindSpore has this for Ascend alone.",
    "mindspore.parallel": 'Use parallel_mode="data_parallel", or move the parts of a network with the collectives.',
    "paddle.distributed.auto_parallel": "Its tensors are moved by Paddle's C++ code. Move the ranks' parts with the collectives instead.",
    "paddle.distributed.fleet": "Only data parallelism is there: fleet.init, distributed_model and distributed_optimizer.",
    "paddle.distributed.rpc": "Exchange objects with paddle.distributed.send_object_list and recv_object_list instead.",
    "paddle.distributed.sharding": "Paddle has it for GPUs and XPUs alone. Wrap the network in paddle.DataParallel instead.",
    "paddle.nn.layer.norm": f"{_ALONE}; Paddle has this for GPUs and XPUs alone.",
    "paddle.sparse.nn.layer.norm": f"{_ALONE}; Paddle has this for GPUs and XPUs alone.",
}


def is_below(module: str, places: tuple[str, ...]) -> bool:
    """Tell whether the *module* called so is one of *places*, or below one."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


def uses_groups(thing: Any, framework: str) -> bool:
    """Tell whether the code of *thing*, a function or class at one of the places, comes to one of the functions that frontends stand in for.

    Its code is read, and that of what it names at these places; nothing is run. Questions of what is available do not count.
    """
    return _name_of(thing) in _ALSO or _comes_to_groups(thing, framework, set())


def is_never_served(thing: Any) -> bool:
    """Tell whether *thing* is of a part of its framework that no process group serves."""
    return callable(thing) and _why_never(thing) is not None


def _why_never(thing: Any) -> str | None:
    return _at_its_place(thing, _NEVER_SERVED)


def _at_its_place(thing: Any, told: Mapping[str, str]) -> str | None:
    home = str(getattr(thing, "__module__", None))
    return next((one for place, one in told.items() if is_below(home, (place,))), None)


def _name_of(thing: Any) -> tuple[Any, Any]:
    return getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)


def _comes_to_groups(thing: Any, framework: str, seen: set[int]) -> bool:
    if inspect.ismethod(thing):  # one that a module offers, as paddle.distributed.fleet does those of its one object
        thing = thing.__self__ if inspect.isclass(thing.__self__) else type(thing.__self__)
    if id(thing) in seen:
        return False
    seen.add(id(thing))
    mirrored = mirrors_of(framework).find(thing)
    if mirrored is not None and not inspect.isclass(thing) and "._" not in mirrored[0].__name__:  # what frontends offer
        return not mirrored[1].endswith("available")
    if not is_below(str(getattr(thing, "__module__", None)), PLACES[framework]):
        return False
    return any(_comes_to_groups(one, framework, seen) for one in named_by(thing, framework))


def named_by(thing: Any, framework: str) -> Iterator[Any]:
    """Yield what the code of *thing* names, and for a class its methods and those of its bases."""
    if isinstance(thing, type):
        for base in thing.__mro__:
            for member in vars(base).values():
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if isinstance(function, FunctionType):
                    yield function
    elif isinstance(thing, FunctionType):
        inner = getattr(thing, "__wrapped__", None)
        if inner is not None:
            yield inner
        for code in _codes(thing.__code__):
            yield from _named_in(code, thing.__globals__, framework)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _named_in(code: CodeType, names: Mapping[str, Any], framework: str) -> Iterator[Any]:
    """Yield what *code* finds in *names*, and what it may find as an attribute of the framework's modules among that."""
    pending = [names.get(name, sys.modules.get(name)) for name in code.co_names]
    seen: set[int] = set()
    while pending:
        found = pending.pop()
        if not isinstance(found, ModuleType):
            yield found
        elif id(found) not in seen and is_below(found.__name__, (framework,)):
            seen.add(id(found))
            pending += [vars(found).get(name) for name in code.co_names]


def refused(thing: Any, name: str) -> Any:
    """Return what a program gets for *thing*, which it has found as *name*: it raises UnsupportedError when it is called."""
    refuse = functools.partial(_refuse, name, _why_never(thing), _at_its_place(thing, _INSTEAD_OF) or _INSTEAD)
    return _refused_class(thing, name, refuse) if inspect.isclass(thing) else _refused_function(thing, refuse)


def _refuse(name: str, why: str | None, hint: str) -> NoReturn:
    framework = name.partition(".")[0]
    if why is None:
        why = f"uses {framework}'s own process groups, which a program that runs on the frontends does not have"
    raise UnsupportedError(f"{name}: {why}\n{hint}")


def _refused_function(thing: Any, refuse: Callable[[], NoReturn]) -> Any:
    @functools.wraps(thing)
    def function(*_: Any, **__: Any) -> NoReturn:
        refuse()

    return function


def _refused_class(thing: type, name: str, refuse: Callable[[], NoReturn]) -> type:
    """Return a class that stands for *thing* in annotations, isinstance and issubclass; neither it nor its subclasses can be made."""

    class Refused(type):
        def __call__(cls, *_: Any, **__: Any) -> NoReturn:
            refuse()

        def __getattr__(cls, attribute: str) -> NoReturn:
            if not attribute.startswith("__") and hasattr(thing, attribute):
                refuse()
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {attribute!r}")

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, thing)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return super().__subclasscheck__(subclass) or issubclass(subclass, thing)

    return Refused(thing.__name__, (), {"__doc__": thing.__doc__, "__module__": name.rpartition(".")[0]})
