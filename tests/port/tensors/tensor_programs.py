"""Expressions of torch for each row of the tables of tensors: x is [2, 3], y a transposed [3, 2], v [5], i [4] of int64; n is 2."""

from __future__ import annotations

HEAD = """\
import torch
import torch.distributed as dist

def run(x: torch.Tensor, y: torch.Tensor, v: torch.Tensor, i: torch.Tensor, n: int, group=None):
    if n == 0:
        dist.broadcast(x, 0, group)
"""

EXPRESSIONS = {
    "arange": ["torch.arange(2, 9, 3)", "torch.arange(4, dtype=torch.float64)", "torch.arange(end=5)"],
    "cat": ["torch.cat([x, x])", "torch.cat((x, y.reshape(2, 3)), dim=-1)", "torch.concat([x, x], 1)"],
    "chunk": ["torch.chunk(x, 2)", "torch.chunk(x, 3, dim=1)"],
    "empty": [
        "torch.empty(2, n).shape",
        "torch.empty(x.shape, dtype=torch.int32).dtype",
        "torch.empty(*x.shape, device=x.device).shape",
        "torch.empty(n).shape",
    ],
    "empty_like": ["torch.empty_like(x).shape", "torch.empty_like(x, dtype=torch.int64).dtype"],
    "full": [
        "torch.full((2, n), 1.5)",
        "torch.full([3], 7)",
        "torch.full(x.shape, n, dtype=torch.float64)",
        "torch.full((2,), True)",
    ],
    "ones": ["torch.ones(2, 3)", "torch.ones(4, dtype=torch.int32)", "torch.ones((2, n), dtype=x.dtype)"],
    "ones_like": ["torch.ones_like(x)", "torch.ones_like(input=i, dtype=torch.float32)"],
    "pad": [
        "torch.nn.functional.pad(x, (0, 2))",
        "torch.nn.functional.pad(x, [1, 0, 0, 2], value=3.0)",
        "torch.nn.functional.pad(v, [1, 2], 'constant', 4.0)",
    ],
    "reshape": ["torch.reshape(x, (3, 2))", "torch.reshape(y, [-1])"],
    "split": ["torch.split(v, 2)", "torch.split(v, [1, 4])", "torch.split(x, n, dim=1)"],
    "stack": ["torch.stack([x, x])", "torch.stack((x, x), dim=-1)"],
    "tensor": [
        "torch.tensor([1, 2, n])",
        "torch.tensor(1.5)",
        "torch.tensor(x.shape)",
        "torch.tensor([1, 0], dtype=torch.bool, device=x.device)",
    ],
    "zeros": [
        "torch.zeros(2, 3)",
        "torch.zeros(n)",
        "torch.zeros(x.size(), dtype=x.dtype)",
        "torch.zeros([2], dtype=torch.long)",
    ],
    "zeros_like": ["torch.zeros_like(x)", "torch.zeros_like(i, dtype=torch.double)"],
    ".chunk": ["x.chunk(2)", "x.chunk(3, dim=1)", "x.chunk(chunks=3, dim=-1)"],
    ".mean": ["x.mean()", "x.mean(dim=0)", "x.mean(1, keepdim=True)"],
    ".new_empty": ["x.new_empty(2, n).shape", "x.new_empty((3,), dtype=torch.int32).dtype"],
    ".new_zeros": ["x.new_zeros(2, n)", "i.new_zeros((3,))", "x.new_zeros([2], dtype=torch.int32)"],
    ".reshape": ["x.reshape(3, 2)", "y.reshape(-1)", "x.reshape((n, -1))"],
    ".split": ["v.split(2)", "v.split([1, 4])", "x.split(n, dim=1)", "x.split(1, 1)"],
    ".sum": [
        "x.sum()",
        "x.sum(dim=0)",
        "x.sum(1, keepdim=True)",
        "i.sum(dtype=torch.int32)",
        "i.to(torch.uint8).sum()",
    ],
    ".view": ["x.view(3, 2)", "x.view(-1)", "x.view((n, -1))"],
    "abs": ["(x - 3).abs()"],
    "all": ["(x == x).all()"],
    "any": ["(x == 4).any()"],
    "clone": ["x.clone()"],
    "contiguous": [
        "y.contiguous()",
        "y.contiguous().is_contiguous()",
        "(y.contiguous(), y.is_contiguous())",
        "(x + 1).contiguous()",
    ],
    "copy_": ["x.clone().copy_(y.reshape(2, 3))"],
    "cpu": ["x.cpu()"],
    "detach": ["x.detach()"],
    "dtype": ["torch.zeros(2, dtype=i.dtype)"],
    "flatten": ["y.flatten()"],
    "float": ["i.float()"],
    "grad": ["x.grad is None"],
    "is_contiguous": ["x.is_contiguous()", "y.is_contiguous()"],
    "is_cuda": ["x.is_cuda"],
    "is_leaf": ["x.is_leaf"],
    "item": ["v[1].item()", "x[1, 2].item()"],
    "itemsize": ["x.itemsize", "i.itemsize"],
    "mT": ["torch.stack([x, x]).mT"],
    "max": ["x.max()"],
    "max_along": ["x.max(dim=0).values", "torch.stack([x, x]).max(dim=0).values"],
    "min": ["x.min()"],
    "nbytes": ["i.nbytes"],
    "ndim": ["x.ndim", "x.dim()"],
    "numel": ["x.numel()", "x.numel() * n"],
    "numpy": ["x.numpy()"],
    "place": ["torch.zeros(2, device=x.device)"],
    "requires_grad": ["x.requires_grad", "not x.requires_grad"],
    "shape": ["list(x.shape)", "x.size()", "x.shape[0] * n", "x.shape[1:]"],
    "size_along": ["x.size(0)", "x.size(dim=-1)"],
    "squeeze": ["x.reshape(1, 6).squeeze(0)"],
    "T": ["x.T"],
    "to_dtype": ["x.to(torch.int64)", "i.to(x.dtype)", "x.to(dtype=torch.float16)"],
    "tolist": ["x.tolist()"],
    "unsqueeze": ["x.unsqueeze(0)", "x.unsqueeze(-1)"],
    "values": ["x.data"],
    "torch.no_grad": ["torch.no_grad()(lambda: x + 1)()"],
    "torch.Tensor": ["isinstance(x, torch.Tensor)"],
    **{
        f"torch.{name}": [f"torch.zeros(2, dtype=torch.{name})"]
        for name in (
            "bool",
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "float32",
            "float64",
            "complex64",
            "complex128",
        )
    },
    "torch.bfloat16": ["x.to(torch.bfloat16).to(torch.float32)"],
}
