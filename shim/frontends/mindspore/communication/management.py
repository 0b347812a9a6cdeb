"""``mindspore.communication.management``, where older programs import these from."""

from __future__ import annotations

from shim.frontends.mindspore.communication import HCCL_WORLD_COMM_GROUP as HCCL_WORLD_COMM_GROUP
from shim.frontends.mindspore.communication import MCCL_WORLD_COMM_GROUP as MCCL_WORLD_COMM_GROUP
from shim.frontends.mindspore.communication import NCCL_WORLD_COMM_GROUP as NCCL_WORLD_COMM_GROUP
from shim.frontends.mindspore.communication import GlobalComm as GlobalComm
from shim.frontends.mindspore.communication import create_group as create_group
from shim.frontends.mindspore.communication import destroy_group as destroy_group
from shim.frontends.mindspore.communication import get_comm_name as get_comm_name
from shim.frontends.mindspore.communication import get_group_rank_from_world_rank as get_group_rank_from_world_rank
from shim.frontends.mindspore.communication import get_group_size as get_group_size
from shim.frontends.mindspore.communication import get_local_rank as get_local_rank
from shim.frontends.mindspore.communication import get_local_rank_size as get_local_rank_size
from shim.frontends.mindspore.communication import get_process_group_ranks as get_process_group_ranks
from shim.frontends.mindspore.communication import get_rank as get_rank
from shim.frontends.mindspore.communication import get_world_rank_from_group_rank as get_world_rank_from_group_rank
from shim.frontends.mindspore.communication import init as init
from shim.frontends.mindspore.communication import release as release

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]
