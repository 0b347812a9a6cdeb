"""The table of canonical collectives.

Nothing is built from it at run time. Everything is checked against it (``tests/core/test_collectives.py``): each row
has a function in ``calls``, a method in ``engines.base.Engine``, an oracle and conformance cases.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Collective:
    """One canonical collective; every function of every frontend is a layout of one of them."""

    name: str
    rooted: bool = False  # one group rank gives or gets everything
    reduces: bool = False  # takes a reduce op
    splits: bool = False  # ranks' parts may have unequal sizes
    point_to_point: bool = False  # two ranks, not the group


COLLECTIVES: tuple[Collective, ...] = (
    Collective("broadcast", rooted=True),
    Collective("all_reduce", reduces=True),
    Collective("reduce", rooted=True, reduces=True),
    Collective("all_gather", splits=True),
    Collective("gather", rooted=True, splits=True),
    Collective("scatter", rooted=True, splits=True),
    Collective("reduce_scatter", reduces=True, splits=True),
    Collective("all_to_all", splits=True),
    Collective("barrier"),
    Collective("send", point_to_point=True),
    Collective("receive", point_to_point=True),
)
