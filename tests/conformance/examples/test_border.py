"""What goes over the border between an example and a frontend, and what comes back; the framework and the frontend are made up here.

The example has made-up tensors, the frontend sees NumPy's: over the same memory, and once more as copies.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shim.conformance.examples import conversion
from shim.conformance.examples.border import Border, ForeignResultError
from shim.conformance.examples.conversion import InapplicableError


class Tensor:
    """A made-up framework's tensor."""

    def __init__(self, elements: Any, dtype: str = "float32") -> None:
        self.array = np.asarray(elements, dtype)

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)

    def stride(self) -> list[int]:
        return [stride // self.array.itemsize for stride in self.array.strides]

    def data_ptr(self) -> int:
        return self.array.ctypes.data


class Dtype(str):
    """A made-up framework's dtype."""


class Work:
    """What asynchronous functions return: it writes *value* to *output* when it is waited for."""

    __slots__ = ("output", "value")

    def __init__(self, output: Any, value: float) -> None:
        self.output = output
        self.value = value

    def wait(self) -> bool:
        self.output[...] = self.value
        return True

    def result(self) -> list[Any]:
        return [self.output]

    def is_completed(self) -> bool:
        return False


class P2POp:
    def __init__(self, op: Callable[..., Any], tensor: Any, peer: int = 0) -> None:
        assert op in (double, fill)
        assert type(tensor) is np.ndarray
        self.tensor = tensor


class Primitive:
    def __call__(self, tensor: Any) -> Any:
        assert type(tensor) is np.ndarray
        return tensor + 1


class Store:
    def __init__(self, name: str) -> None:
        self.name = name


seen: list[Any] = []


def double(output: Any, input: Any = None) -> None:
    assert type(output) is np.ndarray
    output[...] = 2 * (output if input is None else input)


def fill(outputs: list[Any], input: Any) -> None:
    for number, output in enumerate(outputs):
        output[...] = input + number


def append(outputs: list[Any], input: Any) -> None:
    outputs += [input.copy(), input + 1]


def begin(output: Any) -> Work:
    return Work(output, 7)


def write(output: Any) -> Work:
    output[...] = 4
    return Work(output, 4)


def append_later(outputs: list[Any], input: Any) -> Work:
    outputs.append(input.copy())
    return Work(outputs[0], 6)


def batch(operations: list[P2POp]) -> list[Work]:
    return [Work(operation.tensor, 5) for operation in operations]


def sums(*inputs: Any) -> tuple[Any, ...]:
    return tuple(each.sum(keepdims=True) for each in inputs)


def same(input: Any) -> Any:
    return input


def look(*things: Any, **named: Any) -> None:
    seen.append((things, named))


def all_gather_object(objects: list[Any], thing: Any) -> None:
    objects[0] = thing


def foreign(input: Any) -> Any:
    return Tensor([1])


@pytest.fixture(params=["shared", "copied"])
def border(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Border:
    """The border of a frontend with NumPy's arrays, for examples with made-up tensors."""
    module = types.ModuleType("made_up")
    module.Tensor = Tensor  # type: ignore[attr-defined]  # what frameworks call theirs
    monkeypatch.setitem(sys.modules, "made_up", module)
    monkeypatch.setitem(conversion.LACKING, "made_up", ())
    monkeypatch.setitem(conversion._MAKERS, "made_up", _over)
    if request.param == "copied":
        monkeypatch.setitem(conversion._MAKERS, "numpy", lambda array, dtype: array.copy())
        monkeypatch.setitem(conversion._MAKERS, "made_up", lambda array, dtype: Tensor(array.copy(), dtype))
    for kind in (Work, P2POp, Primitive, Store):
        monkeypatch.setattr(kind, "__module__", "shim.frontends.made_up")
    monkeypatch.setattr(sys.modules[__name__], "seen", [])
    return Border("made_up", "numpy")


def _over(array: Any, dtype: str) -> Tensor:
    made = Tensor([])
    made.array = array
    return made


def elements(*tensors: Tensor) -> list[Any]:
    assert all(type(tensor) is Tensor for tensor in tensors)
    return [tensor.array.tolist() for tensor in tensors]


def test_outputs_are_written_in_place(border: Border) -> None:
    tensor, other = Tensor([1, 2]), Tensor([0, 0])
    border.through(double)(tensor)
    border.through(double)(output=other, input=tensor)
    assert elements(tensor, other) == [[2, 4], [4, 8]]
    assert border.crossed == 3


def test_parts_of_tensors_are_written_in_place(border: Border) -> None:
    whole = Tensor(np.arange(6).reshape(2, 3))
    border.through(double)(_over(whole.array[:, 1], "float32"))
    assert elements(whole) == [[[0, 2, 2], [3, 8, 5]]]


def test_outputs_in_lists_are_written_and_the_list_keeps_them(border: Border) -> None:
    outputs = [Tensor([0, 0]), Tensor([0, 0])]
    before = list(outputs)
    border.through(fill)(outputs, Tensor([1, 2]))
    assert elements(*outputs) == [[1, 2], [2, 3]]
    assert all(a is b for a, b in zip(outputs, before, strict=True))


def test_a_list_is_filled_with_the_example_s_tensors(border: Border) -> None:
    outputs: list[Tensor] = []
    border.through(append)(outputs, Tensor([1, 2]))
    assert elements(*outputs) == [[1, 2], [2, 3]]


def test_what_is_returned_is_the_example_s(border: Border) -> None:
    found = border.through(sums)(Tensor([1, 2]), Tensor([3]))
    assert type(found) is tuple
    assert elements(*found) == [[3], [3]]
    tensor = Tensor([1])
    assert border.through(same)(tensor) is tensor
    tensors = [tensor]
    assert border.through(same)(tensors) is tensors


def test_a_work_writes_when_it_is_waited_for_and_only_then(border: Border) -> None:
    tensor = Tensor([1, 2])
    assert border.through(Work) is Work
    work = border.through(begin)(tensor)
    assert isinstance(work, border.through(Work))
    assert type(work).__name__ == "Work"
    assert not work.is_completed()
    assert elements(tensor) == [[1, 2]]
    assert work.wait() is True
    assert elements(tensor) == [[7, 7]]
    tensor.array[...] = 3
    work.result()
    assert elements(tensor) == [[3, 3]]
    assert work.result()[0] is tensor


def test_a_work_that_has_ended_has_written(border: Border) -> None:
    tensor = Tensor([1, 2])
    border.through(write)(tensor)
    assert elements(tensor) == [[4, 4]]


def test_a_list_is_filled_with_what_is_written_later(border: Border) -> None:
    outputs: list[Tensor] = []
    work = border.through(append_later)(outputs, Tensor([1, 2]))
    assert elements(*outputs) == [[1, 2]]
    work.wait()
    assert elements(*outputs) == [[6, 6]]


def test_objects_hold_tensors_until_a_batch_of_them_ends(border: Border) -> None:
    kind = border.through(P2POp)
    tensors = [Tensor([1]), Tensor([2])]
    operations = [kind(border.through(double), tensor, peer=1) for tensor in tensors]
    assert all(isinstance(operation, P2POp) for operation in operations)
    first, second = border.through(batch)(operations)
    first.wait()
    assert elements(tensors[0]) == [[5]]
    tensors[0].array[...] = 3
    second.wait()
    assert elements(*tensors) == [[3], [5]]


def test_primitives_are_called_with_the_other_kind(border: Border) -> None:
    primitive = border.through(Primitive)()
    assert isinstance(primitive, Primitive)
    assert elements(primitive(Tensor([1, 2]))) == [[2, 3]]


def test_what_holds_no_tensor_is_as_it_was(border: Border) -> None:
    thing = object()
    border.through(look)(thing, [thing], group={"name": thing}, dtype=np.float32)
    ((things, named),) = seen
    assert things[0] is things[1][0] is named["group"]["name"] is thing
    assert named["dtype"] is np.float32
    assert border.through(Store) is Store
    assert border.through(3) == 3
    assert border.crossed == 0


def test_dtypes_become_the_other_kind_s(border: Border, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["made_up"], "dtype", Dtype, raising=False)
    border.through(look)([Dtype("Bool")], dtype=Dtype("made_up.Float32"))
    ((things, named),) = seen
    assert things == ([np.dtype("bool")],)
    assert named == {"dtype": np.dtype("float32")}
    monkeypatch.setitem(conversion.LACKING, "numpy", ("float3",))
    with pytest.raises(InapplicableError):
        border.through(look)(Dtype("made_up.Float32"))
    assert border.refusal == "numpy has no float32"


def test_tensors_in_objects_are_the_caller_s(border: Border) -> None:
    tensor, objects = Tensor([1]), [None]
    border.through(all_gather_object)(objects, tensor)
    assert objects == [tensor]
    assert border.crossed == 0


def test_a_dtype_that_is_lacking_is_refused_and_no_except_hides_it(
    border: Border, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(conversion.LACKING, "numpy", ("float3",))

    def example() -> None:
        with contextlib.suppress(Exception):
            border.through(double)([Tensor([1])])

    with pytest.raises(InapplicableError):
        example()
    assert border.refusal == "numpy has no float32"


def test_a_frontend_that_returns_another_kind_is_noticed(border: Border) -> None:
    with pytest.raises(ForeignResultError, match="tensors of numpy were given, and one of made_up was returned"):
        border.through(foreign)(Tensor([1]))


def test_a_value_that_nobody_brings_back_is_not_there(border: Border, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conversion._MAKERS, "numpy", lambda array, dtype: array.copy())
    monkeypatch.setattr("shim.conformance.examples.border._Copy.bring_back", lambda self: None)
    tensor = Tensor([1, 2])
    border.through(double)(tensor)
    assert elements(tensor) == [[1, 2]]
