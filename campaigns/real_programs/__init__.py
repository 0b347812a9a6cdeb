"""Programs that use torch.distributed as its users do, through libraries or through torch's own features, on gloo and on the engine."""
