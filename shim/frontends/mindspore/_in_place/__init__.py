"""The functions that leave their results in their callers' tensors."""
