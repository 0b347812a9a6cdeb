"""The names of paddle that its frontends do not have, and why."""

from __future__ import annotations

from shim.frontends._absent import ANY, Absent, by_name

_OWN_GROUPS = "It needs groups of paddle's own: use it in a program that initialises paddle.distributed itself."
_FROM_PADDLE = "Import it from paddle itself, which works beside the frontend."
_IF_PADDLE_HAS_IT = "If paddle has it, import it from paddle itself, which works beside the frontend."
_MODULE = Absent("communicates through paddle.distributed's own groups", _OWN_GROUPS)
_PARALLEL = Absent("is a part of paddle's automatic parallelism", _OWN_GROUPS)
_FLEET = Absent(
    "is made on groups of paddle's own",
    "Use it in a program that initialises paddle.distributed itself. For data parallelism there is {frontend}.DataParallel.",
)
_BEYOND_DATA_PARALLELISM = Absent(
    "is not a part of fleet's data parallelism, or is a class that works with the frontend's functions",
    "Import classes such as DistributedStrategy from paddle.distributed.fleet. The rest needs groups of paddle's own.",
)
_SERVERS = Absent("is a part of paddle's parameter servers", _OWN_GROUPS)
_LAUNCHER = Absent(
    "is a part of paddle's launcher", "Start the ranks with `shim run`, or with python -m paddle.distributed.launch."
)
_APART = Absent("does not communicate", _FROM_PADDLE)
_INSIDE = Absent("is a part of how paddle keeps its groups; the frontend keeps its own", _OWN_GROUPS)
_IN_PACKAGE = Absent("holds functions that the frontend has in {module}", "Import them from {module}.")

_DISTRIBUTED = by_name(
    {
        _FLEET: ("fleet", "fsdp", "group_sharded_parallel", "save_group_sharded_model", "sharding"),
        _PARALLEL: (
            "ColWiseParallel",
            "ContextParallel",
            "ConvParallel",
            "DistAttr",
            "DistModel",
            "LocalLayer",
            "Partial",
            "Placement",
            "PrepareContextParallel",
            "PrepareLayerInput",
            "PrepareLayerOutput",
            "ProcessMesh",
            "Replicate",
            "RowWiseParallel",
            "SequenceParallelBegin",
            "SequenceParallelDisable",
            "SequenceParallelEnable",
            "SequenceParallelEnd",
            "Shard",
            "ShardedWeight",
            "ShardingStage1",
            "ShardingStage2",
            "ShardingStage3",
            "SplitPoint",
            "Strategy",
            "auto_parallel",
            "auto_tuner",
            "build_sharded_state_dict",
            "dtensor_from_fn",
            "enable_auto_dp",
            "get_mesh",
            "in_auto_parallel_align_mode",
            "local_map",
            "monkey_patch_value_in_dist",
            "parallelize",
            "passes",
            "reshard",
            "set_mesh",
            "shard_dataloader",
            "shard_layer",
            "shard_op",
            "shard_optimizer",
            "shard_scaler",
            "shard_tensor",
            "shard_weight",
            "to_distributed",
            "to_static",
            "unshard_dtensor",
            "value_patch",
        ),
        _SERVERS: (
            "BoxPSDataset",
            "CountFilterEntry",
            "InMemoryDataset",
            "ProbabilityEntry",
            "QueueDataset",
            "ShowClickEntry",
            "communicator",
            "distribute_lookup_table",
            "entry_attr",
            "metric",
            "ps",
            "transpiler",
        ),
        _LAUNCHER: ("backup_env", "cloud_utils", "elastic", "launch"),
        _MODULE: (
            "checkpoint",
            "flex_checkpoint",
            "load_merged_state_dict",
            "load_state_dict",
            "models",
            "save_state_dict",
            "utils",
        ),
        Absent(
            "has a transport of its own, which Paddle's packages for CPUs lack",
            "Exchange objects with send_object_list and recv_object_list.",
        ): ("rpc",),
        _APART: ("ParallelMode", "ReduceType", "io"),
        _IN_PACKAGE: ("parallel", "parallel_with_gloo", "spawn"),
        Absent("the frontend has in {frontend}, as paddle has it in paddle", "Import it from {frontend}."): (
            "DataParallel",
        ),
    }
)
_FUNCTIONS = ("all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "recv", "reduce", "scatter", "send")

ABSENT = {
    "": {ANY: Absent("is not a part of paddle.distributed", _IF_PADDLE_HAS_IT)},
    "distributed": _DISTRIBUTED,
    "distributed.fleet": {ANY: _BEYOND_DATA_PARALLELISM},
    "distributed.communication": by_name({_IN_PACKAGE: _FUNCTIONS, _INSIDE: ("serialization_utils",)}),
    "distributed.communication.stream": by_name({_IN_PACKAGE: _FUNCTIONS}),
}
