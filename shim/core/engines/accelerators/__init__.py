"""The engine for torch's tensors on other accelerators than NVIDIA's: their libraries, by the backends that torch has for them."""
