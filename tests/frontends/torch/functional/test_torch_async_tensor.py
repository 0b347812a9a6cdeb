"""AsyncCollectiveTensor: whatever uses its elements waits for the collective first, and the input is free at once."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch_world import world

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
from shim.core.tensors import copy_of
from shim.errors import MismatchError


@contextmanager
def held_up(rank: int) -> Iterator[Callable[[], Any]]:
    """Give a function that starts an all_reduce of ``[1 + rank, 10]``; rank 1's begins after rank 0 has looked at its own.

    Rank 0 calls it and checks what is true while the collective cannot have ended.
    """
    with world():
        talk = dist.new_group([0, 1])

        def start() -> Any:
            if rank == 1:
                dist.recv(np.zeros(1), 0, talk)
            source = torch.tensor([1.0 + rank, 10.0])
            result = functional.all_reduce(source, "sum", dist.group.WORLD)
            source.fill_(99.0)  # what has been handed over may be changed
            if rank == 0:
                assert not result.completed
                assert result.shape == (2,)
                assert result.dtype == torch.float32
                assert not result.completed
                dist.send(np.zeros(1), 1, talk)
            return result

        yield start


USES: dict[str, Callable[[Any], Any]] = {
    "wait_tensor": lambda t: functional.wait_tensor(t).tolist(),
    "wait": lambda t: t.wait().tolist(),
    "trigger_wait": lambda t: t.trigger_wait().tolist(),
    "elem": lambda t: t.elem.tolist(),
    "what it is flattened to": lambda t: getattr(t, t.__tensor_flatten__()[0][0]).tolist(),
    "tolist": lambda t: t.tolist(),
    "numpy": lambda t: t.numpy().tolist(),
    "asarray": lambda t: np.asarray(t).tolist(),
    "numpy's from_dlpack": lambda t: np.from_dlpack(t).tolist(),
    "a sum": lambda t: (t + 0).tolist(),
    "a view": lambda t: t.view(2, 1).flatten().tolist(),
    "detach": lambda t: t.detach().tolist(),
    "data": lambda t: t.data.tolist(),
    "numbers": lambda t: [t[0].item(), float(t[1])],
    "iteration": lambda t: [float(one) for one in t],
    "a list of them": lambda t: __import__("torch").stack([t, t])[1].tolist(),
    "pickle": lambda t: pickle.loads(pickle.dumps(t)).tolist(),
    "deepcopy": lambda t: copy.deepcopy(t).tolist(),
    "storage": lambda t: list(np.frombuffer(bytes(t.untyped_storage().tolist()), np.float32)),
    "address": lambda t: list((np.ctypeslib.ctypes.c_float * 2).from_address(t.data_ptr())),
    "text": lambda t: eval(str(t).partition("tensor")[2].strip("()")),
    "core's copy": lambda t: copy_of(t).tolist(),
    "in place": lambda t: t.add_(0).tolist(),
    "wrapped twice": lambda t: functional.AsyncCollectiveTensor(t).tolist(),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("use", USES)
def test_using_it_waits(rank: int, world_size: int, use: str) -> None:
    with held_up(rank) as start:
        result = start()
        assert USES[use](result) == [3.0, 20.0]
        assert result.completed
        assert result.tolist() == [3.0, 20.0]


@pytest.mark.ranks(2)
def test_it_goes_into_other_collectives(rank: int, world_size: int) -> None:
    with held_up(rank) as start:
        result = start()
        outputs = [np.zeros(2, "float32") for _ in range(2)]
        dist.all_gather(outputs, result)
        assert [output.tolist() for output in outputs] == [[3.0, 20.0]] * 2
    with held_up(rank) as start:
        assert functional.all_reduce(start(), "max", dist.group.WORLD).tolist() == [3.0, 20.0]


@pytest.mark.ranks(2)
def test_results_are_torchs_own(rank: int, world_size: int) -> None:
    with held_up(rank) as start:
        result = start()
        assert isinstance(result, torch.Tensor)
        assert type(result) is functional.AsyncCollectiveTensor
        assert type(result + 1) is torch.Tensor
        assert type(functional.wait_tensor(result)) is torch.Tensor
        assert result.add_(1) is result
        assert result.tolist() == [4.0, 21.0]
        assert repr(result) == "AsyncCollectiveTensor(tensor([ 4., 21.]))"
        plain = torch.ones(1)
        assert functional.wait_tensor(plain) is plain
        array = np.ones(1)
        assert functional.wait_tensor(array) is array


@pytest.mark.ranks(2)
def test_several_in_flight_in_any_order(rank: int, world_size: int) -> None:
    with world():
        started = [functional.all_reduce(torch.full((1000,), float(i)), "sum", dist.group.WORLD) for i in range(20)]
        for i in reversed(range(20)):
            assert started[i].tolist() == [2.0 * i] * 1000
        for _ in range(5):
            functional.all_reduce(torch.ones(1000), "sum", dist.group.WORLD)  # nobody waits for it
        assert functional.all_reduce(torch.ones(1), "sum", dist.group.WORLD).tolist() == [2.0]


@pytest.mark.ranks(2)
def test_an_error_comes_when_it_is_used(rank: int, world_size: int) -> None:
    with world():
        result = functional.all_reduce(torch.ones(2 + rank), "sum", dist.group.WORLD)
        for _ in range(2):
            with pytest.raises(MismatchError, match=r"_functional_collectives\.all_reduce"):
                result + 1
        assert functional.all_reduce(torch.ones(1), "sum", dist.group.WORLD).tolist() == [2.0]


def test_the_class_needs_torch_alone() -> None:
    made = functional.AsyncCollectiveTensor(torch.arange(3.0))
    assert made.completed
    assert made.tolist() == [0.0, 1.0, 2.0]
    assert functional.AsyncCollectiveTensor.__dlpack_c_exchange_api__ is None
    with pytest.raises(RuntimeError, match="Cannot access data pointer"):
        torch.utils.dlpack.to_dlpack(made)  # reads memory without asking the class; torch.from_dlpack does ask
    assert torch.from_dlpack(made).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        functional.Nothing  # noqa: B018  # asking for it is the test


@pytest.mark.engine("shared_memory")  # c10d imports it
def test_importing_the_modules_imports_no_torch() -> None:
    import subprocess
    import sys

    program = (
        "import sys, numpy as np\n"
        "import shim.frontends.torch.distributed as dist\n"
        "import shim.frontends.torch.distributed.nn.functional as nn\n"
        "import shim.frontends.torch.distributed._functional_collectives as functional\n"
        "dist.init_process_group('gloo', rank=0, world_size=1)\n"
        "print(functional.all_reduce(np.ones(1), 'sum', dist.group.WORLD), nn.gather(np.ones(1)), 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.strip() == "[1.] (array([1.]),) False", done.stderr


@pytest.mark.ranks(2, deadline=120)
@pytest.mark.filterwarnings("ignore")  # torch's compiler has its own
def test_compiled_functions_stop_at_collectives_of_nn(rank: int, world_size: int) -> None:
    """A graph ends there and another begins: results and gradients are those of the plain function."""
    import shim.frontends.torch.distributed.nn.functional as nn

    def function(x: Any) -> Any:
        first = functional.all_reduce(x * 2, "max", dist.group.WORLD) + 1
        gathered = functional.wait_tensor(functional.all_gather_single(first * x, 0, dist.group.WORLD))
        return nn.all_reduce(gathered * 3) + functional.all_to_all_single(x, None, None, dist.group.WORLD).sum()

    with world():
        found = []
        for way in (function, torch.compile(function, backend="eager")):
            x = torch.tensor([1.0 + rank, 2.0 - rank], requires_grad=True)
            result = way(x)
            result.sum().backward()
            found.append((result.tolist(), x.grad.tolist()))
        assert found[0] == found[1]
        with pytest.raises(RuntimeError, match="communicate between graphs"):  # of nn
            torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_cast_to_the_same_dtype(rank: int, world_size: int, mode: str) -> None:
    with world(), getattr(torch, mode)():
        pending = functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
        cast = pending.to(torch.float32)
        assert (type(cast) is torch.Tensor) == torch.is_inference_mode_enabled()  # as torch's own
        assert pending.add_(1) is pending
        assert cast.tolist() == [world_size + 1.0] * 3
