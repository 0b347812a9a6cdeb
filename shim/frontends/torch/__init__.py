"""PyTorch's collective-communication API, at the signatures of torch 2.13."""
