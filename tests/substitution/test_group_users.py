"""What no group of the engine's serves says so when a substituted program uses it, and what uses none is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed._symmetric_memory
import torch.distributed.fsdp
import torch.distributed.nn
import torch.distributed.rpc
from preloaded_programs import run_python

import shim.frontends.torch.distributed as ours
from shim.errors import UnsupportedError
from shim.substitution import as_installed

with as_installed():
    import torch as seen
    import torch.distributed as dist
    import torch.distributed.fsdp as fsdp
    import torch.distributed.rpc as rpc
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.elastic.multiprocessing.errors import record
    from torch.distributed.nn import RemoteModule
    from torch.nn.parallel import DataParallel


@pytest.mark.parametrize(
    ("use", "name", "why"),
    [
        (lambda: rpc.init_rpc("a"), "distributed.rpc.init_rpc", "a transport of its own"),
        (lambda: seen.distributed.rpc.RRef(1), "distributed.rpc.RRef", "a transport of its own"),
        (lambda: RemoteModule("a", torch.nn.Linear), "distributed.nn.RemoteModule", "over torch.distributed.rpc"),
        (
            lambda: dist._symmetric_memory.enable_symm_mem_for_group("0"),
            "distributed._symmetric_memory.enable_symm_mem_for_group",
            "the memory of accelerators",
        ),
    ],
)
def test_what_no_group_serves_is_refused_when_it_is_used(use: object, name: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^torch\.{name}: .*{why}(.|\n)*instead"):
        use()
    assert not torch.distributed.is_initialized()


def test_a_refused_class_can_be_asked_and_derived_from() -> None:
    class Own(RemoteModule, torch.nn.Module): ...

    assert not isinstance(torch.nn.Linear(1, 1), RemoteModule)
    assert issubclass(torch.distributed.nn.RemoteModule, RemoteModule)
    assert issubclass(Own, RemoteModule)
    assert not hasattr(RemoteModule, "no_such_name")
    assert RemoteModule | None
    with pytest.raises(UnsupportedError, match="RemoteModule"):
        Own()


def test_what_does_not_use_them_is_the_frameworks_own() -> None:
    assert record is torch.distributed.elastic.multiprocessing.errors.record
    assert checkpoint_wrapper.__module__.startswith("torch.")
    assert checkpoint_wrapper(torch.nn.Linear(1, 1))(torch.ones(1)).shape == (1,)
    assert DataParallel is torch.nn.DataParallel is seen.nn.DataParallel
    assert seen.nn.BatchNorm2d is torch.nn.BatchNorm2d
    assert seen.nn.Linear is torch.nn.Linear
    assert fsdp.ShardingStrategy is torch.distributed.fsdp.ShardingStrategy
    assert dist.DistBackendError is ours.DistBackendError
    assert dist.is_available is ours.is_available


OTHERS = {
    "paddle": """
import paddle
import paddle.distributed as dist
from paddle.distributed import fleet
from paddle.distributed.fleet.utils import recompute

for one in (lambda: dist.rpc.init_rpc("a"), lambda: dist.rpc.rpc_sync("a", print)):
    refused(one, "a transport of its own", "send_object_list")
refused(lambda: fleet.get_hybrid_communicate_group(), "Only data parallelism")
refused(lambda: fleet.all_reduce(1))
refused(lambda: fleet.init_server(), "paddle's own fleet", "parameter servers")
assert (fleet.rank(), fleet.nranks(), fleet.util.get_file_shard(["a"])) == (0, 1, ["a"])
refused(lambda: fleet.distributed_scaler(None))
for one in (fleet.init, fleet.distributed_model, fleet.distributed_optimizer, fleet.worker_num, type(fleet.fleet)):
    assert one.__module__.startswith("shim."), one
assert paddle.Model.__module__ == paddle.hapi.Model.__module__ == "shim.substitution.hapi_model"
assert paddle.Model(paddle.nn.Linear(1, 1)).network is not None
refused(lambda: dist.ProcessMesh([0, 1]), "Paddle's C++ code")
for one in (dist.shard_tensor, dist.reshard, dist.dtensor_from_fn):
    refused(lambda: one(None, None, None), "Paddle's C++ code")
refused(lambda: dist.sharding.group_sharded_parallel(None, None, "os"), "GPUs and XPUs alone")
from paddle.nn.layer.norm import SyncBatchNorm
for one in (SyncBatchNorm, paddle.nn.SyncBatchNorm, paddle.sparse.nn.SyncBatchNorm, type("Own", (SyncBatchNorm,), {})):
    refused(lambda: one(2), "by itself")
    refused(lambda: one.convert_sync_batchnorm(paddle.nn.BatchNorm1D(2)))
assert not isinstance(paddle.nn.BatchNorm1D(2), SyncBatchNorm)
paddle.nn.BatchNorm2D(2), paddle.sparse.nn.BatchNorm(2), paddle.nn.Linear(1, 1)
assert recompute.__module__.startswith("paddle.")
fleet.DistributedStrategy()
""",
    "mindspore": """
from mindspore import nn

import mindspore
refused(lambda: nn.SyncBatchNorm(2), "Ascend alone")
refused(lambda: mindspore.mint.nn.SyncBatchNorm(2))
mindspore.mint.nn.BatchNorm2d(2)
from mindspore import context
refused(lambda: mindspore.set_auto_parallel_context(parallel_mode="hybrid_parallel"))
refused(lambda: context.set_auto_parallel_context(parallel_mode="semi_auto_parallel", gradients_mean=True))
mindspore.set_auto_parallel_context(parallel_mode="stand_alone")
mindspore.set_auto_parallel_context(device_num=1)
from mindspore.parallel.auto_parallel import AutoParallel
refused(lambda: AutoParallel(nn.Dense(1, 1)), "data_parallel")
mindspore.set_auto_parallel_context(parallel_mode="data_parallel")
assert context.get_auto_parallel_context("parallel_mode") == "data_parallel"
for one in (
    *(mindspore.Model, mindspore.train.Model, mindspore.amp.build_train_network, mindspore.nn.TrainOneStepCell),
    *(mindspore.nn.TrainOneStepWithLossScaleCell, mindspore.nn.DistributedGradReducer),
    *(mindspore.boost.BoostTrainOneStepCell, mindspore.boost.BoostTrainOneStepWithLossScaleCell),
):
    assert one.__module__.startswith("shim."), one
mindspore.reset_auto_parallel_context()
assert mindspore.get_auto_parallel_context("parallel_mode") == "stand_alone"
nn.BatchNorm2d(2), nn.Dense(1, 1)
""",
}
REFUSED = """
def refused(use, *told):
    try:
        use()
    except NotImplementedError as error:
        for one in told or ("own process groups",):
            assert one in str(error), error
    else:
        raise AssertionError("not refused")

"""


@pytest.mark.parametrize("framework", OTHERS)
def test_those_of_the_other_frameworks(framework: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(REFUSED + OTHERS[framework])
    done = run_python("-W", "ignore", "-m", "shim.substitution", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
