"""One rank of MindSpore's own CPU world and of ours: makes each call with both, and prints what each of them did.

MindSpore needs a process more, which schedules and does nothing here: role "MS_SCHED".
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor
from mindspore import ops as real
from mindspore.communication import init
from mindspore_comparison import outcome

CALLS: dict[str, Callable[[Any, int], Any]] = {
    "AllReduce": lambda ops, rank: ops.AllReduce()(numbers(rank, (2, 3))),
    "AllReduce of float16": lambda ops, rank: ops.AllReduce("sum")(numbers(rank, (2, 3), "float16")),
    "AllReduce of one number": lambda ops, rank: ops.AllReduce()(Tensor(float(rank))),
    "AllReduce of a turned tensor": lambda ops, rank: ops.AllReduce()(numbers(rank, (2, 3)).transpose(1, 0)),
    "AllReduce of int32": lambda ops, rank: ops.AllReduce()(numbers(rank, (2, 3), "int32")),
    "AllReduce of bool": lambda ops, rank: ops.AllReduce()(numbers(rank, (2, 3)) > 3),
    "AllReduce max": lambda ops, rank: ops.AllReduce(ops.ReduceOp.MAX)(numbers(rank, (2, 3))),
    "AllReduce with a keyword": lambda ops, rank: ops.AllReduce()(input_x=numbers(rank, 3)),
    "AllGather": lambda ops, rank: ops.AllGather()(numbers(rank, (2, 3))),
    "AllGather of int32": lambda ops, rank: ops.AllGather()(numbers(rank, (2, 3), "int32")),
    "AllGather of float64": lambda ops, rank: ops.AllGather()(numbers(rank, 4, "float64")),
    "AllGather of int16": lambda ops, rank: ops.AllGather()(numbers(rank, 4, "int16")),
    "Broadcast": lambda ops, rank: ops.Broadcast(1)((numbers(rank, (2, 3)),)),
    "Broadcast of two": lambda ops, rank: ops.Broadcast(0)((numbers(rank, 2), numbers(rank, 3, "int32"))),
    "Broadcast of a bare tensor": lambda ops, rank: ops.Broadcast(0)(numbers(rank, 2)),
    "gradient of AllReduce": lambda ops, rank: mindspore.grad(_weighted(ops.AllReduce(), rank))(numbers(rank, (2, 3))),
    "gradient of Broadcast": lambda ops, rank: mindspore.grad(_weighted_tuple(ops.Broadcast(1), rank))(
        numbers(rank, (2, 3))
    ),
    "rank and size of AllGather": lambda ops, rank: [ops.AllGather().rank, ops.AllGather().rank_size],
    "attributes of AllReduce": lambda ops, rank: [
        ops.AllReduce("max").op,
        ops.AllReduce().get_attr_dict()["fusion"],
        ops.AllReduce().add_prim_attr("fusion", rank).get_attr_dict()["fusion"],
    ],
    "AllReduce(1)": lambda ops, rank: ops.AllReduce(1),
    "AllReduce(group=1)": lambda ops, rank: ops.AllReduce(group=1),
    "Reduce(0, 1)": lambda ops, rank: ops.Reduce(0, 1),
    "Reduce(0, group=1)": lambda ops, rank: ops.Reduce(0, group=1),
    "AllGather(1)": lambda ops, rank: ops.AllGather(1),
    "ReduceScatter(1)": lambda ops, rank: ops.ReduceScatter(1),
    "ReduceScatter(group=1)": lambda ops, rank: ops.ReduceScatter(group=1),
    "Broadcast('0')": lambda ops, rank: ops.Broadcast("0"),
    "Broadcast(0, 1)": lambda ops, rank: ops.Broadcast(0, 1),
    "AlltoAll(2.0, 0, 0)": lambda ops, rank: ops.AlltoAll(2.0, 0, 0),
    "AlltoAll(2, '0', 0)": lambda ops, rank: ops.AlltoAll(2, "0", 0),
    "AlltoAllV(block_size='1')": lambda ops, rank: ops.AlltoAllV(block_size="1"),
    "AlltoAllVC(block_size='1')": lambda ops, rank: ops.AlltoAllVC(block_size="1"),
    "ReduceScatterV(1)": lambda ops, rank: ops.ReduceScatterV(1),
    "BatchISendIRecv('isend', [1])": lambda ops, rank: ops.BatchISendIRecv("isend", [1]),
    "BatchISendIRecv(['isend'], 1)": lambda ops, rank: ops.BatchISendIRecv(["isend"], 1),
    "BatchISendIRecv(['isend'], [1, 0])": lambda ops, rank: ops.BatchISendIRecv(["isend"], [1, 0]),
    "BatchISendIRecv with shapes alone": lambda ops, rank: ops.BatchISendIRecv(["irecv"], [1], [(2,)]),
    "Receive of a str": lambda ops, rank: ops.Receive(0, 1, [2], "float32"),
    "_HostAllGather()": lambda ops, rank: ops.operations.comm_ops._HostAllGather(),
    "_HostAllGather('01')": lambda ops, rank: ops.operations.comm_ops._HostAllGather("01"),
    "_HostAllGather([0])": lambda ops, rank: ops.operations.comm_ops._HostAllGather([0]),
    "_HostAllGather([0, 8])": lambda ops, rank: ops.operations.comm_ops._HostAllGather([0, 8]),
}

RAISES = {  # the built-in class that MindSpore raises; it raises nothing in all other calls
    "AllReduce max": "RuntimeError",
    **dict.fromkeys(
        ("AllReduce of int32", "AllReduce of bool", "Broadcast of two", "Broadcast of a bare tensor"), "TypeError"
    ),
    **dict.fromkeys((name for name in CALLS if "(" in name or name == "Receive of a str"), "TypeError"),
    "AllReduce with a keyword": "TypeError",
    **dict.fromkeys(("_HostAllGather()", "_HostAllGather([0])", "_HostAllGather([0, 8])"), "ValueError"),
    **dict.fromkeys(("BatchISendIRecv(['isend'], [1, 0])", "BatchISendIRecv with shapes alone"), "ValueError"),
}


def numbers(rank: int, shape: Any, dtype: str = "float32") -> Any:
    return Tensor((np.arange(int(np.prod(shape))).reshape(shape) + 10 * rank + 1).astype(dtype))


def _weighted(primitive: Any, rank: int) -> Callable[[Any], Any]:
    return lambda tensor: (primitive(tensor * 2) * (rank + 3)).sum()


def _weighted_tuple(primitive: Any, rank: int) -> Callable[[Any], Any]:
    return lambda tensor: (primitive((tensor * 2,))[0] * (rank + 3)).sum()


def readable(value: Any) -> Any:
    if isinstance(value, Tensor):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "elements": value.asnumpy().tolist()}
    if isinstance(value, (list, tuple)):
        return [readable(each) for each in value]
    return value if isinstance(value, (int, str)) else type(value).__name__


def main() -> None:
    mindspore.set_context(device_target="CPU", mode=mindspore.PYNATIVE_MODE)
    init()
    from shim.frontends.mindspore import ops as ours
    from shim.frontends.mindspore.mint import distributed as dist

    rank, size = int(os.environ["RANK_ID"]), int(os.environ["MS_WORKER_NUM"])
    dist.init_process_group(init_method=sys.argv[1], rank=rank, world_size=size)
    found = {
        name: {
            "real": outcome(lambda call=call: readable(call(real, rank))),
            "ours": outcome(lambda call=call: readable(call(ours, rank))),
        }
        for name, call in CALLS.items()
    }
    with open(f"rank{rank}.json", "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
