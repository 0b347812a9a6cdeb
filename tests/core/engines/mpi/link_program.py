"""Run all cases of a link on this rank, and write what came of them into the folder that is given."""

from __future__ import annotations

import faulthandler
import json
import sys
import traceback
from pathlib import Path

from shim.core.engines.mpi.library import library

mpi = library().mpi  # before anything else imports it

import link_cases  # noqa: E402


def main() -> None:
    failures = {}
    rank = mpi.COMM_WORLD.Get_rank()
    path = Path(sys.argv[1]) / f"{rank}.json"
    for name, case in link_cases.CASES.items():
        failures[name] = "did not end"
        path.write_text(json.dumps(failures))
        faulthandler.dump_traceback_later(link_cases.DEADLINE + 10, exit=True)
        try:
            case()
            failures[name] = ""
        except BaseException:
            failures[name] = traceback.format_exc()
        path.write_text(json.dumps(failures))
        mpi.COMM_WORLD.Barrier()


main()
