"""``Group.process_group``: paddle's own methods, whose ranks are those of the group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from paddle_world import VERSIONS, world

from shim.errors import MismatchError, RankError, UnsupportedError

SUM = VERSIONS["3"].ReduceOp.SUM


def of(*numbers: float) -> Any:
    return np.array(numbers, "float32")


def assert_holds(tensor: Any, *numbers: float) -> None:
    assert tensor.ravel().tolist() == list(numbers)


def none_of(count: int, size: int) -> list:
    return [of(*[-1.0] * size) for _ in range(count)]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_methods_of_a_part_of_the_world(rank: int, version: str) -> None:
    """Its group rank 1 is the world's rank 2."""
    import paddle

    with world(version) as dist:
        group = dist.new_group([2, 0])
        pg, me = group.process_group, group.rank
        if rank == 1:
            assert pg is None
            return
        assert pg is group.process_group
        assert (pg.rank(), pg.size(), pg.name()) == (rank // 2, 2, "GLOO")

        tensor = of(me, 10)
        assert pg.broadcast(tensor, 1).wait()
        assert_holds(tensor, 1, 10)
        tensor = of(me, 10)
        assert pg.broadcast(tensor, 1, False).wait()
        assert_holds(tensor, 1, 10)

        for op in (SUM, paddle.base.core.ReduceOp.SUM):
            tensor = of(me, 10)
            pg.all_reduce(tensor, op, False).wait()
            assert_holds(tensor, 1, 20)
        tensor = of(me, 10)
        assert pg.allreduce(tensor, op=paddle.base.core.ReduceOp.MAX).is_completed()
        assert_holds(tensor, 1, 10)
        tensor = of(me, 10)
        pg.reduce(tensor, 1)
        assert_holds(tensor, *((1, 20) if me == 1 else (0, 10)))

        for gather in (
            lambda out: pg.all_gather(of(me, 5), out),
            lambda out: pg.all_gather(out, of(me, 5), True),
            lambda out: pg.all_gather_into_tensor(out, of(me, 5), True),
        ):
            whole = of(*[-1] * 4)
            gather(whole)
            assert_holds(whole, 0, 5, 1, 5)
        parts = none_of(2, 2)
        pg.all_gather(parts, of(me, 5), False).wait()
        assert_holds(parts[0], 0, 5)
        assert_holds(parts[1], 1, 5)
        parts = none_of(2, 2)
        pg.gather(of(me, 5), parts, 1, True)
        for place, part in enumerate(parts):
            assert_holds(part, *((place, 5) if me == 1 else (-1, -1)))

        for scatter in (
            lambda out: pg.scatter(out, [of(8, me), of(9, me)], 1, True),
            lambda out: pg.scatter(of(8, me, 9, me), out, 1),
            lambda out: pg.scatter_tensor(out, of(8, me, 9, me), 1, False).wait(),
        ):
            mine = of(-1, -1)
            scatter(mine)
            assert_holds(mine, 8 + me, 1)
        mine = of(-1, -1)
        pg.reduce_scatter(mine, [of(1, me), of(2, me)], SUM, True)
        assert_holds(mine, 2 * (1 + me), 1)
        pg.reduce_scatter_tensor(mine, of(3, me, 4, me), SUM, True)
        assert_holds(mine, 2 * (3 + me), 1)

        for exchange in (
            lambda out: pg.alltoall(of(10 * me, 10 * me + 1), out),
            lambda out: pg.all_to_all_tensor(out, of(10 * me, 10 * me + 1), True),
            lambda out: pg.alltoall_single(of(10 * me, 10 * me + 1), out, [1, 1], [1, 1]),
            lambda out: pg.all_to_all_single(out, of(10 * me, 10 * me + 1), [], [], False).wait(),
        ):
            whole = of(-1, -1)
            exchange(whole)
            assert_holds(whole, me, 10 + me)
        # Group rank 0 keeps 1 of its rows and sends 2; 1 keeps 3 and sends none.
        rows, sizes_in, sizes_out = ((0, 1, 2), [1, 2], [1, 0]) if me == 0 else ((3, 4, 5), [0, 3], [2, 3])
        uneven = of(*[-1] * sum(sizes_out))
        pg.all_to_all_single(uneven, of(*rows), sizes_out, sizes_in, True)
        assert_holds(uneven, *((0,) if me == 0 else (1, 2, 3, 4, 5)))
        parts = none_of(2, 1)
        pg.all_to_all(parts, [of(10 * me), of(10 * me + 1)], True)
        assert_holds(parts[0], me)
        assert_holds(parts[1], 10 + me)

        if me == 0:
            assert pg.send(of(6, 7), 1).wait()
            pg.send(of(8, 9), 1, False).wait()
        else:
            for sync_op, numbers in ((True, (6, 7)), (False, (8, 9))):
                tensor = of(-1, -1)
                pg.recv(tensor, 0, sync_op).wait()
                assert_holds(tensor, *numbers)
        assert pg.barrier().wait()
        assert pg.barrier(0).is_completed()


@pytest.mark.ranks(2)
def test_what_is_wrong_is_said_in_group_ranks(rank: int) -> None:
    with world() as dist:
        pg = dist.new_group([0, 1]).process_group
        for call in (
            lambda root: pg.broadcast(of(1), root),
            lambda root: pg.reduce(of(1), root),
            lambda root: pg.gather(of(1), [], root, True),
        ):
            error, text = (
                (RankError, "must be a group rank, in 0..1, got 7") if rank else (MismatchError, "rank 1: refused")
            )
            with pytest.raises(error, match=text):
                call(7 if rank else 0)
        for call in (lambda: pg.send(of(1), 2), lambda: pg.recv(of(1), -1)):
            with pytest.raises(RankError, match=r"must be a group rank, in 0\.\.1"):
                call()
        pg.barrier()


@pytest.mark.ranks(1)
def test_it_has_the_methods_of_paddles_own() -> None:
    import paddle

    with world() as dist:
        pg = dist.get_group().process_group
        theirs = {name for name in dir(paddle.base.core.ProcessGroup) if name.islower() and not name.startswith("__")}
        assert theirs - {"_pybind11_conduit_v1_"} <= set(dir(pg))
        for name in theirs:
            if name.endswith(("_on_calc_stream", "_partial", "connect", "_coalescing")):
                with pytest.raises(UnsupportedError, match=rf"paddle\.distributed\.ProcessGroup\.{name}: .*\n\w"):
                    getattr(pg, name)(of(1), 0)
        with pytest.raises(UnsupportedError, match="Leave use_calc_stream out"):
            pg.gather(of(1), [], 0, True, True)
        assert not hasattr(pg, "timeout")
