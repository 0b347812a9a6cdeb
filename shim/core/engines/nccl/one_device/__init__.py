"""What NCCL refuses: operations of several ranks that share one device, by memory of one process that the others open."""
