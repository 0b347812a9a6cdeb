"""``python -m campaigns.questions [--own | --record]``: compares the answers in substituted programs with those in the frameworks' own worlds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from campaigns.questions.comparison import RECORD, answers_of, ask_framework, ask_ours, compare, recorded, recording
from campaigns.questions.listed import FOLDERS


def main(arguments: Sequence[str]) -> int:
    """Print the comparison of each framework, with the reasons, and return the exit status."""
    parser = argparse.ArgumentParser("python -m campaigns.questions", description=__doc__)
    parser.add_argument(
        "--own", action="store_true", help="start the frameworks' own worlds instead of reading the record"
    )
    parser.add_argument("--record", action="store_true", help="record the answers in the frameworks' own worlds first")
    options = parser.parse_args(arguments)
    if options.record:
        record = {framework: recording(framework) for framework in FOLDERS}
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    status = 0
    for framework in FOLDERS:
        theirs = answers_of(framework, ask_framework) if options.own else recorded(framework)
        found = compare(framework, theirs, answers_of(framework, ask_ours))
        lines = [f"{framework}: {found}", *(f"  {line}" for line in (*found.explained, *found.faults))]
        sys.stdout.write("\n".join(lines) + "\n")
        status |= bool(found.faults)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
