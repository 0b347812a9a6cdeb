"""What numpy, torch and Paddle allocate inside ``shim.shared_allocations``, and that it is undone."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allocated_tensors import MANY, is_shared, load, of_every_framework, zeros
from core_world import world
from preloaded_programs import run_python

import shim
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.job.variables import Variables
from shim.core.reduce_ops import ReduceOp
from shim.core.shared_tensors.allocations import LEAST, chosen_to_share
from shim.errors import ArgumentError, UnsupportedError

ME = Caller("test")


def made_by_numpy() -> dict[str, Any]:
    base = np.ones(MANY, "float32")
    return {
        "empty": np.empty(MANY, "float32"),
        "zeros": np.zeros(MANY, "float32"),
        "random": np.random.default_rng(1).random(MANY),
        "operator": base + 1,
        "copy": base.copy(),
        "astype": base.astype("float64"),
        "matmul": np.ones((200, 200), "float32") @ np.ones((200, 200), "float32"),
        "concatenate": np.concatenate([base, base]),
        "view": base[5:],
    }


def made_by_torch() -> dict[str, Any]:
    torch = load("torch")
    base = torch.ones(MANY)
    module = torch.nn.Sequential(torch.nn.Linear(200, 200), torch.nn.ReLU(), torch.nn.Linear(200, 200))
    module(torch.randn(64, 200)).sum().backward()
    return {
        "empty": torch.empty(MANY),
        "zeros": torch.zeros(MANY),
        "randn": torch.randn(MANY),
        "full": torch.full((MANY,), 2.0),
        "arange": torch.arange(MANY),
        "bfloat16": torch.zeros(MANY, dtype=torch.bfloat16),
        "operator": base + 1,
        "clone": base.clone(),
        "matmul": torch.ones(200, 200) @ torch.ones(200, 200),
        "tensor": torch.tensor(list(range(MANY))),
        "resized": torch.empty(0).resize_(MANY),
        "parameter": module[0].weight,
        "gradient": module[0].weight.grad,
        "view": base[5:],
    }


def made_by_paddle() -> dict[str, Any]:
    paddle = load("paddle")
    base = paddle.ones([MANY])
    module = paddle.nn.Linear(200, 200)
    module(paddle.randn([64, 200])).sum().backward()
    return {
        "empty": paddle.empty([MANY]),
        "zeros": paddle.zeros([MANY]),
        "randn": paddle.randn([MANY]),
        "bfloat16": paddle.zeros([MANY], "bfloat16"),
        "operator": base + 1,
        "clone": base.clone(),
        "matmul": paddle.ones([200, 200]) @ paddle.ones([200, 200]),
        "to_tensor": paddle.to_tensor(list(range(MANY))),
        "parameter": module.weight,
        "gradient": module.weight.grad,
    }


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "numpy": made_by_numpy,
    "torch": made_by_torch,
    "paddle": made_by_paddle,
}


@pytest.mark.ranks(1)
@of_every_framework
def test_what_a_framework_allocates_inside_is_shared(framework: str) -> None:
    load(framework)
    with shim.shared_allocations():
        inside = MAKERS[framework]()
    assert {name: is_shared(tensor) for name, tensor in inside.items()} == dict.fromkeys(inside, True)
    outside = MAKERS[framework]()
    assert {name: is_shared(tensor) for name, tensor in outside.items()} == dict.fromkeys(outside, False)


@pytest.mark.ranks(1)
@of_every_framework
def test_small_tensors_stay_where_they_are(framework: str) -> None:
    load(framework)
    with shim.shared_allocations():
        assert not is_shared(zeros(framework, 8 * 1024 - 1))
        assert is_shared(zeros(framework, 8 * 1024))
        with shim.shared_allocations(at_least=400):
            assert not is_shared(zeros(framework, 99))
            assert is_shared(zeros(framework, 100))
        assert not is_shared(zeros(framework, 100))
    assert not is_shared(zeros(framework, 8 * 1024))


@pytest.mark.ranks(1)
@of_every_framework
def test_it_is_undone_after_an_exception(framework: str) -> None:
    load(framework)
    with pytest.raises(KeyError), shim.shared_allocations(), shim.shared_allocations(at_least=4):
        raise KeyError
    assert not is_shared(zeros(framework, MANY))


@of_every_framework
@pytest.mark.ranks(1)
def test_other_threads_keep_their_own_memory(framework: str) -> None:
    load(framework)
    seen: dict[str, bool] = {}

    def outside() -> None:
        seen["outside"] = is_shared(zeros(framework, MANY))

    def inside() -> None:
        with shim.shared_allocations():
            seen["inside"] = is_shared(zeros(framework, MANY))

    with shim.shared_allocations():
        for body in (outside, inside):
            thread = threading.Thread(target=body)
            thread.start()
            thread.join()
        assert is_shared(zeros(framework, MANY))
        assert not asyncio.run(asyncio.to_thread(lambda: is_shared(zeros(framework, MANY))))  # has the same context
    assert seen == {"outside": False, "inside": True}


def test_arrays_are_resized() -> None:
    with shim.shared_allocations():
        array = np.arange(MANY)
        array.resize(2 * MANY, refcheck=False)
        assert is_shared(array)
        assert array[MANY - 1] == MANY - 1
        assert not array[MANY:].any()
        array.resize(100, refcheck=False)
        assert np.array_equal(array, np.arange(100))
        array.resize(MANY, refcheck=False)
        assert np.array_equal(array[:100], np.arange(100))
    array.resize(2 * MANY, refcheck=False)
    assert not array[100:].any()


def test_zeros_are_zeros_in_memory_that_was_used() -> None:
    with shim.shared_allocations():
        for _ in range(3):
            array = np.zeros(MANY)
            assert not array.any()
            array[:] = 1
            del array


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "much", None, 1 << 64])
def test_a_wrong_threshold_is_told(wrong: Any) -> None:
    with (
        pytest.raises(ArgumentError, match="at_least must be a positive number of bytes"),
        shim.shared_allocations(wrong),
    ):
        pass


@pytest.mark.frameworks
@pytest.mark.ranks(1)
def test_a_framework_that_allocates_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.core.shared_tensors import allocations as shared_allocations

    load("torch")
    monkeypatch.setattr(shared_allocations, "_hooked", set())
    monkeypatch.setitem(shared_allocations._LIBRARIES, "torch", "libelsewhere.so")
    with (
        pytest.raises(UnsupportedError, match="torch allocates its tensors in an unknown way"),
        shim.shared_allocations(),
    ):
        pass
    monkeypatch.setitem(shared_allocations._LIBRARIES, "torch", "libc10.so")
    ordinary = np.zeros(10)
    monkeypatch.setitem(shared_allocations._PROBES, "torch", lambda: (ordinary, ordinary.ctypes.data))
    with (
        pytest.raises(UnsupportedError, match="torch allocates its tensors in an unknown way"),
        shim.shared_allocations(),
    ):
        pass


@pytest.mark.ranks(2, 3)
@of_every_framework
@pytest.mark.engine("shared_memory")
def test_the_other_ranks_read_it_where_it_is(framework: str, rank: int, world_size: int) -> None:
    load(framework)
    group = groups.enter_world(ME, "test")
    expected = MANY * [world_size * (world_size + 1) // 2]
    try:
        for with_hook in (False, True):
            before = mapped()
            with shim.shared_allocations(1 if with_hook else 1 << 40):
                tensor = zeros(framework, MANY) + (rank + 1)
                calls.all_reduce(ME, group, tensor, tensor, ReduceOp.SUM).wait()
            assert tensor.tolist() == expected
            assert (mapped() - before) == (world_size if with_hook else 0)  # its own, and what the others have lent
    finally:
        groups.close_group(group)


def mapped() -> int:
    with open("/proc/self/maps", encoding="ascii") as maps:
        return maps.read().count("memfd:shim")


@pytest.mark.engine("shared_memory")
@pytest.mark.ranks(2)
def test_ranges_of_one_file_are_read_over_and_over(rank: int, world_size: int) -> None:
    with world() as group, shim.shared_allocations():
        kept: list[Any] = []
        for cycle in range(1000):
            array = np.full(MANY + cycle % 50 * 100, rank + cycle)
            gathered = np.empty(2 * len(array), array.dtype)
            calls.all_gather(ME, group, gathered, array).wait()
            assert gathered[0] == cycle
            assert gathered[-1] == 1 + cycle
            kept = [*kept[-5:], array]
        assert mapped() <= 6  # the group's memory, and few files of either rank


@pytest.mark.frameworks
@pytest.mark.ranks(2)
@pytest.mark.engine("shared_memory")
def test_a_training_step_reduces_gradients_where_they_are(rank: int, world_size: int) -> None:
    torch = load("torch")
    with world() as group, shim.shared_allocations():
        torch.manual_seed(3)
        module = torch.nn.Linear(200, 300)
        optimizer = torch.optim.Adam(module.parameters())
        for step in range(3):
            optimizer.zero_grad()
            (module(torch.full((32, 200), 1.0 + rank)).sum() * (step + 1)).backward()
            gradient = module.weight.grad
            assert is_shared(gradient)
            calls.all_reduce(ME, group, gradient, gradient, ReduceOp.SUM).wait()
            assert torch.equal(gradient, torch.full((300, 200), 32 * 3.0 * (step + 1)))
            optimizer.step()
        assert mapped() > 2


@pytest.mark.parametrize(
    ("text", "bytes"), [(None, 0), ("", 0), ("off", 0), ("on", LEAST), ("1", 1), ("1048576", 1 << 20)], ids=str
)
def test_the_environment_says_from_which_size_on(text: str | None, bytes: int) -> None:
    assert inspect.signature(shim.shared_allocations).parameters["at_least"].default == LEAST
    assert chosen_to_share(Variables({} if text is None else {"SHIM_SHARED_ALLOCATIONS": text})) == bytes


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1M", "yes", "٣", " ", "9" * 5000])
def test_another_value_is_refused(text: str) -> None:
    told = "SHIM_SHARED_ALLOCATIONS must be on, off, or a number of bytes from 1 on, got "
    with pytest.raises(ArgumentError, match=told):
        chosen_to_share(Variables({"SHIM_SHARED_ALLOCATIONS": text}))


UNCHANGED = """
import threading
import numpy as np
from allocated_tensors import is_shared, zeros
import shim
from shim.core import groups
from shim.core.callers import Caller

FRAMEWORK, COUNT = {framework!r}, {count}

def is_made_shared():
    return is_shared(zeros(FRAMEWORK, COUNT))

seen = []
zeros(FRAMEWORK, COUNT)  # imports it
seen.append(is_made_shared())
world = groups.enter_world(Caller("test"), "test")
seen.append(is_made_shared())
with shim.shared_allocations(1 << 40):
    seen.append(is_made_shared())
thread = threading.Thread(target=lambda: seen.append(is_made_shared()))
thread.start()
thread.join()
groups.close_group(world)
seen.append(is_made_shared())
print(*seen)
"""


@pytest.mark.engine("shared_memory")
@pytest.mark.parametrize("count", [LEAST // 4 - 1, LEAST // 4])
@of_every_framework
def test_an_unchanged_program_has_its_tensors_shared_once_the_world_is_there(framework: str, count: int) -> None:
    alone = {"SHIM_RANK": "0", "SHIM_WORLD_SIZE": "1", "SHIM_JOB": f"allocations {os.getpid()}"}
    result = run_python(
        "-c",
        UNCHANGED.format(framework=framework, count=count),
        env=os.environ | alone | {"SHIM_SHARED_ALLOCATIONS": "on"},
        cwd=Path(__file__).parent,
    )
    expected = [False, True, False, False, True] if count * 4 >= LEAST else [False] * 5
    assert result.stdout.split()[-5:] == [str(one) for one in expected], result.stderr
