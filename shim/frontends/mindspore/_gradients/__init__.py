"""What MindSpore's autograd is told of collectives, and what their gradients are."""
