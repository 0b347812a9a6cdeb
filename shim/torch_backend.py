"""``import shim.torch_backend`` makes this project's engine a backend of torch's own ``torch.distributed``, called ``"shim"``.

``torch.distributed.init_process_group("shim")``, under torchrun, ``torch.multiprocessing.spawn`` or ``shim run``, gives
DistributedDataParallel, FSDP, DeviceMesh and everything else in torch process groups of this engine, for tensors in host memory.
With ``SHIM_TORCH_BACKEND=1`` in the environment, ``"gloo"`` and no backend mean the engine as well.

After the import, the torch frontend and torch's own classes see the same groups: what
``shim.frontends.torch.distributed.init_process_group`` makes is torch's default group too, and the other way round.
"""

from __future__ import annotations

import torch.distributed  # noqa: F401  # first: torch comes to modules of ours itself when it is imported

from shim.frontends.torch._backend.making import link
from shim.frontends.torch._backend.registration import register

__all__: list[str] = []

register()
link()
