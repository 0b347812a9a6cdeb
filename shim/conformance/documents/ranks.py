"""What happens in a rank process: run one case and say what this rank saw."""

from __future__ import annotations

from dataclasses import dataclass

from shim.conformance.documents.case import Array
from shim.conformance.documents.cases import case_named
from shim.conformance.kinds import kind_named
from shim.conformance.rank_runner import leave_world
from shim.core.job import rendezvous

__all__ = ["Sight", "see_case"]


@dataclass(frozen=True)
class Sight:
    """What one rank saw: the tensors of a case, and the version of the framework they were made with."""

    arrays: list[Array]
    version: str


def see_case(document: str, case: str, kind: str) -> Sight:
    """Run a case on this rank, leave the world it has entered, and return what was seen."""
    tensors = kind_named(kind)
    rank = rendezvous.locate().rank
    example = case_named(document, case)
    try:
        outputs = example.call(tensors, rank, example.inputs(rank))
        return Sight([tensors.read(output) for output in outputs], tensors.version)
    finally:
        leave_world()
