"""What the collectives of torch.distributed share: their arguments, reduce ops, Work, lists and blocks of calls."""
