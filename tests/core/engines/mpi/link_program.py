"""Run all cases of a link on this rank, and write what came of them into the folder that is given."""

from __future__ import annotations

import faulthandler
import json
import sys
import traceback
from pathlib import Path

import group_cases
import link_cases


def main() -> None:
    failures = {}
    rank = link_cases.WORLD.Get_rank()
    path = Path(sys.argv[1]) / f"{rank}.json"
    for name, case in {**link_cases.CASES, **group_cases.CASES}.items():
        failures[name] = "did not end"
        path.write_text(json.dumps(failures))
        faulthandler.dump_traceback_later(link_cases.DEADLINE + 10, exit=True)
        try:
            case()
            failures[name] = ""
        except BaseException:
            failures[name] = traceback.format_exc()
        path.write_text(json.dumps(failures))
        link_cases.WORLD.Barrier()


main()
