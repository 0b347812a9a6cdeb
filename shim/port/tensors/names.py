"""Names of tensors' types, dtypes and devices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from shim.port.apis import APIS

# Each line: torch, Paddle, MindSpore; - where there is none.
NAMES = """
torch.Tensor             paddle.Tensor             mindspore.Tensor
torch.bool               paddle.bool               mindspore.bool_
torch.uint8              paddle.uint8              mindspore.uint8
torch.int8               paddle.int8               mindspore.int8
torch.int16              paddle.int16              mindspore.int16
torch.int32              paddle.int32              mindspore.int32
torch.int64              paddle.int64              mindspore.int64
torch.float16            paddle.float16            mindspore.float16
torch.bfloat16           paddle.bfloat16           mindspore.bfloat16
torch.float32            paddle.float32            mindspore.float32
torch.float64            paddle.float64            mindspore.float64
torch.complex64          paddle.complex64          mindspore.complex64
torch.complex128         paddle.complex128         mindspore.complex128
torch.no_grad            paddle.no_grad            mindspore._no_grad
torch.autograd.Function  paddle.autograd.PyLayer   mindspore._Function
torch.cuda.synchronize   paddle.device.synchronize mindspore.runtime.synchronize
"""

_OTHER_PATHS = {
    "torch.long": "torch.int64",
    "torch.int": "torch.int32",
    "torch.short": "torch.int16",
    "torch.half": "torch.float16",
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.cfloat": "torch.complex64",
    "torch.cdouble": "torch.complex128",
    "mindspore.bool": "mindspore.bool_",
    "mindspore.common.tensor.Tensor": "mindspore.Tensor",
    "paddle.autograd.py_layer.PyLayer": "paddle.autograd.PyLayer",
}
_DTYPE_MODULES = ("mindspore.common.dtype.", "mindspore.dtype.")

AUTOGRAD_CLASSES = frozenset(("torch.autograd.Function", "paddle.autograd.PyLayer", "mindspore._Function"))


def name_of(name: str, source: str, target: str) -> str | None:
    """Return what *target* calls what *source* calls *name*; None where the table has nothing."""
    for module in _DTYPE_MODULES:
        if name.startswith(module):
            name = f"mindspore.{name.removeprefix(module)}"
    return _translations(source, target).get(_OTHER_PATHS.get(name, name))


def dtype_of(word: str, target: str) -> str | None:
    """Return *target*'s name of the dtype that Paddle calls by the string *word*; None where it is none."""
    return _translations("paddle_3", target).get(f"paddle.{word}") if word.islower() else None


@cache
def _translations(source: str, target: str) -> Mapping[str, str]:
    one, other = (("torch", "paddle", "mindspore").index(APIS[api].framework) for api in (source, target))
    rows = [line.split() for line in NAMES.strip().splitlines()]
    return {row[one]: row[other] for row in rows if "-" not in (row[one], row[other])}
