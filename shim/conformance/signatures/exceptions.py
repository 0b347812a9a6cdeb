"""Recorded names that a frontend knowingly does not have, each with the reason."""

from __future__ import annotations

_COMM_OPS = "mindspore.ops.operations.comm_ops"

_OF_THE_COMPILER = "is put into graphs by MindSpore's parallel compiler; communicates nothing"

EXCEPTIONS = {
    f"{_COMM_OPS}._GetTensorSlice": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualAccuGrad": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualAdd": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualAssignKvCache": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualDataset": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualDiv": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualOutput": _OF_THE_COMPILER,
    f"{_COMM_OPS}._VirtualPipelineEnd": _OF_THE_COMPILER,
}

# Recorded members of classes that ours does not repeat, each with the reason.
NOT_REPEATED = {
    "DebugLevel.__init__": "torch's is C++ and takes the value alone; an enum of Python takes what all of them take",
    "ProcessGroupGloo.monitored_barrier": "torch's default is -1 ms and ours None; both stand for the group's timeout",
    "Work.__init__": "torch's is C++ and takes nothing; in torch as here, only calls make one",
}
