"""What the engine reads from torch's tensors: every dtype, views, and the traps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import new_like, reader_for
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


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "uint32",
        "int32",
        "uint64",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
    ],
)
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
        ("torch.empty(3, device='meta')", "device meta"),
        ("torch.ones(1).expand(3)", "contiguous copy"),
    ],
)
def test_traps(alone: ProcessGroup, make: str, told: str) -> None:
    with pytest.raises(TensorError) as caught:
        sum_up(alone, eval(make, {"torch": torch}))
    assert told in str(caught.value)


def test_negative_views_of_any_kind(alone: ProcessGroup) -> None:
    numbers = torch.ones(4, dtype=torch.complex128, requires_grad=True)
    negative = numbers.conj().imag
    with torch.inference_mode():
        made_in_inference = torch.zeros(3, dtype=torch.complex64).conj().imag
    contiguous = negative.as_strided((4,), (1,))
    for view in (
        negative,
        negative.detach(),
        negative[1:2],
        contiguous,
        torch.nn.Parameter(negative),
        made_in_inference,
    ):
        assert view.is_neg()
        with pytest.raises(TensorError, match="negative view"):
            sum_up(alone, view.detach())
        sum_up(alone, view.detach().resolve_neg())


def test_tensors_are_not_asked_whether_they_are_negative() -> None:
    """The method is asked of samples, and of a tensor in which the bit is set; in a process that has not read any before."""
    program = """
import torch
asked = []
is_neg = torch.Tensor.is_neg
torch.Tensor.is_neg = lambda tensor: asked.append(tensor.shape) or is_neg(tensor)
import shim.frontends.torch.distributed as dist
dist.init_process_group(rank=0, world_size=1)
dist.all_reduce(torch.ones(3))
asked.clear()
dist.all_reduce(torch.ones(3)), dist.all_reduce(torch.zeros(2, dtype=torch.complex64).imag)
assert not asked, asked
try:
    dist.all_reduce(torch.ones(5, dtype=torch.complex64).conj().imag)
except TypeError:
    assert asked == [(5,)], asked
else:
    raise AssertionError("carried")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


class Refusing(TorchDispatchMode):
    def __torch_dispatch__(self, *arguments: Any) -> Any:
        raise RuntimeError("nothing is computed here")


@pytest.mark.parametrize("mode", [FakeTensorMode, Refusing])
def test_a_reader_is_chosen_where_torch_makes_no_plain_tensors(mode: Any) -> None:
    with mode():
        reader = reader_for(torch.Tensor)
    assert [len(guard.samples) for guard in reader.guards] == [0, 0]


@pytest.mark.parametrize("mode", ["torch.inference_mode()", "torch.no_grad()", "torch.device('meta')"])
def test_a_reader_is_chosen_where_torch_makes_others(mode: str) -> None:
    with eval(mode):
        samples = reader_for(torch.Tensor).guards[1].samples
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
