"""Time `shim port` on a tree of a million lines.

    python3 -m pip install '.[port]'
    python3 benchmarks/port_throughput.py

The tree is copied from the standard library's files and those of the installed packages, in an order that a fixed seed
draws. Printed is the time without a port of the files' text (finding, reading and searching them, and sending those that
are worth parsing to the processes), and the time with it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sysconfig
import tempfile
import time
from pathlib import Path

from shim.port import Plan, Ported, port_source
from shim.port.run import port_paths

SEED = 20
APIS = ("torch", "paddle_2", "paddle_3", "mindspore")


def nothing(source: str, plan: Plan) -> Ported:
    """Port nothing."""
    return Ported(source, 0, ())


def make_tree(folder: Path, lines: int) -> tuple[int, int]:
    """Fill *folder* with files of so many lines together, and return their numbers of files and lines."""
    roots = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    sources = sorted({file for root in roots for file in root.rglob("*.py")})
    random.Random(SEED).shuffle(sources)
    made = 0
    for number, source in enumerate(itertools.cycle(sources)):
        if made >= lines:
            return number, made
        content = source.read_bytes()
        target = folder / f"{number % 100}" / f"{number}_{source.name}"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content)
        made += content.count(b"\n")
    raise AssertionError("a cycle has no end")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--from", dest="source", choices=APIS, default="torch")
    parser.add_argument("--to", dest="target", choices=APIS, default="mindspore")
    chosen = parser.parse_args()
    plan = Plan(chosen.source, chosen.target)
    with tempfile.TemporaryDirectory() as folder:
        files, lines = make_tree(Path(folder), chosen.lines)
        print(f"{files:,} files, {lines:,} lines, {chosen.jobs} processes, {plan.source} to {plan.target}")
        for port in (nothing, port_source):
            begin = time.perf_counter()
            result = port_paths([Path(folder)], plan, jobs=chosen.jobs, port=port)
            took = time.perf_counter() - begin
            print(
                f"{port.__name__:12} {took:6.1f} s, {lines / took:10,.0f} lines/s: {len(result.changed)} files changed, "
                f"{result.places} places, {result.count('left')} left, {len(result.unported)} files not ported"
            )


if __name__ == "__main__":
    main()
