"""The communication primitives, which are MindSpore's own where that is loaded."""
