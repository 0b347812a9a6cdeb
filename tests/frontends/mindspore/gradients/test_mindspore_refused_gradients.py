"""Where MindSpore's functions have no right gradient in PyNative mode they are refused, on every rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import check, make, numbers, world

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.mindspore.ops.communication as communication
from shim.errors import MismatchError, UnsupportedError
from shim.frontends.mindspore.communication import comm_func


def zeros(*shape: int) -> Any:
    return make("mindspore", np.zeros(shape, "float32"))


def once(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def loss(tensor: Any) -> Any:
        doubled = tensor * 2
        call(doubled)
        return doubled.sum()

    return loss


REFUSED: dict[str, Callable[[Any], Any]] = {
    "broadcast": lambda x: mint.broadcast(x, 0),
    "reduce": lambda x: communication.reduce(x, 0),
    "gather": lambda x: mint.gather(x, [zeros(4), zeros(4)]),
    "gather into it": lambda x: mint.gather(zeros(4), [x, x]),
    "gather_into_tensor": lambda x: communication.gather_into_tensor(zeros(8), x),
    "scatter": lambda x: communication.scatter(zeros(4), [x, zeros(4)]),
    "scatter_tensor": lambda x: communication.scatter_tensor(zeros(2), x),
    "into NumPy's array": lambda x: mint.all_gather_into_tensor(np.zeros(8, "float32"), x),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_gradient_is_refused(rank: int, world_size: int, what: str) -> None:
    with world():
        with pytest.raises(UnsupportedError, match=r"has no gradient here.*\nPass mindspore\.ops\.stop_gradient"):
            mindspore.grad(once(REFUSED[what]))(make("mindspore", numbers(rank, 4)))
        stopped = once(lambda tensor: REFUSED[what](mindspore.ops.stop_gradient(tensor) * 1))
        check("mindspore", mindspore.grad(stopped)(make("mindspore", numbers(rank, 4))), np.full(4, 2, "float32"))


def send_both(send: Callable[[Any], Any], receive: Callable[[Any], Any]) -> Callable[[int, Any], None]:
    """Return the call with which rank 0 sends its tensor and rank 1 receives one."""
    return lambda rank, tensor: receive(zeros(4)) if rank else send(tensor)


def batch(module: Any) -> Callable[[int, Any], Any]:
    def exchange(rank: int, tensor: Any) -> Any:
        parts = [("isend", tensor), ("irecv", zeros(4))] if rank == 0 else [("irecv", zeros(4)), ("isend", tensor)]
        return module.batch_isend_irecv([module.P2POp(op, each, 1 - rank) for op, each in parts])

    return exchange


SENT: dict[str, Callable[[int, Any], Any]] = {
    "send": send_both(lambda x: mint.send(x, 1), lambda x: mint.recv(x, 0)),
    "send of ops": send_both(lambda x: communication.send(x, 1), lambda x: communication.recv(x, 0)),
    "send of comm_func": send_both(lambda x: comm_func.send(x, 1), lambda x: comm_func.recv(x, 0)),
    "isend": send_both(lambda x: mint.isend(x, 1).wait(), lambda x: mint.irecv(x, 0).wait()),
    "isend of ops": send_both(lambda x: communication.isend(x, 1).wait(), lambda x: communication.irecv(x, 0).wait()),
    "isend of comm_func": send_both(lambda x: comm_func.isend(x, 1).wait(), lambda x: comm_func.irecv(x, 0)[1].wait()),
    "batch": batch(mint),
    "batch of ops": batch(communication),
    "batch of comm_func": batch(comm_func),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("what", SENT)
def test_what_is_sent_is_not_left_out_of_the_gradient(rank: int, world_size: int, what: str) -> None:
    """The refusal is the sender's: nothing of it goes to the receiver, who is told by nobody and must not come."""
    with world():
        if rank == 0 or "batch" in what:
            with pytest.raises(
                UnsupportedError, match=r"has no gradient, and one.*\nPass mindspore\.ops\.stop_gradient"
            ):
                mindspore.grad(once(lambda x: SENT[what](rank, x)))(make("mindspore", numbers(rank, 4)))
            mindspore.graph.api._pynative_executor.clear_res()
        stopped = once(lambda x: SENT[what](rank, mindspore.ops.stop_gradient(x)))
        check("mindspore", mindspore.grad(stopped)(make("mindspore", numbers(rank, 4))), np.full(4, 2, "float32"))


@pytest.mark.ranks(2)
def test_a_gradient_on_one_rank_alone_is_told_to_the_other(rank: int, world_size: int) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, 4))
        if rank == 0:
            with pytest.raises(UnsupportedError):
                mindspore.grad(once(lambda x: mint.broadcast(x, 1)))(tensor)
        else:
            with pytest.raises(MismatchError, match="has no gradient here"):
                mint.broadcast(tensor, 1)
        tensor = make("mindspore", numbers(rank, 4))  # the other belongs to the gradient that failed
        mint.broadcast(tensor, 1)
        check("mindspore", tensor, numbers(1, 4))


@pytest.mark.ranks(2)
def test_tensors_of_which_the_gradient_is_asked_are_not_overwritten(rank: int, world_size: int) -> None:
    parameter = mindspore.Parameter(make("mindspore", numbers(rank, 3)), name="parameter")
    constant = mindspore.Parameter(make("mindspore", numbers(rank, 3)), name="constant", requires_grad=False)

    def of_parameter(tensor: Any) -> Any:
        mint.all_reduce(parameter)
        return (parameter * tensor).sum()

    def of_input(tensor: Any) -> Any:
        mint.all_reduce(tensor)
        return tensor.sum()

    def of_constant(tensor: Any) -> Any:
        mint.all_reduce(constant)
        return (constant * tensor).sum()

    with world():
        for loss in (of_parameter, of_input):
            with pytest.raises(UnsupportedError, match="must not overwrite a tensor of which the gradient is asked"):
                mindspore.value_and_grad(loss, 0, [parameter])(make("mindspore", numbers(rank, 3)))
        gradient = mindspore.grad(of_constant)(make("mindspore", numbers(rank, 3)))
        check("mindspore", gradient, numbers(0, 3) + numbers(1, 3))


@pytest.mark.ranks(2)
def test_what_was_computed_before_is_not_wrong_afterwards(rank: int, world_size: int) -> None:
    """MindSpore sees that a number it needs for the gradient has been overwritten."""

    def loss(tensor: Any) -> Any:
        doubled = tensor * 2
        square = doubled * doubled
        mint.all_reduce(doubled)
        return square.sum() + doubled.sum()

    with world(), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        mindspore.grad(loss)(make("mindspore", numbers(rank, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("what", ["row", "column", "all of it", "turned", "buffer", "all of a buffer"])
def test_views_are_not_overwritten(rank: int, world_size: int, what: str) -> None:
    """MindSpore 2.10 would make their gradient zero on a CPU, as it does after operators of its own."""
    views: dict[str, Callable[[Any], Any]] = {
        "row": lambda x: mint.all_reduce((x * 2)[1]),
        "column": lambda x: mint.all_reduce((x * 2)[:, 1]),
        "all of it": lambda x: mint.all_reduce((x * 2).reshape(-1), async_op=True),
        "turned": lambda x: mint.all_reduce((x * 2).transpose(1, 0)),
        "buffer": lambda x: mint.all_gather_into_tensor(mindspore.mint.narrow(zeros(9, 3), 0, 1, 4), x * 2),
        "all of a buffer": lambda x: mint.all_gather([zeros(6).view((2, 3)), zeros(2, 3)], x * 2),
    }
    with world(), pytest.raises(UnsupportedError, match="cannot overwrite a view of another tensor"):
        mindspore.grad(once(views[what]))(make("mindspore", numbers(rank, (2, 3))))


@pytest.mark.ranks(2)
def test_a_view_on_one_rank_alone_is_told_to_the_other(rank: int, world_size: int) -> None:
    """Before the collective begins, so that neither rank's tensor is overwritten."""
    kept = []

    def loss(tensor: Any) -> Any:
        kept.append(tensor * 2)
        mint.all_reduce(kept[0][1] if rank == 0 else kept[0])
        return kept[0].sum()

    with world():
        given = numbers(rank, (2, 3) if rank == 0 else 3)
        with pytest.raises(UnsupportedError if rank == 0 else MismatchError, match="cannot overwrite a view"):
            mindspore.grad(loss)(make("mindspore", given))
        check("mindspore", kept[0], 2 * given)


OVERWRITING: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda kept: mint.all_reduce(kept),
    "all_reduce in the background": lambda kept: mint.all_reduce(kept, async_op=True).wait(),
    "all_gather_into_tensor": lambda kept: mint.all_gather_into_tensor(kept, zeros(2)),
}


def overwritten(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def loss(weight: Any) -> Any:
        kept = mindspore.mint.ones((4,))
        product = weight * kept
        call(kept)
        return product.sum()

    return loss


@pytest.mark.ranks(2)
@pytest.mark.parametrize("what", OVERWRITING)
def test_a_gradient_of_what_was_overwritten(rank: int, world_size: int, what: str) -> None:
    """MindSpore raises, as after operators of its own."""
    with world(), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        mindspore.grad(overwritten(OVERWRITING[what]))(make("mindspore", numbers(rank, 4)))
