"""The format of torch's Flight Recorder: dumps that torch's ``fr_trace`` reads, and those of real jobs."""

from __future__ import annotations

from shim.trace.flight_recorder.reading import is_dump_folder, read_dumps
from shim.trace.flight_recorder.writing import write_dumps

__all__ = ["is_dump_folder", "read_dumps", "write_dumps"]
