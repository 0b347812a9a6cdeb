"""``shim.move_to_shared_memory``: torch tensors and modules, in place."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from allocated_tensors import is_shared

import shim
from shim.errors import ArgumentError, TensorError, UnsupportedError

pytestmark = [pytest.mark.frameworks, pytest.mark.ranks(1)]


def test_a_tensor_is_moved_with_its_views_and_gradient() -> None:
    torch = importlib.import_module("torch")
    tensor = torch.arange(20.0, requires_grad=True)
    (tensor * tensor).sum().backward()
    gradient, view = tensor.grad, tensor.detach()[5:]
    assert shim.move_to_shared_memory(tensor) is None
    assert is_shared(tensor)
    assert is_shared(gradient)
    assert tensor.grad is gradient
    assert torch.equal(gradient, 2 * torch.arange(20.0))
    view[0] = 50
    assert tensor.tolist() == [*range(5), 50, *range(6, 20)]
    where = tensor.data_ptr()
    shim.move_to_shared_memory(tensor)
    assert tensor.data_ptr() == where


def test_a_module_is_moved_with_its_buffers() -> None:
    torch = importlib.import_module("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    module[0].bias = torch.nn.Parameter(module[1].bias)  # of the same memory
    module(torch.randn(5, 3)).sum().backward()
    before = {name: (id(value), value.clone()) for name, value in module.state_dict(keep_vars=True).items()}
    shim.move_to_shared_memory(module)
    after = module.state_dict(keep_vars=True)
    assert len(after) == 7
    for name, (identity, values) in before.items():
        assert id(after[name]) == identity
        assert torch.equal(after[name], values)
        assert is_shared(after[name])
    assert all(is_shared(parameter.grad) for parameter in module.parameters())
    assert module[0].bias.data_ptr() == module[1].bias.data_ptr()


def test_empty_tensors_are_left() -> None:
    torch = importlib.import_module("torch")
    shim.move_to_shared_memory(torch.empty(0))


def test_results_have_no_gradient_to_move() -> None:
    torch = importlib.import_module("torch")
    result = torch.ones(3, requires_grad=True) * 2
    shim.move_to_shared_memory(result)
    assert is_shared(result)


def test_nothing_is_moved_when_something_cannot_be() -> None:
    torch = importlib.import_module("torch")
    module = torch.nn.Linear(3, 4)
    array = np.zeros(4, "float32")
    module.bias.data = torch.from_numpy(array)
    with pytest.raises(UnsupportedError, match="must not share memory with a numpy array"):
        shim.move_to_shared_memory(module)
    assert not is_shared(module.weight)


def test_what_torch_shares_with_other_processes_is_left_where_it_is() -> None:
    torch = importlib.import_module("torch")
    tensor = torch.arange(50_000.0).share_memory_()
    with pytest.raises(UnsupportedError, match="or another process"):
        shim.move_to_shared_memory(tensor)
    assert tensor.is_shared()
    assert torch.equal(tensor, torch.arange(50_000.0))


def test_what_is_shared_may_be_an_arrays_too() -> None:
    importlib.import_module("torch")
    shim.move_to_shared_memory(shim.empty(5, "float32", "torch"))


def test_other_layouts_and_devices_are_told() -> None:
    torch = importlib.import_module("torch")
    for tensor in (torch.eye(3).to_sparse(), torch.empty(3, device="meta")):
        with pytest.raises(TensorError, match="dense and in host memory"):
            shim.move_to_shared_memory(tensor)


def test_what_cannot_be_moved_is_told() -> None:
    torch = importlib.import_module("torch")
    with pytest.raises(UnsupportedError, match="numpy's tensors cannot be moved"):
        shim.move_to_shared_memory(np.zeros(3))
    with pytest.raises(ArgumentError, match="must be a torch tensor or module, got a list"):
        shim.move_to_shared_memory([torch.zeros(3)])
