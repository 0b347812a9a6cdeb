"""What the engine reads from torch's tensors: every dtype, views, and the traps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch_world import FLOAT8_DTYPES, TORCH_DTYPES

from shim import _native
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import new_like, reader_for
from shim.core.tensors.samples import Sample, Versions, torch_versions
from shim.errors import ArgumentError, TensorError

ME = Caller("test", input="tensor", output="out")


@pytest.fixture(scope="module")
def alone() -> Iterator[ProcessGroup]:
    yield groups.enter_world(ME, "test", rank=0, world_size=1)
    groups.close_world()


def copy(group: ProcessGroup, output: Any, input: Any) -> None:
    calls.all_gather(ME, group, output, input).wait()


def sum_up(group: ProcessGroup, tensor: Any) -> None:
    calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()


@pytest.mark.parametrize("dtype", [*TORCH_DTYPES, *FLOAT8_DTYPES, "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_dtypes(alone: ProcessGroup, dtype: str) -> None:
    source = torch.tensor([0.0, 1.0, 1.0]).to(getattr(torch, dtype))
    target = torch.zeros(3).to(getattr(torch, dtype))
    copy(alone, target, source)
    assert torch.equal(target.view(torch.uint8), source.view(torch.uint8))
    assert new_like(target, (2, 2)).dtype == source.dtype


def test_gradients_parameters_and_views(alone: ProcessGroup) -> None:
    sum_up(alone, torch.ones(3, requires_grad=True))
    sum_up(alone, torch.nn.Parameter(torch.ones(3)))
    target = torch.zeros(3, 2)
    copy(alone, target.t(), torch.arange(6.0).reshape(2, 3))
    assert target.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        ("(torch.ones(2, dtype=torch.complex64) * 1j).conj()", "resolve_conj()"),
        ("(torch.ones(2, dtype=torch.complex64) * 1j).conj().imag", "resolve_neg()"),
        ("torch.eye(3).to_sparse()", "to_dense()"),
        ("torch.ones(3, 3).to_mkldnn()", "to_dense()"),
        ("torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)", "unbind()"),
        ("torch.empty(3, device='meta')", "torch.empty_like(tensor, device='cpu')"),
        ("torch.ones(1).expand(3)", "contiguous copy"),
    ],
)
def test_traps(alone: ProcessGroup, make: str, told: str) -> None:
    with pytest.raises(TensorError) as caught:
        sum_up(alone, eval(make, {"torch": torch}))
    hint = str(caught.value).rpartition("\n")[2]
    assert told in hint
    assert re.search(r"and read the results? there\.$", hint)
    assert (".cpu()" in hint) is False


@pytest.mark.parametrize(
    ("transformed", "name"),
    [
        (lambda function, tensor: torch.vmap(function)(tensor), "torch.vmap"),
        (lambda function, tensor: torch.func.grad(function)(tensor), "torch.func.grad or jvp"),
        (lambda function, tensor: torch.func.functionalize(function)(tensor), "torch.func.functionalize"),
    ],
)
def test_tensors_of_a_transformed_function(alone: ProcessGroup, transformed: Callable[..., Any], name: str) -> None:
    def summed(tensor: torch.Tensor) -> torch.Tensor:
        sum_up(alone, tensor)
        return tensor.sum()

    with pytest.raises(TensorError, match=rf"got what {name} passes in place of one .*\nCall it outside"):
        transformed(summed, torch.ones(3))


@pytest.mark.parametrize(
    "view",
    [
        "negative",
        "negative.detach()",
        "negative[1:2]",
        "negative.as_strided((4,), (1,))",
        "negative.detach().resize_(2)",
        "torch.nn.Parameter(negative)",
        "torch.nn.Parameter(negative, requires_grad=False)",
    ],
)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_negative_views(alone: ProcessGroup, view: str, mode: Callable[[], AbstractContextManager[Any]]) -> None:
    with mode():
        numbers = torch.full((4,), 2j, dtype=torch.complex128, requires_grad=True)
        tensor = eval(view, {"torch": torch, "negative": numbers.conj().imag})
    assert tensor.is_neg()
    with pytest.raises(TensorError, match="negative view"):
        sum_up(alone, tensor)
    total = torch.zeros(tensor.shape, dtype=torch.float64)
    calls.all_reduce(ME, alone, total, tensor.detach().resolve_neg(), ReduceOp.SUM).wait()
    assert torch.equal(total, tensor.detach())


def as_they_are(samples: list[Sample]) -> list[Sample]:
    return samples


def too_few(samples: list[Sample]) -> list[Sample]:
    return samples[:1] + samples[3:4]


def one_answer_wrong(samples: list[Sample]) -> list[Sample]:
    return [samples[0]._replace(answer=True), *samples[1:]]


def addresses_wrong(samples: list[Sample]) -> list[Sample]:
    return [sample._replace(address=sample.address + 8) for sample in samples]


@pytest.mark.parametrize(
    ("spoil", "times"), [(as_they_are, 0), (too_few, 1), (one_answer_wrong, 1), (addresses_wrong, 1)]
)
def test_a_tensor_is_asked_unless_the_bit_is_certain(
    alone: ProcessGroup, spoil: Callable[[list[Sample]], list[Sample]], times: int
) -> None:
    asked = []

    class Kind(torch.Tensor):
        def is_neg(self) -> bool:
            asked.append(self)
            return super().is_neg()

    reader = reader_for(torch.Tensor)
    is_conj, is_neg = reader.guards
    spoilt = reader._replace(guards=(is_conj, is_neg._replace(samples=spoil(list(is_neg.samples)))))
    _native.set_reader_chooser(lambda kind: spoilt)
    try:
        sum_up(alone, torch.ones(3).as_subclass(Kind))
    finally:
        _native.set_reader_chooser(reader_for)
    assert len(asked) == times
    with pytest.raises(TensorError, match="negative view"):
        sum_up(alone, torch.ones(3, dtype=torch.complex64).conj().imag.as_subclass(Kind))


def no_samples(versions: Versions) -> Versions:
    return versions._replace(samples=())


def wrong_numbers(versions: Versions) -> Versions:
    return versions._replace(read=lambda tensor: tensor._version + 1)


@pytest.mark.parametrize(("spoil", "times"), [(Versions._replace, 0), (no_samples, 1), (wrong_numbers, 1)])
def test_torch_raises_a_version_unless_its_place_is_certain(
    alone: ProcessGroup, spoil: Callable[[Versions], Versions], times: int
) -> None:
    class Kind(torch.Tensor):
        pass

    asked = []
    reader = reader_for(torch.Tensor)
    versions = reader.versions
    assert versions is not None

    def rise(tensor: Any) -> None:
        asked.append(tensor)
        versions.rise(tensor)

    spoilt = reader._replace(versions=spoil(versions._replace(rise=rise)))
    tensor = torch.ones(3).as_subclass(Kind)
    _native.set_reader_chooser(lambda kind: spoilt)
    try:
        calls.all_reduce(ME, alone, tensor, tensor, ReduceOp.SUM, now=True)
    finally:
        _native.set_reader_chooser(reader_for)
    assert tensor._version == 1
    assert len([one for one in asked if one is tensor]) == times


class WatchedDispatch(TorchDispatchMode):
    def __torch_dispatch__(self, *arguments: Any) -> Any:
        raise AssertionError("an operation that is none of the program's")


class WatchedFunctions(TorchFunctionMode):
    def __torch_function__(self, *arguments: Any) -> Any:
        raise AssertionError("a function that the program did not call")


@pytest.mark.parametrize(
    "mode", [FakeTensorMode, WatchedDispatch, WatchedFunctions, torch.inference_mode, lambda: torch.device("meta")]
)
def test_a_reader_is_the_same_in_every_mode(mode: Callable[[], AbstractContextManager[Any]]) -> None:
    torch_versions.cache_clear()
    with mode():
        reader = reader_for(torch.Tensor)
    samples = reader.guards[1].samples
    assert reader.versions is not None
    assert len({tensor._version for tensor in reader.versions.samples}) == 5
    assert {sample.answer for sample in samples} == {True, False}
    assert all(sample.tensor.is_neg() == sample.answer for sample in samples)


def test_a_tensor_without_memory(alone: ProcessGroup) -> None:
    with FakeTensorMode():
        fake = torch.ones(3)
    with pytest.raises(TensorError, match="FakeTensor"):
        sum_up(alone, fake)


def test_float8_moves_but_is_not_reduced(alone: ProcessGroup) -> None:
    with pytest.raises(ArgumentError, match="float8_e5m2"):
        sum_up(alone, torch.zeros(3).to(torch.float8_e5m2))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.ranks(3)
def test_complex32_is_added_and_moved_in_its_parts(rank: int, world_size: int) -> None:
    group = groups.enter_world(ME, "test")
    parts = [(torch.arange(6.0).reshape(3, 2) + 10 * number).half() for number in range(world_size)]
    total = sum(part.float() for part in parts)
    for op, wanted in ((ReduceOp.SUM, total.half()), (ReduceOp.AVG, (total / world_size).half())):
        tensor = torch.view_as_complex(parts[rank].clone())
        calls.all_reduce(ME, group, tensor, tensor, op, now=True)
        assert torch.equal(torch.view_as_real(tensor), wanted)
    gathered = torch.zeros(3 * world_size, dtype=torch.complex32)
    calls.all_gather(ME, group, gathered, torch.view_as_complex(parts[rank]), now=True)
    assert torch.equal(torch.view_as_real(gathered), torch.cat(parts))
    for op in (ReduceOp.PRODUCT, ReduceOp.MAX):
        with pytest.raises(ArgumentError, match="not defined for elements of type complex32"):
            calls.all_reduce(ME, group, tensor, tensor, op, now=True)
    groups.close_world()


class WatchedStorages(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        return object() if "untyped_storage" in str(function) else function(*arguments, **(keywords or {}))


def test_a_call_in_the_background_asks_no_mode_of_the_programs(alone: ProcessGroup) -> None:
    tensor = torch.ones(3)
    with WatchedStorages():
        work = calls.all_reduce(ME, alone, tensor, tensor, ReduceOp.SUM)
        work.start()
        work.wait()
    assert tensor.tolist() == [1, 1, 1]
