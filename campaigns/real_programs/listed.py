"""All programs of the table."""

from __future__ import annotations

from campaigns.real_programs import of_libraries, of_torch, of_trainers
from campaigns.real_programs.left_out import LEFT_OUT

__all__ = ["LEFT_OUT", "PROGRAMS"]

PROGRAMS = (*of_torch.PROGRAMS, *of_trainers.PROGRAMS, *of_libraries.PROGRAMS)
