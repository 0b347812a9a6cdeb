"""A source file: its names resolved to the APIs that they stand for, what flows where, and what its groups and tensors are."""
