"""The engine over torch's c10d backends for host memory, gloo above all, made without torch.distributed's global state."""
