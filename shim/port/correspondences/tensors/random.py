"""Random numbers: each framework draws others from the same seed."""

from __future__ import annotations

FUNCTIONS = {
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
METHODS: dict[str, tuple[str, ...]] = {}

_OTHER = (
    "any",
    "random-numbers",
    "the frameworks draw different random numbers, also from the same seed",
    "Make the numbers by NumPy where both programs have to have the same ones.",
)
DIFFERENCES = dict.fromkeys(FUNCTIONS, _OTHER)
