"""All mutants, by what they are mistakes in."""

from __future__ import annotations

from campaigns.mutants import (
    of_core,
    of_devices,
    of_engine,
    of_meetings,
    of_mindspore,
    of_paddle,
    of_substitution,
    of_torch,
    of_torchs_own,
    of_traces,
)
from campaigns.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_engine.MUTANTS,
    *of_core.MUTANTS,
    *of_meetings.MUTANTS,
    *of_devices.MUTANTS,
    *of_torch.MUTANTS,
    *of_torchs_own.MUTANTS,
    *of_paddle.MUTANTS,
    *of_mindspore.MUTANTS,
    *of_substitution.MUTANTS,
    *of_traces.MUTANTS,
)
