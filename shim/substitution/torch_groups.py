"""torch's own process groups in a substituted program: they are the engine's, and the world is the program's.

So torch's classes that need them, DistributedDataParallel, FSDP and DeviceMesh among them, run, and an installed package that asks ``torch.distributed``
for the world, or starts it, gets the one that the program's frontend has.
"""

from __future__ import annotations

from types import ModuleType

from shim.frontends._after_import import after_import


def serve_torch_when_imported() -> None:
    """Have torch's own process groups of host memory be the engine's, as soon as there is torch."""
    after_import("torch", _serve)


def link_torch() -> None:
    """Have the frontend's world and groups be torch's own from now on, where torch has none of another backend."""
    from shim.frontends.torch._backend.making import link  # here, as it imports torch

    link()


def _serve(torch: ModuleType) -> None:
    if torch.distributed.is_available():
        from shim.frontends.torch._backend.serving import serve

        serve()
