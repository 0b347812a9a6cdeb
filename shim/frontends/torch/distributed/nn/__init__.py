"""``torch.distributed.nn``: collectives that return new tensors, with gradients.

See: https://docs.pytorch.org/docs/2.13/distributed.html#collective-functions
"""

from __future__ import annotations

from shim.frontends.torch.distributed.nn import functional
from shim.frontends.torch.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "functional",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
