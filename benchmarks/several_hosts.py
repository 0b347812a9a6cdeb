"""Time collectives between two hosts of network namespaces: ours over gloo and over Open MPI, plain gloo and plain Open MPI, in turns.

    python3 -m pip install '.[test]'
    python3 benchmarks/several_hosts.py [--mbit 1000] [--ranks 2] [--json FILE]     # as root, with iproute2

mpirun starts the ranks twice, once for each library between the hosts; both peers are in both runs. A call's time is that of the slowest rank;
printed are the median and the 10th percentile over rounds, in milliseconds, and the processor time that all ranks together spend on a call.
The floor is the time in which the link carries what has to cross it at all: of an all_reduce the data once to each host, of an all_gather what
the other host's ranks have, of an all_to_all their parts for this host, and of a reduce_scatter the sum of these. The size is that of a rank's input.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
HOSTS = 2
PORT = 29533
SIZES = {"8 B": (8, 300), "1 KB": (1 << 10, 300), "64 KB": (1 << 16, 100), "1 MB": (1 << 20, 30), "16 MB": (1 << 24, 6)}
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
TURNS = 3
Maker = Callable[[int], Callable[[], Any]]  # of a call on so many float32 elements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mbit", type=int, default=1000, help="rate of the link in both directions, 0 for no limit")
    parser.add_argument("--ranks", type=int, default=2, help="on each of the two hosts")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--across", nargs="+", choices=("gloo", "mpi"), default=["gloo", "mpi"])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_rank:
        measure(given)
    else:
        launch(given)


def launch(given: argparse.Namespace) -> None:
    """Make the hosts and have mpirun start the ranks there."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "hosts")]
    from namespaces import make_hosts
    from starting import environment, mpirun

    found: dict[str, Any] = {}
    with make_hosts(HOSTS) as network:
        for host in network.hosts if given.mbit else []:
            network.rate(host, given.mbit)
        for across in given.across:
            told = {
                "SHIM_ENGINE": "hierarchical",
                "SHIM_ACROSS": across,
                "SHIM_SECRET": os.urandom(16).hex(),
                "SHIM_INTERFACE": network.hosts[0].interface,
                "GLOO_SOCKET_IFNAME": network.hosts[0].interface,
                "OMPI_MCA_mpi_yield_when_idle": "1",  # as there may be more ranks than processors
                "MASTER_ADDR": network.hosts[0].address,
                "MASTER_PORT": str(PORT),
            }
            command = mpirun(network, given.ranks, __file__, "--as-rank", "--sizes", *given.sizes)
            command[(at := command.index("-n")) : at] = [word for name in told for word in ("-x", name)]
            done = subprocess.run(command, env=environment(**told), stdout=subprocess.PIPE, text=True, check=True)
            found[across] = json.loads(done.stdout.splitlines()[-1])
            show(across, found[across], given)
    if given.json:
        given.json.write_text(json.dumps({"mbit": given.mbit, "ranks": given.ranks, "ms": found}, indent=1))


def measure(given: argparse.Namespace) -> None:
    """Measure as one of the ranks; rank 0 prints the medians."""
    import torch
    import torch.distributed as gloo
    from mpi4py import MPI

    import shim.frontends.torch.distributed as ours

    torch.set_num_threads(1)
    mpi = MPI.COMM_WORLD
    ours.init_process_group()
    store = gloo.TCPStore(os.environ["MASTER_ADDR"], PORT + 1, is_master=mpi.rank == 0)
    gloo.init_process_group("gloo", store=store, rank=mpi.rank, world_size=mpi.size)
    ways = {"ours": collectives(ours, mpi.size), "gloo": collectives(gloo, mpi.size), "open mpi": of_mpi(mpi)}
    found: dict[str, dict[str, list[list[float]]]] = {}
    for _ in range(TURNS):
        for case, operation, count, rounds in cases(given.sizes, mpi.size):
            for way, operations in ways.items():
                times, spent = timed(operations[operation](count), rounds // TURNS, ways["gloo"]["barrier"](0))
                if mpi.rank == 0:
                    print(f"{case}, {way}: {statistics.median(times):.2f} ms", file=sys.stderr)
                slowest, all_spent = torch.tensor(times), torch.tensor([spent])
                gloo.all_reduce(slowest, gloo.ReduceOp.MAX)
                gloo.all_reduce(all_spent)
                both = found.setdefault(case, {}).setdefault(way, [[], []])
                both[0] += slowest.tolist()
                both[1] += all_spent.tolist()
    if mpi.rank == 0:
        print(
            json.dumps(
                {
                    case: {
                        way: [statistics.median(times), statistics.quantiles(times, n=10)[0], statistics.mean(spent)]
                        for way, (times, spent) in by_way.items()
                    }
                    for case, by_way in found.items()
                }
            )
        )
    gloo.destroy_process_group()
    ours.destroy_process_group()


def cases(sizes: list[str], ranks: int) -> Iterator[tuple[str, str, int, int]]:
    """Give each case's name, operation, number of float32 elements of a rank's input, and rounds."""
    for operation in OPERATIONS:
        for size in sizes:
            count = max(SIZES[size][0] // 4, ranks if operation in ("all_to_all", "reduce_scatter") else 1)
            yield f"{operation} {size}", operation, count, SIZES[size][1]


def collectives(dist: Any, ranks: int) -> dict[str, Maker]:
    """Return what makes each operation, of a module with torch.distributed's functions."""
    import torch

    def all_reduce(count: int) -> Callable[[], Any]:
        data = torch.zeros(count)
        return lambda: dist.all_reduce(data)

    def all_gather(count: int) -> Callable[[], Any]:
        data, gathered = torch.zeros(count), torch.zeros(ranks * count)
        return lambda: dist.all_gather_single(gathered, data)

    def all_to_all(count: int) -> Callable[[], Any]:
        data, received = torch.zeros(count), torch.zeros(count)
        return lambda: dist.all_to_all_single(received, data)

    def reduce_scatter(count: int) -> Callable[[], Any]:
        data, mine = torch.zeros(count), torch.zeros(count // ranks)
        return lambda: dist.reduce_scatter_single(mine, data)

    def broadcast(count: int) -> Callable[[], Any]:
        data = torch.zeros(count)
        return lambda: dist.broadcast(data, 0)

    return _by_name(all_reduce, all_gather, reduce_scatter, all_to_all, broadcast) | {"barrier": lambda _: dist.barrier}


def of_mpi(mpi: Any) -> dict[str, Maker]:
    """Return what makes each operation of mpi4py."""
    from mpi4py import MPI

    def all_reduce(count: int) -> Callable[[], Any]:
        data = np.zeros(count, np.float32)
        return lambda: mpi.Allreduce(MPI.IN_PLACE, data)

    def all_gather(count: int) -> Callable[[], Any]:
        data, gathered = np.zeros(count, np.float32), np.zeros(mpi.size * count, np.float32)
        return lambda: mpi.Allgather(data, gathered)

    def all_to_all(count: int) -> Callable[[], Any]:
        data, received = np.zeros(count, np.float32), np.zeros(count, np.float32)
        return lambda: mpi.Alltoall(data, received)

    def reduce_scatter(count: int) -> Callable[[], Any]:
        data, mine = np.zeros(count, np.float32), np.zeros(count // mpi.size, np.float32)
        return lambda: mpi.Reduce_scatter_block(data, mine)

    def broadcast(count: int) -> Callable[[], Any]:
        data = np.zeros(count, np.float32)
        return lambda: mpi.Bcast(data)

    return _by_name(all_reduce, all_gather, reduce_scatter, all_to_all, broadcast)


def _by_name(*makers: Maker) -> dict[str, Maker]:
    """Return what makes the OPERATIONS, by their names."""
    return {maker.__name__: maker for maker in makers}


def timed(action: Callable[[], Any], rounds: int, barrier: Callable[[], Any]) -> tuple[list[float], float]:
    """Return how many milliseconds *action* takes here, in each of *rounds* after two, and how much processor time as a mean of as many calls in a row."""
    found = []
    for _ in range(rounds + 2):
        barrier()
        begun = time.perf_counter()
        action()
        found.append((time.perf_counter() - begun) * 1e3)
    barrier()
    begun = time.process_time()
    for _ in range(rounds):
        action()
    return found[2:], (time.process_time() - begun) * 1e3 / rounds


def floor_of(operation: str, size: int, given: argparse.Namespace) -> float:
    """Return in how many milliseconds the link carries what has to cross it."""
    across = {"all_reduce": size, "all_gather": given.ranks * size, "broadcast": size, "reduce_scatter": size / HOSTS}
    across["all_to_all"] = given.ranks * size / HOSTS
    return float(across[operation]) * 8 / (given.mbit * 1e3)


def show(across: str, found: dict[str, dict[str, list[float]]], given: argparse.Namespace) -> None:
    print(
        f"{HOSTS} hosts of {given.ranks} ranks, {given.mbit or 'no limit of'} Mbit/s, ours over {across}; median (10th percentile) in ms, "
        "and ms of processor time"
    )
    print(f"{'':22}{'ours':>20}{'gloo':>20}{'open mpi':>20}{'floor':>8}{'ours/gloo':>18}{'ours/open mpi':>15}")
    for case, by_way in found.items():
        operation, _, size = case.partition(" ")
        floor = floor_of(operation, SIZES[size][0], given) if given.mbit else 0.0
        ours, gloo, mpi = by_way["ours"], by_way["gloo"], by_way["open mpi"]
        shown = "".join(f"{f'{way[0]:.2f} ({way[1]:.2f}) {way[2]:.2f}':>20}" for way in (ours, gloo, mpi))
        ratios = f"{ours[0] / gloo[0]:.2f} ({ours[1] / gloo[1]:.2f})"
        print(f"{case:22}{shown}{floor:8.2f}{ratios:>18}{ours[0] / mpi[0]:15.2f}")


if __name__ == "__main__":
    main()
