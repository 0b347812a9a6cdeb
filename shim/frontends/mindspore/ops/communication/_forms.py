"""``mindspore.ops.communication``: the switch between functions that work in place and functions that return results."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.callers import Caller
from shim.frontends.mindspore._functional import in_place_switch

_SET_COMM_OPS_INPLACE = Caller("mindspore.ops.communication.set_comm_ops_inplace")


def set_comm_ops_inplace(is_enable: bool, func_list: Sequence[str] | None = None) -> None:
    """Let the functions named in *func_list*, or all, work in place, or return their results if not *is_enable*.

    Those that work only in place raise ValueError when they are called after False.
    Raises: TypeError if *is_enable* is no bool or *func_list* no list; ValueError for a name that is none of them.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.set_comm_ops_inplace.html
    """
    return in_place_switch.switch(_SET_COMM_OPS_INPLACE, is_enable, func_list)
