"""Data-parallel training: the mode, the gradients' reducer, and what of MindSpore's asks for the mode."""
