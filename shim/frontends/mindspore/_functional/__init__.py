"""The functions that return new tensors."""
