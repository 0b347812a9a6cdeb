"""The names of torch that its frontend does not have, and why."""

from __future__ import annotations

from shim.frontends._absent import ANY, Absent, by_name

_OWN_GROUPS = (
    "Import shim.torch_backend, and it from torch itself: torch's groups and the frontend's are the same ones then."
)
_FROM_TORCH = "Import it from torch itself, which works beside the frontend."
_IF_TORCH_HAS_IT = "If torch has it, import it from torch itself, which works beside the frontend."
_MESHES = Absent("is a part of torch's device meshes", _OWN_GROUPS)
_REDUCER = Absent(
    "is a part of torch's DistributedDataParallel, which is made of C++ code of torch's own groups", _OWN_GROUPS
)
_BACKEND = Absent(
    "is a part of torch's own backends, in whose place this project's engine stands",
    _OWN_GROUPS,
)
_RPC = Absent("has a transport of its own, of which the engine carries nothing", "Import it from torch itself.")
_MODULE = Absent("communicates through torch.distributed's own groups", _OWN_GROUPS)
_APART = Absent("does not communicate", _FROM_TORCH)
_LAUNCHER = Absent(
    "is a part of torch's launcher", "Start the ranks with `shim run`, or with torchrun, which works too."
)
_INSIDE = Absent("is a part of how torch keeps its groups; the frontend keeps its own", _OWN_GROUPS)
_OPERATORS = Absent(
    "registers torch's own operators for graphs; the frontend registers its own",
    "Call the functions of shim.frontends.torch.distributed._functional_collectives.",
)
_DEBUGGING = Absent(
    "is a part of how torch finds and logs the faults of its own groups",
    "`shim doctor` shows where each rank of a running job is, and which rank it waits for.",
)
_WINDOWS = Absent(
    "is about memory of one rank into which others write; the engine has no such windows",
    "Send with isend and receive with irecv on the other rank.",
)
_RECONFIGURING = Absent(
    "replaces the ranks of a group, which keep theirs here",
    "Make a group of the ranks that remain with shrink_group, or have `shim run --replace` start lost ranks again.",
)
_HOOKS = Absent(
    "is a hook of C++ on torch's own groups",
    "Register a function with the group's register_pre_hook, register_post_hook or register_abort_hook.",
)
_IN_PACKAGE = Absent(
    "holds names that the frontend has in {module}, such as rendezvous and default_pg_timeout",
    "Import them from {module}.",
)


_DISTRIBUTED = by_name(
    {
        _MESHES: ("DeviceMesh", "_mesh_layout", "_pycute", "device_mesh", "init_device_mesh"),
        _REDUCER: (
            "BuiltinCommHookType",
            "GradBucket",
            "Logger",
            "Reducer",
            "_DEFAULT_FIRST_BUCKET_BYTES",
            "_broadcast_coalesced",
            "_compute_bucket_assignment_by_size",
            "_register_builtin_comm_hook",
            "_register_comm_hook",
            "_verify_params_across_processes",
        ),
        _BACKEND: (
            "ProcessGroupMPI",
            "ProcessGroupNCCL",
            "ProcessGroupNCCL2",
            "ProcessGroupNCCLLazy",
            "ProcessGroupUCC",
            "ProcessGroupXCCL",
            "_Backend",
            "_ControlCollectives",
            "_DistributedBackendOptions",
            "_ProcessGroupWrapper",
            "_StoreCollectives",
            "_Work",
            "_create_process_group_wrapper",
            "_create_store_from_options",
            "_test_python_store",
        ),
        _MODULE: (
            "_checkpointable",
            "_composable",
            "_composable_state",
            "_local_tensor",
            "_shard",
            "_sharded_tensor",
            "_sharding_spec",
            "_state_dict_utils",
            "_symmetric_memory",
            "_tensor",
            "_tools",
            "algorithms",
            "autograd",
            "checkpoint",
            "fsdp",
            "optim",
            "pipelining",
            "tensor",
            "utils",
        ),
        _RPC: ("rpc",),
        _APART: (
            "_is_spmd_types_available",
            "_remote_device",
            "_serialization",
            "argparse_util",
            "config",
            "remote_device",
        ),
        _LAUNCHER: ("elastic", "launch", "launcher", "run"),
        _OPERATORS: ("_functional_collectives_impl", "_meta_registrations", "_ops"),
        _DEBUGGING: (
            "_breakpoint_cache",
            "_make_distributed_pdb",
            "c10d_logger",
            "debug",
            "flight_recorder",
            "logging_handlers",
        ),
        _INSIDE: (
            "_add_ephemeral_timeout_for_all_pgs",
            "_get_default_timeout",
            "_get_group_tag",
            "_get_pg_config",
            "_get_process_group_uid",
            "_new_process_group_helper",
            "_pg_group_ranks",
            "_pg_map",
            "_pg_names",
            "_register_process_group",
            "_resolve_group_name_by_ranks_and_tag",
            "_unregister_all_process_groups",
            "_unregister_process_group",
            "_update_default_pg",
        ),
        _IN_PACKAGE: ("constants", "rendezvous"),
        _WINDOWS: ("_new_window", "_supports_window"),
        _RECONFIGURING: ("_get_reconfigure_handle", "_reconfigure", "_supports_reconfigure"),
    }
)

_C10D = by_name(
    {
        _HOOKS: ("FlightRecorderHook", "HealthCheckHook", "NanCheckHook", "_maybe_attach_flight_recorder"),
        _WINDOWS: ("Window",),
        _RECONFIGURING: ("ReconfigureOptions",),
        _BACKEND: (
            "_GLOO_AVAILABLE",
            "_MPI_AVAILABLE",
            "_NCCL_AVAILABLE",
            "_TORCHCOMM_AVAILABLE",
            "_UCC_AVAILABLE",
            "_XCCL_AVAILABLE",
            "_check_single_backend_availability",
            "_get_backend_from_str",
            "_parse_backend_string",
            "_use_torchcomms_enabled",
            "default_pg_nccl_timeout",
        ),
        _DEBUGGING: ("_exception_logger", "_extract_group_metadata", "_time_logger"),
        _INSIDE: (
            "PG_WRAPPER_STORE_PREFIX",
            "STORE_BASED_BARRIER_PREFIX",
            "_TimeEstimator",
            "_WorldMeta",
            "_as_iterable",
            "_backend",
            "_check_not_self_rank",
            "_check_op",
            "_check_p2p_op_list",
            "_check_valid_timeout",
            "_cleanup_original_group",
            "_cleanup_process_group_global_state",
            "_create_shrunk_process_group",
            "_default_pg_init_method",
            "_destroy_all_other_groups",
            "_export_c_types",
            "_finalize_shrunk_group",
            "_get_all_pg_configs",
            "_get_split_source",
            "_group_count",
            "_group_or_default_group",
            "_hash_ranks_to_str",
            "_is_barrier_after_init",
            "_is_safe_to_split",
            "_new_group_via_split_group",
            "_pg_backend_config",
            "_pg_to_tag",
            "_prepare_shrink_target_group",
            "_process_group_color",
            "_process_group_name",
            "_reduce_op",
            "_register_pg_in_world",
            "_tags_to_pg",
            "_validate_and_process_excluded_ranks",
            "_validate_output_list_for_rank",
            "_validate_shrink_backend_requirements",
            "_validate_shrink_inputs",
            "_warn_not_in_group",
            "dist_config",
            "set_pytorch_distributed_envs_from_justknobs",
        ),
    }
)

ABSENT = {
    "": {ANY: Absent("is not a part of torch.distributed", _IF_TORCH_HAS_IT)},
    "distributed": _DISTRIBUTED,
    "distributed.distributed_c10d": {**_DISTRIBUTED, **_C10D},
    "distributed.nn": by_name({_MODULE: ("RemoteModule", "api", "jit")}),
}
