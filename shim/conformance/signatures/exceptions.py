"""Recorded names that a frontend knowingly does not have, each with the reason."""

from __future__ import annotations

__all__ = ["EXCEPTIONS", "NOT_REPEATED"]

EXCEPTIONS: dict[str, str] = {}

# Recorded constructors that ours does not repeat, each with the reason.
NOT_REPEATED = {"Work.__init__": "torch's is C++ and takes nothing; in torch as here, only calls make one"}
