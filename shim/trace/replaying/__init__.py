"""Makes the calls of a recording again, with made-up tensors, on ranks of this host."""
