"""The engine for CUDA tensors of any framework: NCCL, by its C functions."""
