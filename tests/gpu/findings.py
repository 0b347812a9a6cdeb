"""What a step has found so far, in the file that its starter reads: what is there counts even where the step is ended."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from device_kinds import NotThereError
from step_processes import RESULT

_LONGEST = 300  # characters of an error in the figures; all of it stands in the output


class Findings:
    """``found`` has what things are, ``figures`` what they measure, ``failed`` what went wrong in which case."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.figures: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.why = ""
        self._file = Path(os.environ[RESULT])

    def keep(self, status: str = "") -> None:
        """Write all of it to the file."""
        parts = {name: value for name, value in vars(self).items() if not name.startswith("_") and value}
        if status or self.failed:
            parts["status"] = status or "failed"
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(parts, default=str))
        new.replace(self._file)

    def fail(self, case: str, error: str) -> None:
        """Note that *case* failed, by the first line of *error* that names one, all of which goes to the output."""
        lines = error.strip().splitlines()
        told = next((line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))), lines[0])
        self.failed[case] = told[:_LONGEST]
        sys.stdout.write(f"--- {case}\n{error}\n")
        sys.stdout.flush()
        self.keep()

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """Carry out a case: note how many seconds it took, or how it failed, and go on."""
        began = time.monotonic()
        try:
            yield
        except NotThereError:
            raise
        except Exception:
            self.fail(name, traceback.format_exc())
        else:
            self.figures.setdefault("seconds", {})[name] = round(time.monotonic() - began, 3)
            self.keep()

    def skip(self, why: str) -> None:
        """Note that the step cannot be done here."""
        self.why = why
        self.keep("skipped")
