"""Hold the times that `shim rehearse --cluster` foretells beside hosts of network namespaces, whose links have a rate.

    python3 -m pip install '.[test]'
    python3 benchmarks/rehearsed_times.py [--mbit 200]     # as root, with iproute2

docs/rehearsal.md says what is foretold; a host's link is shared by its ranks.
"""

from __future__ import annotations

import argparse
import math
import statistics

from scaling_model import SIZES, elements_of, launch

from shim.rehearsal.clusters import Cluster, Link, use_of_bytes

SHAPES = ((2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2))  # hosts, and ranks on each
INSIDE = Link(4e9, 15e-6)
LATENCY = 60e-6  # between hosts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mbit", type=int, default=200, help="rate of the links")
    given = parser.parse_args()
    factors: dict[str, list[float]] = {"8 B": [], "64 KB": [], "1 MB and 4 MB": []}
    print(f"| ms, measured and foretold | {' | '.join(f'{hosts} hosts, {ranks} each' for hosts, ranks in SHAPES)} |")
    print("| --- |" + " --- |" * len(SHAPES))
    rows: dict[str, list[str]] = {}
    for hosts, ranks in SHAPES:
        cluster = Cluster(ranks, INSIDE, Link(given.mbit * 1e6 / 8 / ranks, LATENCY))
        for case, measured in launch((hosts, ranks), given.mbit).items():
            operation, _, name = case.partition(" ")
            if name not in SIZES:
                continue
            size = 4 * elements_of(SIZES[name], hosts * ranks) * (hosts * ranks if operation == "all_gather" else 1)
            foretold = 1e3 * cluster.seconds(use_of_bytes(operation, size, hosts * ranks, hosts, ranks))
            rows.setdefault(case, []).append(f"{measured:.3g}, {foretold:.3g}")
            factors[name if name in factors else "1 MB and 4 MB"].append(measured / foretold)
    for case, cells in rows.items():
        print(f"| {case} | {' | '.join(cells)} |")
    for name, found in factors.items():
        off = [math.exp(abs(math.log(factor))) for factor in found]
        print(f"{name}: off by a factor of {statistics.median(off):.2f} in the median, {max(off):.2f} at most")


if __name__ == "__main__":
    main()
