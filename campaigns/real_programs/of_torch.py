"""Programs that use torch's own distributed features."""

from __future__ import annotations

from campaigns.real_programs.program import Program


def _program(name: str, uses: str, *packages: str, seconds: float = 180.0) -> Program:
    return Program(f"torch_features/{name}", uses, packages, seconds=seconds)


PROGRAMS = (
    _program("ddp_training", "DistributedDataParallel, DistributedSampler, several buckets, BatchNorm's buffers"),
    _program("ddp_hooks", "DDP's hooks: fp16, PowerSGD, fp16 around PowerSGD"),
    _program("ddp_no_sync_join", "DDP's `no_sync`, unused parameters, static graph, `join` with uneven inputs"),
    _program("functional_gradients", "`torch.distributed.nn.functional`: collectives with gradients"),
    _program("functional_collectives", "functional collectives, called and under `torch.compile`"),
    _program("fsdp1", "FullyShardedDataParallel with three sharding strategies and two kinds of state dict"),
    _program("fsdp2", "`fully_shard`, mixed precision, accumulation, clipping, full state dict"),
    _program("dtensor_ops", "DeviceMesh, DTensor: redistribution between all placements, sharded operations"),
    _program("tensor_parallel", "`parallelize_module`: column, row and sequence parallel, `loss_parallel`"),
    _program("zero_redundancy", "ZeroRedundancyOptimizer and its consolidated state"),
    _program("post_local_sgd", "post-local SGD: hook, optimizer, PeriodicModelAverager"),
    _program("pipelining", "pipelining: GPipe, 1F1B, interleaved 1F1B, zero bubble"),
    _program("distributed_checkpoint", "distributed checkpoint: save, load in another sharding, `async_save`"),
    _program("compiled_ddp", "`torch.compile` over DDP and `replicate`"),
    _program("object_collectives", "objects, store, subgroups, batched messages, futures, `monitored_barrier`"),
    _program(
        "own_tests", "PyTorch's own tests of `torch.distributed` and DDP that run on CPUs", "expecttest", seconds=400
    ),
    _program(
        "dtensor_op_db",
        "60 operators of PyTorch's own `op_db` on DTensors, as its test of them does",
        "expecttest",
        seconds=400,
    ),
)
