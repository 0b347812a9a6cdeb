"""Questions about the world that much code asks by this path."""

from __future__ import annotations

from shim.frontends._paddle.groups.membership import _is_data_parallel_mode, _is_parallel_ctx_initialized

__all__ = ["_is_data_parallel_mode", "_is_parallel_ctx_initialized"]
