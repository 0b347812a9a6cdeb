"""Plant mistakes in programs at random, and rehearse them and right ones: ``python -m campaigns.rehearsed_mistakes``."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaigns.rehearsed_mistakes.programs import COLLECTIVES, PROGRAMS, Program

_LIMIT = 1800.0  # seconds of one rehearsal


def main(arguments: Sequence[str] | None = None) -> int:
    """Rehearse what *arguments* say, print a line for each program, and return the exit status."""
    parser = argparse.ArgumentParser("python -m campaigns.rehearsed_mistakes", description=__doc__)
    parser.add_argument("--wrong", type=int, default=20, help="programs with a mistake; %(default)s")
    parser.add_argument("--right", type=int, default=100, help="programs without any; %(default)s")
    parser.add_argument("--large", type=int, default=0, metavar="N", help="each mistake in a program of so many ranks")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    draw, failed = random.Random(given.seed), 0
    if given.large:
        for mistake in COLLECTIVES.mistakes:
            failed += _told("collectives", COLLECTIVES, given.large, mistake, draw)
    for number in range(given.wrong + given.right):
        name = draw.choice(list(PROGRAMS))
        mistake = draw.choice(PROGRAMS[name].mistakes) if number < given.wrong else ""
        failed += _told(name, PROGRAMS[name], draw.choice((4, 6, 8)), mistake, draw)
    print(f"{failed} of them were not as they should be")
    return int(failed > 0)


def _told(name: str, program: Program, ranks: int, mistake: str, draw: random.Random) -> bool:
    """Rehearse *program*, tell what came of it, and return whether that is wrong."""
    who = draw.randrange(ranks)
    variables = {"SIZE": str(draw.randrange(1, 40)), "STEPS": str(draw.randrange(1, 4)), "OMP_NUM_THREADS": "1"}
    begun = time.monotonic()
    found = _rehearsed(program, ranks, {**variables, "MISTAKE": mistake, "WHO": str(who)})
    is_wrong = "error" in found or bool(found.get("is_right")) == bool(mistake)
    is_wrong = is_wrong or (bool(mistake) and who not in _guilty(found))
    what = f"{mistake} by rank {who}" if mistake else "right"
    told = "WRONG " + json.dumps(found)[:3000] if is_wrong else f"told as {_kinds(found)}" if mistake else ""
    print(f"{name:12} {ranks} ranks, {what}: {told} ({time.monotonic() - begun:.0f} s)", flush=True)
    return is_wrong


def _rehearsed(program: Program, ranks: int, variables: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="rehearsed-") as folder:
        path = Path(folder, "program.py")
        path.write_text(program.text, encoding="utf-8")
        try:
            ended = subprocess.run(
                [sys.executable, "-m", "shim", "rehearse", "-n", str(ranks), "--json", *program.options, str(path)],
                env=os.environ | variables,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LIMIT,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"no end within {_LIMIT:.0f} s"}
    try:
        found: dict[str, Any] = json.loads(ended.stdout)
    except ValueError:
        return {"error": ended.stderr[-2000:]}
    return found


def _guilty(found: dict[str, Any]) -> set[int]:
    """Return the ranks that do otherwise than most: whose program failed or ended, or whose call or wait is another one."""
    ranks = {one["rank"] for one in (*found["failed"], *found["lost"])}
    ranks |= {rank for one in found["stuck"] for rank in one["ended"]}
    ranks |= {rank for one in found["half_made"] for rank in one["missing"]}
    waits = Counter(one["call"] for one in found["stuck"])
    ranks |= {
        one["rank"] for one in found["stuck"] if waits[one["call"]] < max(waits.values()) or len(found["stuck"]) <= 2
    }
    ranks |= {rank for one in found["stuck"] for rank in one["missing"] if len(one["missing"]) == 1}
    for one in found["disagreements"]:
        usual = Counter(one["calls"].values()).most_common(1)[0]
        ranks |= {int(rank) for rank, line in one["calls"].items() if line != usual[0] or usual[1] == 1}
    return ranks


def _kinds(found: dict[str, Any]) -> str:
    kinds = [kind for kind in ("failed", "half_made", "disagreements", "stuck", "lost") if found[kind]]
    return ", ".join([*kinds, *(one["what"] for one in found["disagreements"][:1])])


if __name__ == "__main__":
    sys.exit(main())
