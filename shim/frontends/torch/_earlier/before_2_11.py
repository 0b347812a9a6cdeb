"""What was otherwise before torch 2.11."""

from __future__ import annotations

from shim.frontends.torch._groups.backends import Backend

Backend.backend_list = [name for name in Backend.backend_list if name != "fake"]
