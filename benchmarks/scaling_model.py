"""Fit a cost model of the engines between hosts to hosts of network namespaces, check it on others, and tell what it says of many hosts.

    python3 -m pip install '.[test]'
    python3 benchmarks/scaling_model.py [--mbit 200] [--gbit 25] [--json FILE]     # as root, with iproute2

All hosts here share the machine's processors, so what a rank computes takes the longer the more ranks there are; the link has the rate
that it is given. docs/scaling.md explains the model.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from several_hosts import OPERATIONS, collectives

ROOT = Path(__file__).parents[1]
FITTED = ((2, 1), (3, 1), (2, 2), (3, 2))  # hosts, and ranks on each
CHECKED = ((4, 1), (6, 1), (4, 2))
SIZES = {"8 B": 8, "64 KB": 1 << 16, "1 MB": 1 << 20, "4 MB": 1 << 22}
GROUP, CONNECTING = "new_group", "connecting"  # what is measured besides OPERATIONS, without a size
GROUPS = 5
ROUNDS = 7
COSTS = ("call", "frame", "step", "message", "inside", "across", "incast", "group", "member", "link")
UNITS = (
    "us for each call",
    "us for each host that a leader exchanges arrivals with",
    "us for each operation within a host",
    "us for each message of gloo that waits for one before it",
    "us for each MB within a host",
    "us for each MB between hosts",
    "us more for each of them where several hosts send to one at once",
    "us for each group",
    "us for each rank of a group",
    "us for each other rank that gloo connects a rank of a group with, when that first moves much",
)
ARRIVAL = 200  # bytes that a rank tells the others of a call, about
FEW = 1 << 16  # see hierarchical/engine.py
PIECES = (16 << 20, 8)  # see hierarchical/engine.py
INCAST = 1.0  # MB on a host's link, from which on it drops what comes from several at once
SLOTS = (32 << 20, 1 << 20)  # see native/group/shared_layout.cpp
LARGE = (8, 32, 64, 128, 512, 1024, 4096)
RANKS_OF_LARGE = 8
MOST_RANKS = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mbit", type=int, default=200, help="rate of the links that are measured")
    parser.add_argument("--gbit", type=float, default=25.0, help="rate of the links that are foretold")
    parser.add_argument("--json", type=Path, help="write the measured figures to this file")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_rank:
        measure()
        return
    measured = {shape: launch(shape, given.mbit) for shape in (*FITTED, *CHECKED)}
    if given.json:
        given.json.write_text(json.dumps({f"{hosts}x{ranks}": ms for (hosts, ranks), ms in measured.items()}, indent=1))
    costs = fitted({shape: measured[shape] for shape in FITTED})
    show_costs(costs, given.mbit)
    for title, shapes in (("Fitted to", FITTED), ("Foretold and then measured", CHECKED)):
        show_check(title, {shape: measured[shape] for shape in shapes}, costs)
    show_large(costs, given.gbit, given.mbit)


def launch(shape: tuple[int, int], mbit: int) -> dict[str, float]:
    """Measure on so many hosts and ranks: milliseconds by operation and size."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "hosts")]
    from namespaces import make_hosts
    from starting import environment, shim_run

    hosts, ranks = shape
    print(f"measuring {hosts} hosts with {ranks} ranks each", file=sys.stderr)
    with make_hosts(hosts) as network:
        for host in network.hosts:
            network.rate(host, mbit)
        command = shim_run(network, ranks, __file__, "--as-rank")
        told = environment(SHIM_ACROSS="gloo")
        done = subprocess.run(command, env=told, stdout=subprocess.PIPE, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if "{" in line)
    found: dict[str, float] = json.loads(line[line.index("{") :])
    return found


def measure() -> None:
    """Measure as one of the ranks; rank 0 prints the medians. Calls follow each other, so that the link is never ahead of its rate."""
    import torch

    import shim.frontends.torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group()
    ranks = dist.get_world_size()
    found = {}

    def slowest(times: list[float]) -> float:
        """Return the median over rounds of the time of the slowest rank."""
        of_all = torch.tensor(times)
        dist.all_reduce(of_all, dist.ReduceOp.MAX)
        return statistics.median(of_all.tolist())

    for operation in OPERATIONS:
        for name, size in SIZES.items():
            call = collectives(dist, ranks)[operation](elements_of(size, ranks))
            calls = 50 if size <= FEW else max(1, (4 << 20) // size)
            times = []
            for _ in range(ROUNDS + 1):
                dist.barrier()
                begun = time.perf_counter()
                for _ in range(calls):
                    call()
                times.append((time.perf_counter() - begun) / calls * 1e3)
            found[f"{operation} {name}"] = slowest(times[1:])
    small, large = torch.zeros(1), torch.zeros(2 * SLOTS[1] // 4)
    times, firsts = [], []
    for _ in range(GROUPS):
        dist.barrier()
        begun = time.perf_counter()
        group = dist.new_group()
        dist.all_reduce(small, group=group)
        times.append((time.perf_counter() - begun) * 1e3)
        begun = time.perf_counter()
        dist.all_reduce(large, group=group)
        second = time.perf_counter()
        dist.all_reduce(large, group=group)
        firsts.append(max(0.0, 2 * second - begun - time.perf_counter()) * 1e3)
    found[GROUP], found[CONNECTING] = slowest(times), slowest(firsts)
    if dist.get_rank() == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


def uses(operation: str, size: int, hosts: int, ranks: int) -> np.ndarray:
    """Return how much of each of COSTS a call takes; see docs/scaling.md."""
    call, frame, step, message, inside, across, incast, group, member, link = np.eye(len(COSTS))
    everyone, megabyte, others, several = hosts * ranks, size / 1e6, hosts - 1, ranks > 1
    if operation == GROUP:
        return group + everyone * member
    if operation == CONNECTING:
        return (everyone - 1) * link

    def sent(megabytes: float) -> np.ndarray:
        return megabytes * (across + incast * (hosts > 2 and megabytes > INCAST))

    agreement = call + others * frame + others * ranks * ARRIVAL / 1e6 * across
    if size <= most_with_arrival(operation, hosts, ranks):
        of_host = {"broadcast": 1.0, "all_to_all": ranks / hosts, "reduce_scatter": ranks / hosts}
        given = 1 if operation == "broadcast" else everyone  # of which each rank reads all, or its part
        return agreement + sent(others * of_host.get(operation, ranks) * megabyte) + given * megabyte * inside
    pieces = min(PIECES[1], max(1, (size if operation == "all_reduce" else size * hosts) // PIECES[0]))
    if operation == "broadcast":
        times = math.ceil(math.log2(hosts))
        return agreement + times * message + sent(times * megabyte) + (2 * step + megabyte * inside) * several
    if operation == "all_to_all":
        return agreement + message + sent(ranks * others / hosts * megabyte) + (step + megabyte * inside) * several
    if operation == "reduce_scatter":
        return agreement + message + sent(others / hosts * megabyte) + (step + ranks * megabyte * inside) * several
    if operation == "all_reduce":
        data = sent(2 * others / hosts * megabyte) + 2 * pieces * message
        return agreement + data + (2 * step * pieces + 2 * megabyte / pieces * inside) * several
    data = sent(others * ranks * megabyte) + pieces * message
    return agreement + data + (hosts * step * pieces + everyone * megabyte / pieces * inside) * several


def elements_of(size: int, ranks: int) -> int:
    """Return how many float32 elements of about *size* bytes have a part for each of *ranks*."""
    return max(1, -(-size // 4 // ranks)) * ranks


def most_with_arrival(operation: str, hosts: int, ranks: int) -> float:
    """Return how many bytes of a rank go with its arrival; see native/collectives/request.cpp."""
    slot = 2 ** math.floor(math.log2(SLOTS[0] / (hosts * ranks * 4)))
    return min(SLOTS[1], slot) / (ranks if operation == "all_reduce" else 1)


def crowding(hosts: int, ranks: int) -> np.ndarray:
    """Return how many times longer each of COSTS is where all ranks share this machine's processors."""
    times = max(1.0, hosts * ranks / len(os.sched_getaffinity(0)))
    return np.array([1.0 if name in ("across", "incast") else times for name in COSTS])


def fitted(measured: dict[tuple[int, int], dict[str, float]]) -> np.ndarray:
    """Return the costs, in microseconds, none below 0, with which the relative errors are least."""
    rows, times = [], []
    for shape, found in measured.items():
        for case, milliseconds in found.items():
            rows.append(uses(*_parts(case, shape), *shape) * crowding(*shape) / (milliseconds * 1e3))
            times.append(1.0)
    matrix, wanted = np.array(rows), np.array(times)
    left = list(range(len(COSTS)))
    while True:
        solved = np.linalg.lstsq(matrix[:, left], wanted, rcond=None)[0]
        if (solved >= 0).all():
            costs = np.zeros(len(COSTS))
            costs[left] = solved
            return costs
        left.pop(int(solved.argmin()))


def _parts(case: str, shape: tuple[int, int]) -> tuple[str, int]:
    operation, _, size = case.partition(" ")
    return operation, 4 * elements_of(SIZES[size], math.prod(shape)) if size else 0


def show_costs(costs: np.ndarray, mbit: int) -> None:
    print(f"Costs, at a link of {mbit} Mbit/s ({8e6 / mbit:,.0f} us for each MB)")
    for name, cost, unit in zip(COSTS, costs, UNITS, strict=True):
        print(f"  {name:8}{cost:12,.0f} {unit}")


def show_check(title: str, measured: dict[tuple[int, int], dict[str, float]], costs: np.ndarray) -> None:
    print(f"\n{title}: measured and foretold ms, and foretold / measured")
    errors = []
    for shape, found in measured.items():
        for case, milliseconds in found.items():
            told = float(uses(*_parts(case, shape), *shape) * crowding(*shape) @ costs) / 1e3
            errors.append(max(told / milliseconds, milliseconds / told))
            print(f"  {shape[0]} x {shape[1]}  {case:18}{milliseconds:10.2f}{told:10.2f}{told / milliseconds:8.2f}")
    print(f"  off by a factor of {statistics.median(errors):.2f} in the median, {max(errors):.2f} at most")


def show_large(costs: np.ndarray, gbit: float, mbit: int) -> None:
    """Print what a call would take on many hosts, with ranks that have a processor each and links of another rate."""
    of_link = np.isin(COSTS, ("across", "incast"))
    there = np.where(of_link, costs * mbit / (gbit * 1e3), costs)
    sizes = {"8 B": 8, "1 MB": 1 << 20, "256 MB": 1 << 28}
    print(
        f"\nall_reduce with {RANKS_OF_LARGE} ranks on a host and {gbit:g} Gbit/s, ms; in brackets the link's part of it"
    )
    print(f"  {'hosts':>6}{'ranks':>8}" + "".join(f"{name:>22}" for name in sizes))
    for hosts in LARGE:
        cells = []
        for size in sizes.values():
            parts: Sequence[float] = uses("all_reduce", size, hosts, RANKS_OF_LARGE) * there / 1e3
            cells.append(f"{sum(parts):,.1f} ({sum(np.asarray(parts)[of_link]) / sum(parts):.0%})")
        ranks = hosts * RANKS_OF_LARGE
        more = "  more than a group may have today" if ranks > MOST_RANKS else ""
        print(f"  {hosts:6}{ranks:8}" + "".join(f"{cell:>22}" for cell in cells) + more)


if __name__ == "__main__":
    main()
