"""Functions of ``paddle.distributed`` that do not communicate themselves; the rest of paddle is needed for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.errors import ShimError, UnsupportedError
from shim.frontends._paddle.errors import paddle_function

_LAUNCH = paddle_function("launch")
_SPLIT = paddle_function("split")


def launch() -> NoReturn:
    """Refuse to start ranks, for which there is ``shim run``; a job that paddle's own launcher started works as it is.

    Raises: UnsupportedError, always: it is the command python -m paddle.distributed.launch, for which there is shim run.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/launch_en.html
    """
    raise _elsewhere(_LAUNCH, "paddle's launcher", "Start the ranks with `shim run`, or call spawn.")


def split(
    x: Tensor,
    size: Sequence[int],
    operation: str,
    axis: int = 0,
    num_partitions: int = 1,
    gather_out: bool = True,
    weight_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> NoReturn:
    """Refuse to apply a layer of *size* to *x*: *operation*, *axis*, *num_partitions* and *gather_out* say which.

    *weight_attr*, *bias_attr* and *name* are of its weights, which belong to paddle's networks.
    Raises: UnsupportedError, always: it is a layer of paddle's networks, and its communication only a part of it.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/split_en.html
    """
    raise _elsewhere(
        _SPLIT,
        "a layer of paddle's networks",
        "Use the layers of paddle.distributed.fleet, or all_gather and all_reduce around one's own.",
        (x, size, operation, axis, num_partitions, gather_out, weight_attr, bias_attr, name),
    )


def _elsewhere(caller: Caller, what: str, instead: str, given: Sequence[Any] = ()) -> ShimError:
    """Return the error for *what* is another part of paddle, whatever was *given*."""
    del given
    return caller.explain(UnsupportedError(f"is {what}, which the paddle frontend does not have\n{instead}"))
