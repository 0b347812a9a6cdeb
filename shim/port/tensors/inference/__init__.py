"""What the code of a file shows of its tensors: which expressions are some, and which functions use them."""
