"""Names that are no functions: reduce ops, classes, modules; and tensors' types, dtypes and devices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences.table import recorded

# Each line: torch, Paddle, MindSpore; - where there is none. A name may be written with a call after it.
NAMES = """
torch.distributed                     paddle.distributed                         mindspore.mint.distributed
torch.distributed.ReduceOp            paddle.distributed.ReduceOp                mindspore.ops.ReduceOp
torch.distributed.ReduceOp.SUM        paddle.distributed.ReduceOp.SUM            mindspore.ops.ReduceOp.SUM
torch.distributed.ReduceOp.PRODUCT    paddle.distributed.ReduceOp.PROD           mindspore.ops.ReduceOp.PROD
torch.distributed.ReduceOp.MIN        paddle.distributed.ReduceOp.MIN            mindspore.ops.ReduceOp.MIN
torch.distributed.ReduceOp.MAX        paddle.distributed.ReduceOp.MAX            mindspore.ops.ReduceOp.MAX
torch.distributed.ReduceOp.AVG        paddle_3:paddle.distributed.ReduceOp.AVG   mindspore.ops.ReduceOp.AVG
torch.distributed.ProcessGroup        paddle.distributed.collective.Group        str
torch.distributed.group.WORLD         paddle.distributed.get_group(0)            mindspore.communication.GlobalComm.WORLD_COMM_GROUP
torch.distributed.GroupMember.WORLD   paddle.distributed.get_group(0)            mindspore.communication.GlobalComm.WORLD_COMM_GROUP
torch.distributed.group.WORLD         paddle.distributed.get_group()             mindspore.communication.HCCL_WORLD_COMM_GROUP
torch.distributed.group.WORLD         paddle.distributed.get_group()             mindspore.communication.NCCL_WORLD_COMM_GROUP
torch.distributed.group.WORLD         paddle.distributed.get_group()             mindspore.communication.MCCL_WORLD_COMM_GROUP
torch.distributed.group.WORLD         paddle.distributed.get_group(id=0)         mindspore.communication.GlobalComm.WORLD_COMM_GROUP
torch.distributed._get_default_group()  paddle.distributed.collective._get_default_group()  mindspore.communication.GlobalComm.WORLD_COMM_GROUP
torch.distributed.get_rank()          paddle.distributed.ParallelEnv().rank        mindspore.mint.distributed.get_rank()
torch.distributed.get_rank()          paddle.distributed.ParallelEnv().local_rank  mindspore.mint.distributed.get_rank()
torch.distributed.get_world_size()    paddle.distributed.ParallelEnv().world_size  mindspore.mint.distributed.get_world_size()
torch.distributed.get_world_size()    paddle.distributed.ParallelEnv().nranks      mindspore.mint.distributed.get_world_size()
torch.distributed.is_initialized()    paddle.distributed.is_initialized()        mindspore.mint.distributed.is_initialized()
torch.distributed.is_initialized()    paddle.distributed.is_initialized()        mindspore.communication.GlobalComm.INITED
torch.distributed.Work                -                                            mindspore.communication.comm_func.CommHandle
torch.distributed.Backend             str                                          str
torch.distributed.Backend.NCCL        "nccl"                                       "hccl"
torch.distributed.Backend.GLOO        "gloo"                                       "hccl"
"""

TENSOR_NAMES = """
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

# Classes that the others lack: annotations say object in place of them.
OBJECTS_IN_ANNOTATIONS = frozenset(("torch.Generator", "torch.autograd.function.FunctionCtx", "torch.device"))
AUTOGRAD_CLASSES = frozenset(("torch.autograd.Function", "paddle.autograd.PyLayer", "mindspore._Function"))


def name_for(name: str, source: str, target: str) -> str | None:
    """Return what *target* calls what *source* calls *name*, a canonical path; None where the table has nothing.

    What another version of the same framework has as well, with the same signature, keeps its name.
    """
    found = _translations(NAMES, source, target).get(name)
    if found is None and APIS[source].framework == APIS[target].framework:
        one, other = recorded(name, source), recorded(name, target)
        return name if one is not None and one == other else None
    return found


def tensor_name_for(name: str, source: str, target: str) -> str | None:
    """Return what *target* calls what *source* calls *name*; None where the table has nothing."""
    for module in _DTYPE_MODULES:
        if name.startswith(module):
            name = f"mindspore.{name.removeprefix(module)}"
    return _translations(TENSOR_NAMES, source, target).get(_OTHER_PATHS.get(name, name))


def dtype_of(word: str, target: str) -> str | None:
    """Return *target*'s name of the dtype that Paddle calls by the string *word*; None where it is none."""
    return _translations(TENSOR_NAMES, "paddle_3", target).get(f"paddle.{word}") if word.islower() else None


@cache
def _translations(names: str, source: str, target: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for line in names.strip().splitlines():
        cells = line.split()
        one, other = _cell(cells, source), _cell(cells, target)
        if one and other:
            found.setdefault(one, other)
    return found


def _cell(cells: list[str], api: str) -> str:
    cell = cells[("torch", "paddle", "mindspore").index(APIS[api].framework)]
    only, colon, name = cell.rpartition(":")
    if cell == "-" or (colon and only != api):
        return ""
    return name
