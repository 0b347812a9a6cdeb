"""``import shim.torch_backend`` makes this project's engine a backend of torch's own ``torch.distributed``, called ``"shim"``.

``torch.distributed.init_process_group("shim")``, under torchrun, ``torch.multiprocessing.spawn`` or ``shim run``, gives
DistributedDataParallel, FSDP, DeviceMesh and everything else in torch process groups of this engine, for tensors in host memory.
The package does it as well whenever torch is imported, where torch looks for backends in installed packages (2.5 and later).
"""

from __future__ import annotations

from typing import Any

__all__ = ["register"]


def register() -> None:
    """Register the backend with torch. The engine is imported when a group is made."""
    from torch.distributed import Backend

    if not hasattr(Backend, "SHIM"):
        Backend.register_backend("shim", _make_group, extended_api=True, devices=["cpu"])


def _make_group(asked: Any, options: Any) -> Any:
    from shim.frontends.torch.backend.linking import make_group

    return make_group(asked, options)


register()
