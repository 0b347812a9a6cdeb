"""What the engine reads from each kind of tensor, in a world of one: views, dtypes, and the traps of each framework."""

from __future__ import annotations

import array
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import new_like
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


ARRAYS: dict[str, Callable[[], np.ndarray]] = {
    "plain": lambda: np.arange(6.0),
    "backwards": lambda: np.arange(6.0)[::-1],
    "steps": lambda: np.arange(18.0)[::3],
    "transposed": lambda: np.arange(6.0).reshape(2, 3).T,
    "no elements": lambda: np.zeros((0, 3)),
    "no dimensions": lambda: np.array(5.0),
    "unaligned": lambda: np.frombuffer(bytes(1) + np.arange(6.0).tobytes(), np.uint8)[1:].view(np.float64).copy(),
    "a field": lambda: np.array([(1, 2.0), (3, 4.0)], [("a", "i8"), ("b", "f8")])["b"],
    "steps nobody takes": lambda: np.lib.stride_tricks.as_strided(np.arange(6.0), (1, 6, 1), (3, 8, -5)),
    "one more of them": lambda: np.lib.stride_tricks.as_strided(np.arange(12.0), (1, 6), (3, 16)),
    "a class of its own": lambda: np.arange(6.0).view(type("Own", (np.ndarray,), {})),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_numpy_views_are_read_and_written(alone: ProcessGroup, kind: str) -> None:
    source = ARRAYS[kind]()
    target = np.full(source.shape, -1.0)
    copy(alone, target, source)
    assert np.array_equal(target, source)
    awkward = ARRAYS[kind]()
    awkward[...] = -1.0
    copy(alone, awkward, target)
    assert np.array_equal(awkward, target)


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQefdFD")
def test_numpy_dtypes(alone: ProcessGroup, dtype: str) -> None:
    source = (np.arange(7) % 2).astype(dtype)
    target = np.zeros_like(source)
    copy(alone, target, source)
    assert np.array_equal(target, source)
    other = np.zeros(7, "float32" if dtype == "d" else "float64")
    with pytest.raises(
        ArgumentError, match=f"must have the same dtype, got {other.dtype.name} and {source.dtype.name}"
    ):
        copy(alone, other, source)


@pytest.mark.parametrize(
    ("tensor", "told"),
    [
        (np.ones(3, ">f4"), "dtype >f4"),
        (np.ones(3, "g"), "float128"),
        (np.array([(1, 2.0), (3, 4.0)], "i1, f8")["f1"], "strides that are not a multiple of its element size"),
        (np.ones(3, np.dtype((np.int32, {"low": (np.int16, 0), "high": (np.int16, 2)}))), "dtype (numpy.int32, "),
        (np.ones(3, "M8[s]"), "datetime64"),
        (np.array(["a"]), "dtype <U1"),
        (np.zeros(3, "V0"), "dtype |V0"),
        (np.zeros(3, "V4"), "dtype |V4"),
        (np.array([None]), "object"),
        (np.array([None]), "Use a function for Python objects."),
        (np.ones(3, "M8[s]"), "Pass array.astype"),
        (np.float32(1), "must be an array, got numpy.float32"),
        (np.ndarray, "must be a tensor, got a class"),
        ([1.0, 2.0], "must be a tensor, got builtins.list"),
        (None, "must be a tensor, got builtins.NoneType"),
        ("abc", "must be a tensor, got builtins.str"),
        (np.ones((1,) * 20), "at most 16 dimensions"),
        (np.ma.masked_array(np.ones(2), [True, False]), "mask would be lost"),
    ],
    ids=repr,
)
def test_what_cannot_be_carried_is_a_tensor_error(alone: ProcessGroup, tensor: Any, told: str) -> None:
    with pytest.raises(TensorError, match=r"test: (tensor|out)") as caught:
        sum_up(alone, tensor)
    assert told in str(caught.value)


def test_a_list_that_cannot_be_iterated_is_a_tensor_error(alone: ProcessGroup) -> None:
    class Broken(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            raise KeyError("broken")

    with pytest.raises(TensorError, match="out cannot be read: KeyError: 'broken'"):
        copy(alone, Broken([np.ones(3)]), np.ones(3))


def test_outputs_must_be_writable_and_hold_each_element_once(alone: ProcessGroup) -> None:
    read_only = np.ones(3)
    read_only.flags.writeable = False
    with pytest.raises(TensorError, match="out must be writable"):
        copy(alone, read_only, np.ones(3))
    copy(alone, np.ones(3), read_only)
    with pytest.raises(TensorError, match="out must be writable"):
        copy(alone, np.broadcast_arrays(np.ones(3), np.ones((1, 3)))[0], np.ones(3))  # numpy warns of writing to it
    with pytest.raises(TensorError, match="out must not hold the same memory twice"):
        copy(alone, np.lib.stride_tricks.as_strided(np.ones(1), (3,), (0,)), np.ones(3))


def test_buffers_without_numpy(alone: ProcessGroup) -> None:
    target = bytearray(3)
    copy(alone, target, bytearray(b"abc"))
    assert target == b"abc"
    numbers = array.array("q", [0, 0])
    copy(alone, numbers, array.array("q", [1, 2]))
    assert numbers.tolist() == [1, 2]


def test_any_object_with_dlpack(alone: ProcessGroup) -> None:
    class Wrapped:
        def __init__(self, inner: np.ndarray) -> None:
            self.inner = inner

        def __dlpack__(self) -> object:
            return self.inner.__dlpack__()

    target = np.zeros(3)
    copy(alone, Wrapped(target), Wrapped(np.arange(3.0)))
    assert target.tolist() == [0, 1, 2]


def test_an_object_whose_dlpack_gives_something_else(alone: ProcessGroup) -> None:
    class Wrong:
        def __dlpack__(self) -> int:
            return 3

    with pytest.raises(TensorError, match="tensor must have a __dlpack__ that returns a capsule, got a int"):
        sum_up(alone, Wrong())


def test_a_wrong_tensor_in_a_list_is_named_by_its_place(alone: ProcessGroup) -> None:
    with pytest.raises(TensorError, match=r"out\[0\] must be a tensor, got builtins.str"):
        copy(alone, ["abc"], np.ones(3))


def test_a_new_tensor_like_one() -> None:
    new = new_like(np.ones((2, 3), np.int16), (4,))
    assert (new.shape, new.dtype) == ((4,), np.int16)
    with pytest.raises(TensorError):
        new_like(object(), (1,))


class PropertiesInCpp:
    """What another MindSpore's tensors might have in C++."""

    init = device = _dtype = _shape = property(lambda tensor: None)

    def is_contiguous(self) -> bool:
        return True

    _data_ptr = is_contiguous


@pytest.mark.parametrize(
    ("attribute", "told"), [("init", "initializer"), ("device", "device"), ("_dtype", "dtype"), ("_shape", "shape")]
)
def test_a_class_with_values_for_properties_is_refused(
    alone: ProcessGroup, monkeypatch: pytest.MonkeyPatch, attribute: str, told: str
) -> None:
    in_cpp = type("Tensor", (PropertiesInCpp,), {attribute: "CPU"})
    kind = type("Tensor", (in_cpp,), {"__module__": "mindspore"})
    context = SimpleNamespace(is_pkg_support_device=lambda device: True)
    in_module = SimpleNamespace(MSContext=SimpleNamespace(get_instance=lambda: context))
    monkeypatch.setitem(sys.modules, "mindspore", SimpleNamespace(Tensor=kind))
    monkeypatch.setitem(sys.modules, "mindspore._c_expression", in_module)
    for _ in range(2):
        with pytest.raises(
            TensorError, match=f"tensor cannot be read: TypeError: {told} is no descriptor .* but 'CPU'"
        ):
            sum_up(alone, kind())
