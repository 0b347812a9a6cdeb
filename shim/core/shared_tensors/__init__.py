"""Tensors in memory that the other ranks of a host can read in place: new ones, and those that the frameworks allocate."""
