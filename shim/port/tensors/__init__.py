"""Tensors' own functions in the statements that have to do with collectives: the scope ``statements``."""
