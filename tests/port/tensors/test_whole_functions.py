"""Whole functions with collectives, ported with their tensors: the target's tensors on the target's frontend give the original's values."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shim.port import Plan, port_source
from shim.port.apis import APIS

SOURCE = Path(__file__).with_name("sources") / "gathering.py"
REMARKS = {"device-not-given", "chunk-must-be-even", "private-name"}
TARGETS = ["paddle_3", "mindspore"]


def loaded(api: str, source: str) -> Any:
    """The functions of *source*, ported to *api*, on its frontend."""
    ported = port_source(source, Plan("torch", api, scope="statements"))
    assert {entry.rule for entry in ported.entries} <= REMARKS, ported.entries
    assert api == "torch" or "import torch" not in ported.text
    names: dict[str, Any] = {}
    exec(compile(ported.text, f"<{api}>", "exec"), names)
    start = "init_parallel_env" if APIS[api].framework == "paddle" else "init_process_group"
    if not names["dist"].is_initialized():
        getattr(names["dist"], start)()
    return SimpleNamespace(**names)


def tensor(api: str, array: np.ndarray) -> Any:
    framework = importlib.import_module(APIS[api].framework)
    return {"torch": lambda: framework.from_numpy(array.copy()), "paddle": lambda: framework.to_tensor(array)}.get(
        framework.__name__, lambda: framework.Tensor(array)
    )()


def array(value: Any) -> np.ndarray:
    return value.asnumpy() if hasattr(value, "asnumpy") else value.detach().numpy()


def computed(api: str, rank: int) -> list[np.ndarray]:
    functions = loaded(api, SOURCE.read_text())
    part = tensor(api, np.arange(6, dtype=np.float32).reshape(3, 2) + 10 * rank)
    own = tensor(api, np.arange(2.0 * (rank + 1), dtype=np.float32).reshape(rank + 1, 2) - rank)
    found = [
        functions.gather_last_dimension(part),
        functions.gather_last_dimension(part.T),
        *functions.gather_unequal(own),
    ]
    x = np.array([1.0, -2.0, 3.0], dtype=np.float32) * (rank + 1)
    for class_ in (functions.SumForward, functions.SumBackward):
        found.append(gradient(api, class_, tensor(api, x)))
    return [value if isinstance(value, np.ndarray) else array(value) for value in found]


def gradient(api: str, class_: Any, x: Any) -> Any:
    """The gradient of the sum of the squares of what *class_* makes of *x*."""
    if api == "mindspore":
        return importlib.import_module("mindspore").grad(lambda given: (class_.apply(given, None) ** 2).sum())(x)
    if api == "torch":
        x.requires_grad_()
    else:
        x.stop_gradient = False
    (class_.apply(x, None) ** 2).sum().backward()
    return x.grad


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_functions_with_the_targets_tensors(rank: int, target: str) -> None:
    expected = computed("torch", rank)
    found = computed(target, rank)
    assert len(found) == len(expected) == 6
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


AVERAGE = """
import torch.distributed as dist

def average(parameters, losses: dict):
    for p in parameters:
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    for name in losses:
        dist.all_reduce(losses[name])
        losses[name] /= dist.get_world_size()
"""


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore")
def test_gradients_and_elements_are_changed_in_place(rank: int) -> None:
    found = []
    for api in ("torch", "paddle_3"):
        x, loss = (tensor(api, np.array([1.0, 2.0], dtype=np.float32) * (rank + k)) for k in (1, 2))
        gradient(api, SimpleNamespace(apply=lambda x, _: x), x)
        kept = loss
        loaded(api, AVERAGE).average([x], {"a": loss})
        found.append((array(x.grad), array(kept)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_array_equal(found[0][1], [2.5, 5.0])


AN_IMPORT = (
    "from mindspore.ops import operations as P\nimport mindspore.mint.distributed as dist\nsum_of = P.AllReduce()\n"
)
OF_PRIMITIVES = [
    f"from mindspore import Tensor\n{AN_IMPORT}def run(x: Tensor):\n    return sum_of(x)\n",
    f"{AN_IMPORT}def run(x):\n    y = sum_of(x)\n    dist.broadcast(y, 0)\n    return y if y.is_floating_point() else y * 2\n",
]


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["torch", "paddle_3"])
@pytest.mark.parametrize("source", OF_PRIMITIVES)
def test_an_import_goes_whose_uses_are_all_ported(rank: int, source: str, target: str) -> None:
    text = port_source(source, Plan("mindspore", target, scope="files")).text
    assert "operations" not in text
    names: dict[str, Any] = {}
    exec(compile(text, "<ported>", "exec"), names)
    start = "init_parallel_env" if target == "paddle_3" else "init_process_group"
    getattr(names["dist"], start)()
    np.testing.assert_array_equal(array(names["run"](tensor(target, np.arange(3.0) + rank))), np.arange(3.0) * 2 + 1)


def test_annotations_of_classes_that_the_target_lacks_say_object() -> None:
    source = "import torch\nimport torch.distributed as dist\ndef f(x: torch.Tensor, where: 'torch.device' = None, how: torch.device = {}):\n    dist.broadcast(x, 0)\n"
    ported = port_source(source.format("None"), Plan("torch", "paddle_3", scope="files"))
    assert "how: object = None" in ported.text
    value = port_source(source.format("torch.device('cpu')"), Plan("torch", "paddle_3", scope="files"))
    assert [entry.rule for entry in value.entries if entry.kind == "left"] == ["tensor-function"]
