"""``python -m shim.substitution [-m] PROGRAM ARGUMENTS``: what ``shim run --as-installed`` starts on each rank."""

from __future__ import annotations

import sys

from shim.substitution.program import run_module, run_script
from shim.substitution.tracebacks import hide_our_frames

if __name__ == "__main__":
    try:
        if sys.argv[1] == "-m":
            run_module(sys.argv[2], sys.argv[3:])
        else:
            run_script(sys.argv[1], sys.argv[2:])
    except BaseException:
        hide_our_frames()
        raise
