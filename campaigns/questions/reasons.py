"""Where the answers in a substituted program may differ from those in the framework's own world, and why."""

from __future__ import annotations

import re

_AUTO_PARALLEL = "refused by name: Paddle's C++ code moves the tensors of auto parallel training"
_NO_TRANSPORT = "refused by name: it has a transport of its own, which the engine does not serve"
_OWN_CLASS = "the frontend's own class, with the methods that programs use"

# For each pattern that a question matches as a whole.
REASONS = {
    r"mindspore\.communication\.comm_func:get_cache_group_rank": "MindSpore finds no group of this name unless the backend is HCCL",
    r"mindspore\.communication\.management:get_comm_name": "a documented deviation: the engine's own name of the group",
    r"mindspore\.mint\.distributed\.distributed:get_cache_group_(rank|size)": "MindSpore finds no group of this name unless the backend is HCCL",
    r"mindspore\.parallel\._auto_parallel_context:_get_all_auto_parallel_context": "what it returns is put back into MindSpore itself, which stays in stand_alone",
    r"paddle\.distributed\.auto_parallel\.static\.(cluster:get_default_cluster|dist_context:get_default_distributed_context)": _AUTO_PARALLEL,
    r"paddle\.distributed\.communication\.reduce:is_avg_reduce_op_supported": "the engine has the mean, gloo has not",
    r"paddle\.distributed\.fleet\.meta_parallel\.pipeline_parallel:_get_align_mode_scale": "refused by name; it asks for a pipeline, which fleet makes beyond data parallelism",
    r"paddle\.distributed\.rpc\.rpc:.*": _NO_TRANSPORT,
    r"torch\.distributed\._shard\.api:_get_current_process_group": _OWN_CLASS,
    r"torch\.distributed\._symmetric_memory.*": "refused by name: it needs the memory of accelerators",
    r"torch\.distributed\.(autograd|rpc)[.:].*": _NO_TRANSPORT,
    r"torch\.distributed\.distributed_c10d:_get_default_(group|store)": _OWN_CLASS,
}


def reason_for(question: str) -> str | None:
    """Return why the answers to *question* may differ, None if they may not."""
    return next((reason for pattern, reason in REASONS.items() if re.fullmatch(pattern, question)), None)
