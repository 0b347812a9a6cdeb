"""Parts of tensors that the code writes into: whether the tensor itself changes differs between the frameworks."""

from __future__ import annotations

from shim.port.tensors.views.of_mindspore import report_copy, report_unreached
from shim.port.tensors.views.of_paddle import check_views, written_parts

__all__ = ["check_views", "report_copy", "report_unreached", "written_parts"]
