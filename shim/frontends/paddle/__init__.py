"""There is no unversioned Paddle frontend: the order of positional arguments differs between Paddle 2 and 3."""

raise ImportError(
    "shim.frontends.paddle: choose the version the code was written for: shim.frontends.paddle_3.distributed "
    "(alltoall and alltoall_single take the output first) or shim.frontends.paddle_2.distributed (the input first)"
)
