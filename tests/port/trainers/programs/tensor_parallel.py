"""A perceptron whose first layer is cut by columns and whose second one by rows, with gradients written out."""

import numpy as np
import torch
import torch.distributed as dist

INPUTS, HIDDEN = 5, 8


def own_part(numbers, axis: int) -> torch.Tensor:
    return torch.tensor(np.ascontiguousarray(np.split(numbers, dist.get_world_size(), axis=axis)[dist.get_rank()]))


class Perceptron:
    def __init__(self, first: torch.Tensor, second: torch.Tensor):
        self.first, self.second = first, second

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.inputs = inputs
        self.before = torch.matmul(inputs, self.first)
        self.hidden = torch.nn.functional.relu(self.before)
        output = torch.matmul(self.hidden, self.second)
        dist.all_reduce(output)
        return output

    def backward(self, slope: torch.Tensor, rate: float):
        inner = torch.matmul(slope, self.second.t()) * torch.gt(self.before, 0.0).to(slope.dtype)
        self.second = self.second - rate * torch.matmul(self.hidden.t(), slope)
        self.first = self.first - rate * torch.matmul(self.inputs.t(), inner)


def train():
    dist.init_process_group()
    numbers = np.random.default_rng(2)
    first = numbers.normal(size=(INPUTS, HIDDEN)).astype(np.float32)
    second = numbers.normal(size=(HIDDEN, 1)).astype(np.float32)
    inputs = torch.tensor(numbers.normal(size=(10, INPUTS)).astype(np.float32))
    targets = torch.sum(inputs, dim=1, keepdim=True)
    model = Perceptron(own_part(first, 1), own_part(second, 0))
    for step in range(6):
        error = model.forward(inputs) - targets
        model.backward(error * (2.0 / len(error)), 0.02)
        print(f"step {step}: loss {torch.mean(error * error).item():.7f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
