"""Data-parallel training: layers, gradients, and batches."""
