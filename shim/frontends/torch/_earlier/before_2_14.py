"""What was otherwise before torch 2.14."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.core.engines.base import Tensor
from shim.frontends._releases import earlier_form_of
from shim.frontends.torch._groups.backends import Backend
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch.distributed import _inplace_collectives, _lifecycle, _object_collectives, _tensor_checks


@earlier_form_of(_object_collectives.all_gather_object)
def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    return _object_collectives.all_gather_object(object_list, obj, group)


@earlier_form_of(_object_collectives.gather_object)
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    return _object_collectives.gather_object(obj, object_gather_list, dst, group, group_dst)


@earlier_form_of(_object_collectives.broadcast_object_list)
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    return _object_collectives.broadcast_object_list(object_list, src, group, device, group_src)


@earlier_form_of(_object_collectives.scatter_object_list)
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    return _object_collectives.scatter_object_list(
        scatter_object_output_list, scatter_object_input_list, src, group, group_src
    )


@earlier_form_of(_object_collectives.send_object_list)
def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    return _object_collectives.send_object_list(object_list, dst, group, device, group_dst, use_batch)


@earlier_form_of(_object_collectives.recv_object_list)
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    return _object_collectives.recv_object_list(object_list, src, group, device, group_src, use_batch)


@earlier_form_of(_tensor_checks._object_to_tensor)
def _object_to_tensor(obj: Any, device: Any, group: Any) -> tuple[Any, Any]:
    return _tensor_checks._object_to_tensor(obj, device, group)


@earlier_form_of(_tensor_checks._tensor_to_object)
def _tensor_to_object(tensor: Any, tensor_size: Any, group: Any) -> Any:
    return _tensor_checks._tensor_to_object(tensor, tensor_size, group)


@earlier_form_of(_inplace_collectives.isend_inplace)
def isend_inplace(tensor: Tensor, dst: int, tag: int = 0, group: Any = None, group_dst: int = -1) -> Any:
    return _inplace_collectives.isend_inplace(tensor, dst, tag, group, group_dst)


@earlier_form_of(_inplace_collectives.irecv_inplace)
def irecv_inplace(tensor: Tensor, src: int, tag: int = 0, group: Any = None, group_src: int = -1) -> Any:
    return _inplace_collectives.irecv_inplace(tensor, src, tag, group, group_src)


@earlier_form_of(_lifecycle.init_process_group)
def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    return _lifecycle.init_process_group(
        backend, init_method, timeout, world_size, rank, store, group_name, pg_options, device_id, _ranks
    )


def _register_backend(
    cls: type[Backend], name: str, func: Any, extended_api: bool = False, devices: Any = None
) -> None:
    _register_newest(name, func, extended_api, devices)


_register_newest = Backend.register_backend
Backend.register_backend = classmethod(_register_backend)  # type: ignore[assignment,method-assign]
