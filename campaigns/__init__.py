"""What takes too long for every change: mistakes made on purpose, real programs, ported packages, PyTorch's own tests, and the nightly jobs."""
