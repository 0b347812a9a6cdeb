"""torch.distributed.nn.functional: what is returned and written, on every rank, with any framework's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, everyone, make, numbers
from torch_world import KINDS, REDUCTIONS, assert_usable, torch_numbers, world
from wrong_calls import assert_refused, named

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
import shim.frontends.torch.distributed.nn as nn_package
import shim.frontends.torch.distributed.nn.functional as nn
from shim.errors import MismatchError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(rank: int, world_size: int, kind: str, op: str) -> None:
    with world():
        tensor = make(kind, numbers(rank, (2, 3)))
        combined = REDUCTIONS[op](everyone(world_size, (2, 3)), axis=0)
        chosen = getattr(dist.ReduceOp, op)
        check(kind, nn.all_reduce(tensor, chosen), combined)
        for dst in range(world_size):
            check(kind, nn.reduce(tensor, dst, chosen), combined if rank == dst else np.zeros((2, 3)))
        check(kind, tensor, numbers(rank, (2, 3)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduce_scatter(rank: int, world_size: int, kind: str, op: str) -> None:
    def part(of: int, to: int) -> np.ndarray:
        return numbers(of + 10 * to, (to, 2))

    with world():
        output = make(kind, np.zeros((rank, 2)))
        inputs = [make(kind, part(rank, to)) for to in range(world_size)]
        returned = nn.reduce_scatter(output, inputs, getattr(dist.ReduceOp, op))
        expected = REDUCTIONS[op]([part(of, rank) for of in range(world_size)], axis=0)
        check(kind, returned, expected)
        check(kind, output, expected)
        for to, tensor in enumerate(inputs):
            check(kind, tensor, part(rank, to))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (3, 2), (0, 4)])
def test_gathering(rank: int, world_size: int, kind: str, shape: tuple) -> None:
    with world():
        tensor = make(kind, numbers(rank, shape))
        gathered = nn.all_gather(tensor)
        assert isinstance(gathered, tuple)
        assert len(gathered) == world_size
        for other, seen in enumerate(gathered):
            check(kind, seen, numbers(other, shape))
        for dst in range(world_size):
            gathered = nn.gather(tensor, dst)
            assert isinstance(gathered, tuple)
            for other, seen in enumerate(gathered):
                check(kind, seen, numbers(other, shape) if rank == dst else np.zeros(shape))


@pytest.mark.ranks(1)
def test_other_world_sizes(rank: int, world_size: int) -> None:
    with world():
        tensor, last = numbers(rank, (2,)), world_size - 1
        all_of_them = everyone(world_size, (2,))
        check("numpy", nn.broadcast(tensor, last), numbers(last, (2,)))
        check("numpy", nn.all_reduce(tensor), np.sum(all_of_them, axis=0))
        check("numpy", np.stack(nn.all_gather(tensor)), np.stack(all_of_them))
        check("numpy", nn.reduce(tensor, last), np.sum(all_of_them, axis=0) if rank == last else np.zeros(2))
        check("numpy", np.stack(nn.gather(tensor)), np.stack(all_of_them) * (rank == 0))
        parts = [numbers(rank + 10 * to, (to,)) for to in range(world_size)]
        check("numpy", nn.scatter(parts, last), numbers(last + 10 * rank, (rank,)))
        total = np.sum([numbers(of + 10 * rank, (rank,)) for of in range(world_size)], axis=0)
        check("numpy", nn.reduce_scatter(np.zeros(rank), parts), total)
        turned = nn.all_to_all_single(np.zeros(world_size), numbers(rank, world_size))
        check("numpy", turned, np.array([numbers(of, world_size)[rank] for of in range(world_size)]))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_shapes_that_differ_by_rank(rank: int, world_size: int, kind: str) -> None:
    with world():
        tensor = make(kind, numbers(rank, (rank, 2)))
        for other, seen in enumerate(nn.all_gather(tensor)):
            check(kind, seen, numbers(other, (other, 2)))
        for other, seen in enumerate(nn.gather(tensor, 2)):
            check(kind, seen, numbers(other, (other, 2)) if rank == 2 else np.zeros((other, 2)))
        parts = [make(kind, numbers(rank + 10 * to, (to, 2))) for to in range(world_size)]
        check(kind, nn.scatter(parts, 1), numbers(1 + 10 * rank, (rank, 2)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_scatter_from_every_rank(rank: int, world_size: int, kind: str) -> None:
    with world():
        for src in range(world_size):
            parts = [make(kind, numbers(rank + 10 * to, (2,))) for to in range(world_size)]
            check(kind, nn.scatter(parts, src), numbers(src + 10 * rank, (2,)))
            check(kind, parts[rank], numbers(rank + 10 * rank, (2,)))
        if kind == "torch":
            check(kind, nn.scatter(parts if rank == 0 else None), numbers(10 * rank, (2,)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_gather_base(rank: int, world_size: int, kind: str) -> None:
    with world():
        whole = np.stack(everyone(world_size, (2, 2)))
        for expected in (whole, np.concatenate(whole)):
            output = make(kind, np.zeros_like(expected))
            check(kind, nn._all_gather_base(output, make(kind, numbers(rank, (2, 2)))), expected)
            check(kind, output, expected)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_to_all_with_a_size_for_each_pair(rank: int, world_size: int, kind: str) -> None:
    def part(of: int, to: int) -> np.ndarray:
        return numbers(of + 10 * to, (of + 2 * to, 2))

    with world():
        inputs = [make(kind, part(rank, to)) for to in range(world_size)]
        outputs = [make(kind, np.zeros_like(part(of, rank))) for of in range(world_size)]
        returned = nn.all_to_all(outputs, inputs)
        assert isinstance(returned, tuple)
        for of in range(world_size):
            check(kind, returned[of], part(of, rank))
            check(kind, outputs[of], part(of, rank))
        expected = np.concatenate([part(of, rank) for of in range(world_size)])
        output = make(kind, np.zeros_like(expected))
        into = [part(of, rank).shape[0] for of in range(world_size)]
        cuts = [part(rank, to).shape[0] for to in range(world_size)]
        whole = make(kind, np.concatenate([part(rank, to) for to in range(world_size)]))
        check(kind, nn.all_to_all_single(output, whole, into, cuts), expected)
        check(kind, output, expected)
        turned = nn.all_to_all_single(make(kind, np.zeros(world_size)), make(kind, numbers(rank, world_size)))
        check(kind, turned, np.array([numbers(of, world_size)[rank] for of in range(world_size)]))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_subgroup_in_another_order(rank: int, world_size: int, kind: str) -> None:
    with world():
        group = dist.new_group([2, 0], sort_ranks=False)
        if rank == 1:
            with pytest.raises(ValueError, match=r"does not belong|NON_GROUP_MEMBER"):
                nn.all_reduce(make(kind, numbers(rank, 2)), group=group)
            return
        tensor = make(kind, numbers(rank, 2))
        check(kind, nn.broadcast(tensor, 2, group), numbers(2, 2))
        check(kind, nn.all_reduce(tensor, group=group), numbers(0, 2) + numbers(2, 2))
        check(kind, nn.all_gather(tensor, group)[0], numbers(2, 2))
        check(kind, nn.gather(tensor, 0, group)[0], numbers(2, 2) if rank == 0 else np.zeros(2))
        check(kind, nn.scatter([tensor, make(kind, numbers(9, 2))], 0, group), numbers(0 if rank == 2 else 9, 2))
        total = numbers(0, 2) + numbers(2, 2)
        check(kind, nn.reduce(tensor, 2, group=group), total if rank == 2 else np.zeros(2))
        for call in (nn.broadcast, nn.reduce, nn.gather, lambda x, src, group: nn.scatter([x, x], src, group)):
            with pytest.raises(ValueError, match="rank 1 is not in group"):
                call(tensor, 1, group=group)


@pytest.mark.ranks(2)
def test_tensors_of_mindspore_and_paddle(rank: int, world_size: int) -> None:
    import mindspore  # before paddle, whose libraries clash otherwise  # noqa: F401
    import paddle  # for ``make``, which imports nothing  # noqa: F401

    with world():
        for kind in ("mindspore", "paddle"):
            tensor = make(kind, numbers(rank, (2, 2), "float32"))
            both = [numbers(other, (2, 2), "float32") for other in range(2)]
            check(kind, nn.broadcast(tensor, 1), both[1])
            check(kind, nn.all_reduce(tensor, dist.ReduceOp.MAX), np.max(both, axis=0))
            check(kind, nn.reduce(tensor, 0), np.sum(both, axis=0) if rank == 0 else np.zeros_like(both[0]))
            check(kind, nn.all_gather(tensor)[1], both[1])
            check(kind, nn.gather(tensor, 1)[0], both[0] if rank == 1 else np.zeros_like(both[0]))
            check(kind, nn.scatter([tensor, tensor], 1), both[1])
            output = make(kind, np.zeros((2, 2), "float32"))
            check(kind, nn.reduce_scatter(output, [tensor, tensor]), np.sum(both, axis=0))
            check(kind, nn.all_to_all_single(output, tensor), np.stack([both[0][rank], both[1][rank]]))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_what_a_mindspore_root_scatters_to_a_rank_that_has_nothing(rank: int, world_size: int, dtype: str) -> None:
    if rank == 0:
        import mindspore
    with world():
        tensors = [torch_numbers(other, 3, dtype) for other in range(2)]
        mine = [
            mindspore.Tensor(tensor.float().numpy() if dtype == "bfloat16" else tensor.numpy()).astype(
                getattr(mindspore, {"bool": "bool_"}.get(dtype, dtype))
            )
            for tensor in (tensors if rank == 0 else ())
        ]
        given = nn.scatter(mine or None, 0)
        if rank == 1:
            assert torch.equal(given, tensors[1])


@pytest.mark.ranks(2)
def test_a_dtype_that_torch_has_not(rank: int, world_size: int) -> None:
    with world():
        if rank == 0:
            with pytest.raises((MismatchError, TypeError)):
                nn.scatter([np.zeros(2, "datetime64[ns]"), np.zeros(2, "datetime64[ns]")], 0)
        else:
            with pytest.raises((MismatchError, UnsupportedError)):
                nn.scatter(None, 0)
        check("numpy", nn.all_reduce(np.ones(1)), np.full(1, 2.0))


@pytest.mark.ranks(2)
def test_torch_tensors_into_arrays(rank: int, world_size: int) -> None:
    with world():
        tensor = torch.from_numpy(numbers(rank, 2)).requires_grad_()
        both = everyone(2, 2)
        output = np.zeros(4)
        assert nn._all_gather_base(output, tensor) is output
        check("numpy", output, np.concatenate(both))
        check("numpy", nn.reduce_scatter(np.zeros(2), [tensor, tensor]), both[0] + both[1])
        check("numpy", nn.all_to_all_single(np.zeros(2), tensor), np.array([both[0][rank], both[1][rank]]))
        check("numpy", nn.all_to_all([np.zeros(2), np.zeros(2)], [tensor, tensor])[1], both[1])
        output = np.zeros(2)
        assert functional.all_to_all_inplace(output, tensor) is output
        check("numpy", output, np.array([both[0][rank], both[1][rank]]))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_dtypes(rank: int, world_size: int, dtype: str) -> None:
    with world():
        tensor = torch_numbers(rank, (3,), dtype)
        both = [torch_numbers(other, (3,), dtype) for other in range(2)]
        assert torch.equal(nn.all_reduce(tensor), both[0] + both[1])
        assert torch.equal(nn.scatter([tensor, tensor] if rank == 1 else None, 1), both[1])
        assert all(map(torch.equal, nn.all_gather(tensor), both))


@pytest.mark.parametrize("name", ["broadcast", "reduce_scatter", "all_gather", "all_to_all_single", "all_reduce"])
@pytest.mark.ranks(1)
def test_torch_warns_of_these(rank: int, world_size: int, name: str) -> None:
    with world():
        one = np.ones(1)
        arguments = {"broadcast": (one, 0), "reduce_scatter": (one, [one]), "all_to_all_single": (one.copy(), one)}
        with pytest.warns(FutureWarning, match=f"nn.functional.{name}; call") as caught:
            getattr(nn, name)(*arguments.get(name, (one,)))
        assert caught[0].filename == __file__


def test_the_package_has_the_functions_too() -> None:
    for name in nn_package.__all__:
        if name != "functional":
            assert getattr(nn_package, name) is getattr(nn, name)


def test_before_initialisation() -> None:
    with pytest.raises(ValueError, match=r"nn\.functional\.all_reduce.*not initialised"):
        nn.all_reduce(np.ones(1))


X = np.ones(2)
WRONG: dict[str, tuple[type[Exception], str, Any]] = {
    "no tensor to reduce": (TypeError, "tensor must be a tensor", lambda n: nn.all_reduce([1.0])),
    "no tensor to gather": (TypeError, "tensor must be a tensor", lambda n: nn.all_gather(None)),
    "no reduce op": (TypeError, "op", lambda n: nn.all_reduce(X, "sum")),
    "no such op of complex numbers": (ValueError, "op", lambda n: nn.all_reduce(X * 1j, dist.ReduceOp.PRODUCT)),
    "an op of bits": (ValueError, "BAND", lambda n: nn.all_reduce(X, dist.ReduceOp.BAND)),
    "no such rank": (ValueError, "rank 7 is not in group", lambda n: nn.broadcast(X, 7)),
    "a rank that is none": (ValueError, "src must be an integer", lambda n: nn.broadcast(X, "0")),
    "one part too few": (ValueError, "tensors must be a list", lambda n: nn.scatter([X] * (n - 1), 0)),
    "no parts": (ValueError, "tensors must be a list", lambda n: nn.scatter(X, 0)),
    "one input too many": (ValueError, "input_list must be", lambda n: nn.reduce_scatter(X, [X] * (n + 1))),
    "an output of another size": (ValueError, "output", lambda n: nn.reduce_scatter(np.ones(3), [X] * n)),
    "outputs missing": (ValueError, "output_tensor_list", lambda n: nn.all_to_all([], [X] * n)),
    "no output": (TypeError, "output must be a tensor", lambda n: nn.all_to_all_single(None, np.ones(n))),
    "nothing to cut": (ValueError, "output must have a dimension", lambda n: nn.all_to_all_single(np.ones(()), X)),
    "split sizes": (ValueError, "input_split_sizes", lambda n: nn.all_to_all_single(X.copy(), X, [1] * n, [3] * n)),
    "a base of another shape": (ValueError, "output_tensor", lambda n: nn._all_gather_base(np.ones(5), X)),
    "too many dimensions": (NotImplementedError, "16 dimensions", lambda n: nn.all_gather(np.ones((1,) * 17))),
}


@pytest.mark.ranks(2)
def test_a_wrong_argument_on_one_rank_is_an_error_on_all(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in WRONG.items():
            with named(name):
                if rank == 0:
                    told = assert_refused(kind, words, wrong, world_size)
                    assert told.startswith("torch.distributed.nn.functional.")
                else:
                    assert_refused(MismatchError, None, nn.all_reduce, X)
                assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_a_placeholder_of_another_shape(rank: int, world_size: int) -> None:
    with world():
        with pytest.raises(RuntimeError, match="like the root's" if rank else None):
            nn.scatter([np.ones(2 + rank)] * 2, 0)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_no_call_of_a_users_is_taken_for_shapes(rank: int, world_size: int) -> None:
    with world():
        came, tensor = np.zeros(22 * world_size, np.int64), np.ones(2)
        for announced, send in (
            ("gathering tensors of any shapes", lambda: nn.all_gather(tensor)),
            ("scattering tensors of any shapes", lambda: nn.scatter([tensor] * world_size, 0)),
        ):
            with pytest.raises(MismatchError, match=rf"rank 0: {announced}, at "):
                send() if rank == 0 else dist.all_gather_single(came, np.zeros(22, np.int64))
            assert not came.any()
        assert_usable(rank, world_size)
