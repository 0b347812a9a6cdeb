"""What there is, at torch's signatures."""

from __future__ import annotations

import os
from typing import Any

from shim.frontends.torch._debug_level import DebugLevel, Level
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import membership, registry
from shim.frontends.torch._groups.backends import BackendConfig, default_backend_for, has_backend, has_nccl, has_xccl
from shim.frontends.torch._groups.group_arguments import view_of

_CONFIG = torch_function("get_backend_config")
_DEFAULT_BACKEND = torch_function("get_default_backend_for_device")
_LOCAL_RANK = torch_function("get_node_local_rank")
_GET_LEVEL = torch_function("get_debug_level")
_SET_LEVEL = torch_function("set_debug_level")
_READ_LEVEL = torch_function("set_debug_level_from_env")


def is_backend_available(backend: str) -> bool:
    """Tell whether *backend*, or each of its ``device:name`` pairs, is gloo, as which the engine serves the CPU, or one that is installed.

    Deviates: ``fake`` and ``undefined`` are not available; torch returns True for every name that it knows.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.is_backend_available
    """
    return has_backend(backend)


def is_gloo_available() -> bool:
    """Tell whether tensors in the host's memory can be communicated, which is always so.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.is_gloo_available
    """
    return True


def is_nccl_available() -> bool:
    """Tell whether NCCL can communicate tensors of CUDA devices: its library and CUDA's driver are there.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.is_nccl_available
    """
    return has_nccl()


def is_xccl_available() -> bool:
    """Tell whether tensors of XPU devices can be communicated: torch was built with its backend for them.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.distributed_c10d.is_xccl_available
    """
    return has_xccl()


def is_mpi_available() -> bool:
    """Tell whether groups can be served by MPI, which no engine here does.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.is_mpi_available
    """
    return False


def is_ucc_available() -> bool:
    """Tell whether groups can be served by UCC, which no engine here does.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.distributed_c10d.is_ucc_available
    """
    return False


def is_torchelastic_launched() -> bool:
    """Tell whether torchrun started this process.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.is_torchelastic_launched
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank among those of this host, which the launcher put into LOCAL_RANK, or else *fallback_rank*.

    Raises: RuntimeError where there is neither.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_node_local_rank
    """
    return membership.local_rank(_LOCAL_RANK, fallback_rank)


def get_default_backend_for_device(device: Any) -> str:
    """Return the name of the backend that torch takes for *device*, a ``torch.device`` or the name of one.

    Raises: ValueError for a device without one; TypeError for what is no device.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_default_backend_for_device
    """
    return default_backend_for(_DEFAULT_BACKEND, device)


def get_backend_config(group: Any = None) -> str:
    """Return ``device:backend`` pairs, with commas between them, of the backend *group* (None: the world) was made with.

    Raises: ValueError when not initialised or outside the group.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_backend_config
    """
    return str(BackendConfig(view_of(_CONFIG, group).backend))


def get_pg_count() -> int:
    """Return the number of groups that all ranks have made since the initialisation, the world included.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.distributed_c10d.get_pg_count
    """
    return registry.group_count()


def get_debug_level() -> DebugLevel:
    """Return the level that was set last, or that TORCH_DISTRIBUTED_DEBUG says.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.get_debug_level
    """
    return Level.now(_GET_LEVEL)


def set_debug_level(level: DebugLevel, /) -> None:
    """Set the debug level to *level*; the engine checks every call at each of them.

    Raises: TypeError for what is no DebugLevel.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.set_debug_level
    """
    Level.choose(_SET_LEVEL, level)


def set_debug_level_from_env() -> None:
    """Set the debug level to what TORCH_DISTRIBUTED_DEBUG says, OFF where it is not set.

    Raises: ValueError for another name than OFF, INFO and DETAIL.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.set_debug_level_from_env
    """
    Level.read(_READ_LEVEL)
