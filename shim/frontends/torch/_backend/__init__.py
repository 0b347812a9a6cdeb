"""The engine as a backend of torch's own ``torch.distributed``: DDP, FSDP, DeviceMesh and all that torch builds on its process groups.

``import shim.torch_backend`` registers it. It needs torch; the rest of the torch frontend does not.
"""
