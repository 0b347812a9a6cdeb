"""The world and its groups: who starts and ends them, and what they tell."""

from __future__ import annotations

GROUPS = {
    "backend_of": (
        "torch.distributed.get_backend(group)",
        "paddle.distributed.get_backend(group)",
        "mindspore.mint.distributed.get_backend(group)",
    ),
    "destroy": (
        "torch.distributed.destroy_process_group(group)",
        "paddle.distributed.destroy_process_group(group)",
        "mindspore.mint.distributed.destroy_process_group(group)",
        "mindspore.communication.release()",
        "mindspore.communication.destroy_group(group)",
    ),
    "initialise": (
        "torch.distributed.init_process_group(backend, init_method, timeout, world_size, rank, store, description, options, device)",
        "paddle_2: paddle.distributed.init_parallel_env()",
        "paddle_3: paddle.distributed.init_parallel_env(-)",
        "mindspore.mint.distributed.init_process_group(backend, init_method, timeout, world_size, rank, store, description, options, device)",
        "mindspore.communication.init(backend)",
    ),
    "is_available": (
        "torch.distributed.is_available()",
        "paddle.distributed.is_available()",
        "mindspore.mint.distributed.is_available()",
    ),
    "is_initialized": (
        "torch.distributed.is_initialized()",
        "paddle.distributed.is_initialized()",
        "mindspore.mint.distributed.is_initialized()",
    ),
    "local_rank": (
        "torch.distributed.get_node_local_rank(fallback)",
        "mindspore.communication.get_local_rank(group=None)",
    ),
    "new_group": (
        "torch.distributed.new_group(ranks, timeout, backend, options, members_alone, description, device, -)",
        "paddle_2: paddle.distributed.new_group(ranks, backend, timeout)",
        "paddle_3: paddle.distributed.new_group(ranks, backend, timeout, -, -)",
        "mindspore.mint.distributed.new_group(ranks, timeout, backend, options, members_alone, description)",
    ),
    "rank": (
        "torch.distributed.get_rank(group)",
        "paddle.distributed.get_rank(group)",
        "mindspore.mint.distributed.get_rank(group)",
        "mindspore.communication.get_rank(group=None)",
        "mindspore.mint.distributed.get_cache_group_rank(group=None)",
    ),
    "size": (
        "torch.distributed.get_world_size(group)",
        "paddle.distributed.get_world_size(group)",
        "mindspore.mint.distributed.get_world_size(group)",
        "mindspore.communication.get_group_size(group=None)",
        "mindspore.mint.distributed.get_cache_group_size(group=None)",
    ),
    "rank_in_group": (
        "torch.distributed.get_group_rank(group, rank)",
        "mindspore.mint.distributed.get_group_rank(group, rank)",
        "mindspore.communication.get_group_rank_from_world_rank(rank, group)",
    ),
    "rank_in_world": (
        "torch.distributed.get_global_rank(group, group_rank)",
        "mindspore.mint.distributed.get_global_rank(group, group_rank)",
        "mindspore.communication.get_world_rank_from_group_rank(group, group_rank)",
    ),
    "ranks_of": (
        "torch.distributed.get_process_group_ranks(group)",
        "mindspore.mint.distributed.get_process_group_ranks(group)",
        "mindspore.communication.get_process_group_ranks(group=None)",
    ),
}
