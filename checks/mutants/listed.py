"""All mutants, by what they are mistakes in."""

from __future__ import annotations

from checks.mutants import of_core, of_devices, of_engine, of_mindspore, of_paddle, of_torch, of_traces
from checks.mutants.mutant import Mutant

__all__ = ["MUTANTS"]

MUTANTS: tuple[Mutant, ...] = (
    *of_engine.MUTANTS,
    *of_core.MUTANTS,
    *of_devices.MUTANTS,
    *of_torch.MUTANTS,
    *of_paddle.MUTANTS,
    *of_mindspore.MUTANTS,
    *of_traces.MUTANTS,
)
