"""What it costs that the ranks compare their calls: an 8-byte all_reduce with that, and of a build without it, in turns.

cmake -S . -B build/cost -DCMAKE_BUILD_TYPE=Release -DSHIM_BUILD_TESTS=ON
cmake --build build/cost --target all_reduce_with_agreement all_reduce_with_no_agreement
python3 benchmarks/agreement_cost.py build/cost
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from pathlib import Path


def nanoseconds(program: Path) -> float:
    """Return the median of one run."""
    return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="the folder of a build with the engine's tests")
    parser.add_argument("--rounds", type=int, default=15, help="how often the two take turns")
    options = parser.parse_args()
    tests = options.build / "native" / "tests"
    pairs = [
        (nanoseconds(tests / "all_reduce_with_agreement"), nanoseconds(tests / "all_reduce_with_no_agreement"))
        for _ in range(options.rounds)
    ]
    compared, not_compared = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(with_it / without_it for with_it, without_it in pairs)
    print(f"calls compared {compared:.1f} ns, not compared {not_compared:.1f} ns, ratio of the pairs {ratio:.3f}")


if __name__ == "__main__":
    main()
