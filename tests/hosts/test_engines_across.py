"""Every collective, messages, mistakes, objects and subgroups on ranks of several hosts, each value compared on every rank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from namespaces import Network
from starting import finish, mpirun, shim_run

pytest.importorskip("torch", reason="gloo is torch's")

PROGRAM = str(Path(__file__).with_name("cases_across.py"))
MISMATCHES = str(Path(__file__).with_name("mismatches_across.py"))
CALLS = "300"  # drawn at random
DEADLINE = 120.0  # seconds


def assert_all_right(network: Network, command: list[str]) -> None:
    status, output = finish(command, DEADLINE)
    assert (status, "WRONG" in output) == (0, False), output
    for host in network.hosts:
        host.assert_empty()


@pytest.mark.nightly
def test_two_ranks_on_each_of_two_hosts(two_hosts: Network) -> None:
    assert_all_right(two_hosts, shim_run(two_hosts, 2, PROGRAM, "gloo", *"0011"))


@pytest.mark.nightly
def test_a_rank_on_each_of_three_hosts(three_hosts: Network) -> None:
    assert_all_right(three_hosts, shim_run(three_hosts, 1, PROGRAM, "gloo", *"012"))


@pytest.mark.nightly
def test_two_ranks_on_each_of_two_hosts_by_mpi(two_hosts: Network) -> None:
    assert_all_right(two_hosts, mpirun(two_hosts, 2, PROGRAM, "mpi", *"0011"))


@pytest.mark.nightly
def test_a_rank_on_each_of_three_hosts_by_mpi(three_hosts: Network) -> None:
    assert_all_right(three_hosts, mpirun(three_hosts, 1, PROGRAM, "mpi", *"012"))


@pytest.mark.nightly
@pytest.mark.parametrize("start", [shim_run, mpirun])
@pytest.mark.parametrize("ranks", [(2, 2), (1, 3), (1, 1, 1)], ids=str)
def test_mismatches_are_told_at_once_and_random_calls_are_right(
    start: Callable[..., list[str]], ranks: tuple[int, ...], two_hosts: Network, three_hosts: Network
) -> None:
    network = two_hosts if len(ranks) == 2 else three_hosts
    assert_all_right(network, start(network, ranks, MISMATCHES, CALLS))


@pytest.mark.nightly
def test_a_wrong_value_is_seen(two_hosts: Network, tmp_path: Path) -> None:
    """The program finds one wrong element on one rank."""
    program = tmp_path / "one_wrong.py"
    folder = Path(__file__).parent
    program.write_text(
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from collectives_across import calls\n"
        "right = calls.broadcast\n"
        "def wrong(caller, group, tensor, root, now=False):\n"
        "    work = right(caller, group, tensor, root, now)\n"
        "    if group.rank == 3 and getattr(tensor, 'shape', ()) == (4096,): tensor[77] += 1\n"
        "    return work\n"
        "calls.broadcast = wrong\n"
        "import cases_across; cases_across.main()\n"
    )
    status, output = finish(shim_run(two_hosts, 2, str(program), "gloo", *"0011"), DEADLINE)
    wrong = [line for line in output.splitlines() if "WRONG" in line]
    assert status == 1
    assert wrong, output
    assert all(line.startswith("[3] WRONG broadcast of 4096 ") for line in wrong), output
