"""The functional collectives: results are new tensors, with gradients, also in graphs of torch.compile."""
