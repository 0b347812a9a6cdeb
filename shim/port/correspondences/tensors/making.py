"""Tensors that are made: of numbers, of a shape, at random, or like another one."""

from __future__ import annotations

# Each framework draws other numbers from the same seed.
_RANDOM = {
    "manual_seed": ("other", "torch.manual_seed(seed)", "paddle.seed(seed)", "mindspore.set_seed(seed)"),
    "rand": (
        "torch.rand(*size:shape, *, dtype=None, device=None)",
        "paddle.rand(shape, dtype=None)",
        "mindspore.ops.rand(*size:shape, *, dtype=None)",
    ),
    "randint": (
        "torch.randint(low, high, size:shape, *, dtype=None, device=None)",
        "paddle.randint(low, high, shape, dtype=None)",
        "mindspore.ops.randint(low, high, size:shape, *, dtype=None)",
    ),
    "randn": (
        "torch.randn(*size:shape, *, dtype=None, device=None)",
        "paddle.randn(shape, dtype=None)",
        "mindspore.ops.randn(*size:shape, *, dtype=None)",
    ),
    "randperm": (
        "torch.randperm(n, *, dtype=None, device=None)",
        "paddle.randperm(n, dtype=None)",
        "mindspore.ops.randperm(n, *, dtype=None)",
    ),
}

# The forms of MindSpore's mint come second: many of its kernels are for Ascend alone.
FUNCTIONS = {
    **_RANDOM,
    **{
        name: (
            f"torch.{name}(input:tensor, *, dtype=None, device=None)",
            f"paddle.{name}(x:tensor, dtype=None)",
            f"mindspore.ops.{name}(input:tensor, *, dtype=None)",
            f"mindspore.mint.{name}(input:tensor, *, dtype=None)",
        )
        for name in ("ones_like", "zeros_like")
    },
    "arange": (
        "torch.arange(start=0, end=None, step=1, *, dtype=None, device=None)",
        "paddle.arange(start=0, end=None, step=1, dtype=None)",
        "mindspore.ops.arange(start=0, end=None, step=1, *, dtype=None)",
        "mindspore.mint.arange(start=0, end=None, step=1, *, dtype=None)",
    ),
    "empty": (
        "torch.empty(*size:shape, *, dtype=None, device=None)",
        "paddle.empty(shape, dtype=None)",
        "mindspore.mint.empty(*size:shape, *, dtype=None)",
    ),
    "empty_like": (
        "torch.empty_like(input:tensor, *, dtype=None, device=None)",
        "paddle.empty_like(x:tensor, dtype=None)",
        "mindspore.mint.empty_like(input:tensor, *, dtype=None)",
    ),
    "eye": (
        "torch.eye(n:rows, m:columns=None, *, dtype=None, device=None)",
        "paddle.eye(num_rows:rows, num_columns:columns=None, dtype=None)",
        "mindspore.ops.eye(n:rows, m:columns=None, dtype=None)",
    ),
    "full": (
        "torch.full(size:shape, fill_value:value, *, dtype=None, device=None)",
        "paddle.full(shape, fill_value:value, dtype=None)",
        "mindspore.ops.full(size:shape, fill_value:value, *, dtype=None)",
        "mindspore.mint.full(size:shape, fill_value:value, *, dtype=None)",
    ),
    "full_like": (
        "torch.full_like(input:tensor, fill_value:value, *, dtype=None, device=None)",
        "paddle.full_like(x:tensor, fill_value:value, dtype=None)",
        "mindspore.ops.full_like(input:tensor, fill_value:value, *, dtype=None)",
    ),
    "linspace": (
        "torch.linspace(start, end, steps, *, dtype=None, device=None)",
        "paddle.linspace(start, stop:end, num:steps, dtype=None)",
        "mindspore.ops.linspace(start, end, steps)",
    ),
    "ones": (
        "torch.ones(*size:shape, *, dtype=None, device=None)",
        "paddle.ones(shape, dtype=None)",
        "mindspore.ops.ones(shape, dtype=None)",
        "mindspore.mint.ones(size:shape, *, dtype=None)",
    ),
    "tensor": (
        "torch.tensor(data, *, dtype=None, device=None)",
        "paddle.to_tensor(data, dtype=None)",
        "mindspore.tensor(input_data:data, dtype=None)",
        "mindspore.Tensor(input_data:data, dtype=None)",
    ),
    "as_tensor": (
        "torch.as_tensor(data, dtype=None, device=None)",
        "paddle.to_tensor(data, dtype=None)",
        "mindspore.tensor(input_data:data, dtype=None)",
    ),
    "from_numpy": (
        "torch.from_numpy(ndarray:data)",
        "paddle.to_tensor(data)",
        "mindspore.Tensor.from_numpy(array:data)",
    ),
    "zeros": (
        "torch.zeros(*size:shape, *, dtype=None, device=None)",
        "paddle.zeros(shape, dtype=None)",
        "mindspore.ops.zeros(size:shape, dtype=None)",
        "mindspore.mint.zeros(size:shape, *, dtype=None)",
    ),
}

METHODS = {
    **{
        name: (
            f"torch: .{name}(*size:shape, *, dtype=None, device=None)",
            f"paddle_3: .{name}(*size:shape, *, dtype=None)",
            f"mindspore: .{name}(size:shape, *, dtype=None)",
        )
        for name in ("new_empty", "new_ones", "new_zeros")
    },
}

_SHARED = "Make the tensor after the last change of the array, and copy it where the code goes on with the array."
_OTHER_NUMBERS = (
    "any",
    "random-numbers",
    "the frameworks draw different random numbers, also from the same seed",
    "Make the numbers by NumPy where both programs have to have the same ones.",
)
DIFFERENCES = {
    **dict.fromkeys(_RANDOM, _OTHER_NUMBERS),
    "as_tensor": ("any", "numpy-memory", "as_tensor of an array shares its memory in torch alone", _SHARED),
    "from_numpy": (
        "any",
        "numpy-memory",
        "the tensor shares the array's memory in torch; it is a copy in Paddle, and copy_ leaves the array alone in MindSpore",
        _SHARED,
    ),
}
