"""Where the measurement of ported packages sees a use of an API, in code that the port has nothing to do with."""

from __future__ import annotations

import ast

from campaigns.ported_packages.sites import Site, sites_of

CODE = """\
from typing import Literal, Optional
import torch.distributed as dist

def gather(group: Optional["dist.ProcessGroup"] = None, kind: Literal["not code"] = "dist.group") -> "dist.Work":
    handle: "dist.Work" = dist.barrier(group=group)
    return handle
"""


def test_names_in_quoted_annotations_are_uses() -> None:
    assert sorted(sites_of(ast.parse(CODE), "torch"), key=lambda site: (site.first, site.name)) == [
        Site("import torch.distributed", 2, 2),
        Site("torch.distributed.ProcessGroup", 4, 4),
        Site("torch.distributed.Work", 4, 4),
        Site("torch.distributed.Work", 5, 5),
        Site("torch.distributed.barrier", 5, 5, ("group",)),
    ]
