"""Groups, calls, tensors, work, rendezvous and engines: everything below the frontends."""
