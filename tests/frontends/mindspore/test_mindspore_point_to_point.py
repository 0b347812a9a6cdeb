"""Sending and receiving through MindSpore's frontend, singly and in batches, in place and not."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import KINDS, SOME_DTYPES, check, make, numbers, world
from wrong_calls import assert_refused

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.mindspore.ops.communication as communication
from shim.errors import ArgumentError, NotMemberError, RankError, TensorError, UnsupportedError
from shim.frontends.mindspore.communication import comm_func

MODULES: dict[str, Any] = {"mint": mint, "ops": communication}
WRONG_TYPE: Any = "0"


@pytest.fixture(params=MODULES)
def dist(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_send_and_recv_in_a_ring(rank: int, world_size: int, kind: str, dist: str) -> None:
    module, before, after = MODULES[dist], (rank - 1) % world_size, (rank + 1) % world_size
    with world():
        tensor, received = make(kind, numbers(rank, (2, 3))), make(kind, np.zeros((2, 3), "float32"))
        if rank == 0:
            assert module.send(tensor, after) is None
            assert module.recv(received, before) == 0
        else:
            assert module.recv(received, before) == 0
            assert module.send(tensor, after) is None
        check(kind, received, numbers(before, (2, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_dtypes(rank: int, world_size: int, dtype: str) -> None:
    with world():
        received = make("mindspore", np.zeros((2, 3), numbers(0, 1, dtype).dtype), dtype)
        handles = [
            mint.irecv(received, 1 - rank),
            mint.isend(make("mindspore", numbers(rank, (2, 3), dtype), dtype), 1 - rank),
        ]
        for handle in handles:
            assert handle.wait() is None
        check("mindspore", received, numbers(1 - rank, (2, 3), dtype), dtype)


@pytest.mark.ranks(2)
def test_tags_tell_messages_apart(rank: int, world_size: int, dist: str) -> None:
    module = MODULES[dist]
    with world():
        if rank == 0:
            handles = [module.isend(numbers(tag, 3), 1, None, tag) for tag in (5, 7)]
            for handle in handles:
                assert isinstance(handle, comm_func.CommHandle)
                handle.wait()
        else:
            for tag in (7, 5):
                received = np.zeros(3, "float32")
                module.recv(received, tag=tag)
                check("numpy", received, numbers(tag, 3))


@pytest.mark.ranks(3)
def test_peers_are_ranks_of_the_world(rank: int, world_size: int, dist: str) -> None:
    module = MODULES[dist]
    with world():
        group = module.new_group([1, 2])
        received = np.zeros(3, "float32")
        if rank == 1:
            module.send(numbers(1, 3), 2, group)
        elif rank == 2:
            module.recv(received, 1, group)
            check("numpy", received, numbers(1, 3))
        else:
            with pytest.raises(NotMemberError):
                module.send(numbers(0, 3), 1, group)
            with pytest.raises(NotMemberError):
                module.recv(received, 1, group)
        if rank:
            with pytest.raises(RankError, match=r"must be one of the group's ranks \[1, 2\], got 0"):
                module.irecv(received, 0, group)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_name", [True, False])
def test_a_batch(rank: int, world_size: int, kind: str, by_name: bool, dist: str) -> None:
    """Every rank sends first to all others, with which one that waited would never end."""
    module = MODULES[dist]
    with world():
        others = [other for other in range(world_size) if other != rank]
        received = {other: make(kind, np.zeros((2, 3), "float32")) for other in others}
        send, receive = ("isend", "irecv") if by_name else (module.isend, module.irecv)
        batch = [module.P2POp(send, make(kind, numbers(10 * rank + other, (2, 3))), other) for other in others]
        batch += [module.P2POp(receive, received[other], other) for other in others]
        handles = module.batch_isend_irecv(batch)
        assert [type(handle) for handle in handles] == [comm_func.CommHandle]
        assert handles[0].wait() is None
        for other in others:
            check(kind, received[other], numbers(10 * other + rank, (2, 3)))


@pytest.mark.ranks(3)
def test_a_batch_in_a_subgroup(rank: int, world_size: int, dist: str) -> None:
    module = MODULES[dist]
    with world():
        group = module.new_group([0, 2])
        if rank != 1:
            received = np.zeros(3, "float32")
            exchange = [
                module.P2POp("irecv", received, 2 - rank, group),
                module.P2POp("isend", numbers(rank, 3), 2 - rank, group),
            ]
            module.batch_isend_irecv(exchange)[0].wait()
            check("numpy", received, numbers(2 - rank, 3))


@pytest.mark.parametrize("module", MODULES)
def test_what_an_operation_holds(module: str) -> None:
    tensor = numbers(0, 3)
    made = MODULES[module].P2POp(MODULES[module].isend, tensor, 1, "group", 0)
    assert (made.op, made.peer, made.group, made.tag) == (MODULES[module].isend, 1, "group", 0)
    assert made.tensor is tensor
    for op in ("send", mint.recv, comm_func.isend, None, []):
        with pytest.raises(TypeError, match="op must be isend or irecv"):
            MODULES[module].P2POp(op, tensor, 1)
    with pytest.raises(TypeError, match="tensor must be a tensor"):
        MODULES[module].P2POp("isend", [1.0], 1)
    with pytest.raises(TypeError, match="peer must be an int"):
        MODULES[module].P2POp("isend", tensor, "1")
    with pytest.raises(NotImplementedError, match="tag must be 0"):
        MODULES[module].P2POp("isend", tensor, 1, None, 3)


@pytest.mark.ranks(2)
def test_wrong_batches(rank: int, world_size: int, dist: str) -> None:
    module = MODULES[dist]
    with world():
        group = module.new_group([0, 1])
        tensor = numbers(rank, 3)
        wrong: list[tuple[Any, str]] = [
            ([], "must be a list that is not empty"),
            (None, "must be a list that is not empty"),
            ([tensor], "must hold P2POps"),
            ([comm_func.P2POp("isend", tensor, 1 - rank)], "must hold P2POps"),
            (
                [module.P2POp("isend", tensor, 1 - rank), module.P2POp("irecv", tensor, 1 - rank, group)],
                "must have one group",
            ),
        ]
        for batch, words in wrong:
            with pytest.raises(TypeError, match=words) as caught:
                module.batch_isend_irecv(batch)
            assert isinstance(caught.value, ArgumentError)
        with pytest.raises(RankError, match=r"P2POp\.peer must be one of"):
            module.batch_isend_irecv([module.P2POp("isend", tensor, 2)])
        world_name = "hccl_world_group"  # another name for None
        received = np.zeros(3, "float32")
        both = [module.P2POp("isend", tensor, 1 - rank), module.P2POp("irecv", received, 1 - rank, world_name)]
        module.batch_isend_irecv(both)[0].wait()
        check("numpy", received, numbers(1 - rank, 3))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", ["mint", "ops", "comm_func"])
def test_wrong_arguments(rank: int, world_size: int, name: str) -> None:
    module: Any = {**MODULES, "comm_func": comm_func}[name]
    with world():
        tensor, other = numbers(rank, 3), 1 - rank
        for function in (module.send, module.isend, module.recv, module.irecv):
            cases: list[tuple[tuple[Any, ...], type[Exception], str]] = [
                (([1.0], other), TypeError, "tensor must be a tensor"),
                ((tensor, WRONG_TYPE), TypeError, "(dst|src) must be an int"),
                ((tensor, True), TypeError, "(dst|src) must be an int"),
                ((tensor, 2), ValueError, "(dst|src) must be one of the group's ranks"),
                ((tensor, rank), ValueError, "(dst|src) must be another rank"),
                ((tensor, other, 0), TypeError, "group must be a str"),
                ((tensor, other, "hccl_world_group", 1.5), TypeError, "tag must be an int"),
                ((tensor, other, "no such group"), RuntimeError, "no group named"),
            ]
            for arguments, kind, words in cases:
                assert_refused(kind, words, function, *arguments)
        mint.barrier()  # nobody was told, and nothing hangs


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_received_tensors_are_returned(rank: int, world_size: int, kind: str) -> None:
    with world():
        like = make(kind, np.zeros((2, 3), "float32"))
        if rank == 0:
            assert comm_func.send(make(kind, numbers(0, (2, 3))), 1) is None
            handle = comm_func.isend(make(kind, numbers(5, (2, 3))), 1, tag=3)
            assert handle.wait() is None
        else:
            received = comm_func.recv(like)
            later, handle = comm_func.irecv(like, 0, tag=3)
            assert handle.wait() is None
            check(kind, received, numbers(0, (2, 3)))
            check(kind, later, numbers(5, (2, 3)))
        check(kind, like, np.zeros((2, 3), "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_returns(rank: int, world_size: int, kind: str) -> None:
    with world():
        other = 1 - rank
        like = make(kind, np.zeros(3, "float32"))
        batch = [
            comm_func.P2POp(comm_func.isend, make(kind, numbers(rank, (2, 3))), other),
            comm_func.P2POp("irecv", (2, 3), other, recv_dtype=make(kind, np.zeros(1, "float32")).dtype),
            comm_func.P2POp(mint.irecv, like, other),  # by its name
            comm_func.P2POp("isend", make(kind, numbers(rank + 5, 3)), other),
        ]
        sent, first, second, sent_too = comm_func.batch_isend_irecv(batch)
        check(kind, first, numbers(other, (2, 3)))
        check(kind, second, numbers(other + 5, 3))
        check(kind, sent, np.zeros((), "float32"))
        check(kind, sent_too, np.zeros((), "float32"))
        check(kind, like, np.zeros(3, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool_"])
def test_a_batch_returns_what_is_described_in_mindspore_s_words(rank: int, world_size: int, dtype: str) -> None:
    with world():
        other, described = 1 - rank, getattr(mindspore, dtype)
        sent = mindspore.Tensor([[rank, 1]]).astype(described)
        batch = [comm_func.P2POp("isend", sent, other), comm_func.P2POp("irecv", (1, 2), other, recv_dtype=described)]
        received = comm_func.batch_isend_irecv(batch)[1]
        assert received.dtype == described
        assert received.astype(mindspore.int32).asnumpy().tolist() == [[other, 1]]


@pytest.mark.ranks(2)
def test_wrong_batches_that_return(rank: int, world_size: int) -> None:
    tensor = numbers(rank, 3)
    with pytest.raises(ValueError, match="op must be isend or irecv, got 'send'"):
        comm_func.P2POp("send", tensor, 1)
    with pytest.raises(ValueError, match="op must be isend or irecv, got 'recv'"):
        comm_func.P2POp(mint.recv, tensor, 1)
    with pytest.raises(TypeError, match="op must be a str or a function"):
        comm_func.P2POp(1, tensor, 1)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="tensor must be a tensor or a shape"):
        comm_func.P2POp("irecv", [2, 3], 1)
    with pytest.raises(TypeError, match="peer must be an int"):
        comm_func.P2POp("irecv", tensor, "1")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="recv_dtype must be a dtype"):
        comm_func.P2POp("irecv", (2, 3), 1, recv_dtype="float32")
    with pytest.raises(NotImplementedError, match="tag must be 0"):
        comm_func.P2POp("irecv", tensor, 1, tag=1)
    with world():
        with pytest.raises(TypeError, match="must be a list that is not empty"):
            comm_func.batch_isend_irecv([])
        with pytest.raises(TypeError, match="must hold P2POps"):
            comm_func.batch_isend_irecv([mint.P2POp("isend", tensor, 1 - rank)])  # type: ignore[list-item]  # the mistake
        with pytest.raises(ValueError, match="recv_dtype must be given"):
            comm_func.batch_isend_irecv([comm_func.P2POp("irecv", (2, 3), 1 - rank)])
        with pytest.raises(TensorError, match="must be a tensor to be sent"):
            comm_func.batch_isend_irecv([comm_func.P2POp("isend", (2, 3), 1 - rank, recv_dtype=mindspore.float32)])


@pytest.mark.ranks(2)
def test_a_tensor_that_is_being_differentiated_is_not_received_into(rank: int, world_size: int) -> None:
    """What MindSpore recorded of it would go on into the gradient. A tensor that nothing is recorded of is no trouble."""
    other = 1 - rank

    def overwriting(tensor: Any) -> Any:
        doubled = tensor * 2
        mint.recv(doubled, other)
        return doubled.sum()

    def sending(tensor: Any) -> Any:
        doubled = tensor * 2
        handle = mint.isend(mindspore.ops.stop_gradient(doubled), other)
        received = make("mindspore", np.zeros(3, "float32"))
        mint.recv(received, other)
        handle.wait()
        return (doubled * received).sum()

    with world():
        with pytest.raises(UnsupportedError, match="of which a gradient is being recorded"):
            mindspore.grad(overwriting)(make("mindspore", numbers(rank, 3)))
        gradient = mindspore.grad(sending)(make("mindspore", numbers(rank, 3)))
        check("mindspore", gradient, 4 * numbers(other, 3))
