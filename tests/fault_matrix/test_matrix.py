"""Every fault in every phase, with 2, 3, 4 and 8 ranks: what each of the others is told, how soon, and that nothing is left."""

from __future__ import annotations

import pytest
from scenarios import Runner, Scenario

RANKS = (2, 3, 4, 8)
SIZES = [pytest.param(size, id=f"{size}ranks") for size in RANKS]
ENDINGS = {
    "kill": "was killed by SIGKILL",
    "segv": "was killed by SIGSEGV",
    "exit": "exited with status 3",
}

# What all ranks do, the engine's point at which one ends, and which time it comes there.
PHASES = {
    "before an arrival": ("small", "before_arrival", 20),
    "after an arrival": ("small", "after_arrival", 20),
    "before one, prepared call": ("small, waited", "before_arrival", 20),
    "before one, in background": ("small, started", "before_arrival", 20),
    "after one, in background": ("small, started", "after_arrival", 20),
    "reserving rings": ("large", "in_reserve", 1),
    "between two chunks": ("large", "in_transfer", 30),
    "the same, in background": ("large, started", "in_transfer", 30),
    "reading others' memory": ("shared", "in_direct", 5),
    "sending": ("messages", "in_send", 70),
    "receiving": ("messages", "in_receive", 70),
    "reading a lent tensor": ("lent messages", "in_lent_read", 70),
    "writing to a lent tensor": ("lent messages", "in_lent_write", 70),
    "reading each other's tensors": ("gathers", "in_cross_read", 70),
}
OF_TWO_RANKS = ("reading each other's tensors",)
OF_MESSAGES = ("messages", "lent messages")
PHASES_AND_SIZES = [
    pytest.param(phase, size, id=f"{phase}-{size}ranks")
    for phase in PHASES
    for size in RANKS
    if size == 2 or phase not in OF_TWO_RANKS
]
# The world is met for first, then each group.
MEETINGS = {
    "group, before meeting": ("making groups", "meeting", 3),
    "group, introduced": ("making groups", "introduced", 3),
    "group, before the welcome": ("making groups", "welcome", 3),
    "group, joining": ("making groups", "joining", 3),
    "group, joined": ("making groups", "joined", 3),
    "world, introduced": ("meeting", "introduced", 1),
    "world, before the welcome": ("meeting", "welcome", 1),
    "world, joining": ("meeting", "joining", 1),
    "world, joined": ("meeting", "joined", 1),
}


def scenario_of(phase: str, action: str, size: int) -> Scenario:
    what, point, which = (PHASES | MEETINGS)[phase]
    return Scenario(what, point, which, action, size, victim=0 if point == "welcome" else size - 1)


@pytest.mark.parametrize("action", ENDINGS)
@pytest.mark.parametrize(("phase", "size"), PHASES_AND_SIZES)
def test_a_death(runner: Runner, phase: str, action: str, size: int, slowest: dict[tuple[str, int], float]) -> None:
    scenario = scenario_of(phase, action, size)
    told = runner.run(scenario)
    assert sorted(told) == [rank for rank in range(size) if rank != scenario.victim]
    for seen in told.values():
        assert seen.error == "PeerLostError", seen
        assert seen.ranks == (scenario.victim,), seen
        assert f"rank {scenario.victim}'s process (pid " in seen.message, seen
        assert ENDINGS[action] in seen.message, seen
        assert seen.again == "PeerLostError", seen
        assert not seen.is_kept, seen
        assert seen.milliseconds < 1000, seen  # the machine may be busy; the summary has the figures
        slowest[phase, size] = max(slowest.get((phase, size), 0.0), seen.milliseconds)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("action", ENDINGS)
@pytest.mark.parametrize("phase", MEETINGS)
def test_a_death_while_ranks_meet(
    runner: Runner, phase: str, action: str, size: int, slowest: dict[tuple[str, int], float]
) -> None:
    scenario = scenario_of(phase, action, size)
    for rank, seen in runner.run(scenario).items():
        if seen.error == "CollectiveTimeoutError":  # it came when rank 0 had given up and was no more
            assert rank != 0, seen
            assert "rank 0 had not come" in seen.message, seen
            continue
        assert seen.error == "PeerLostError", seen
        # Who comes to rank 0 when that has just given up cannot hear of it why.
        if rank == 0 or "rank 0 went, or gave up, while group" not in seen.message:
            assert seen.ranks == (scenario.victim,), seen
            assert f"rank {scenario.victim}" in seen.message, seen
        assert seen.milliseconds < 1000, seen
        slowest[phase, size] = max(slowest.get((phase, size), 0.0), seen.milliseconds)


@pytest.mark.parametrize("size", SIZES)
def test_a_rank_that_never_comes_to_the_world(runner: Runner, size: int) -> None:
    scenario = Scenario("meeting", "meeting", 1, "kill", size, size - 1)
    told = runner.run(scenario)
    assert all(seen.error == "CollectiveTimeoutError" for seen in told.values()), told
    assert f"had not come: {size - 1}" in told[0].message, told


# Where a rank of two, three and four is late: at the points of each phase, and at many points of each collective in turn.
LATE = [
    *(
        scenario_of(phase, "late", size)
        for phase in PHASES
        if PHASES[phase][0] not in OF_MESSAGES
        for size in (2, 3, 4)
    ),
    *(
        Scenario("each in turn", point, which, "late", size, victim)
        for size in (2, 3, 4)
        for victim in (0, size - 1)
        for point, last in (("in_transfer", 60), ("before_arrival", 16), ("after_arrival", 16))
        for which in range(2, last, 5)
    ),
]


@pytest.mark.parametrize(
    "scenario",
    [each for each in LATE if each.size == 2 or each.what != "gathers"],
    ids=lambda each: f"{each.what}-{each.point}-{each.which}-rank{each.victim}of{each.size}",
)
def test_a_late_rank(runner: Runner, scenario: Scenario) -> None:
    """It goes on after the others have given up: of the operation, all ranks have the result or none has."""
    told = runner.run(scenario)
    assert len(told) == scenario.size
    assert len({seen.carried_out for seen in told.values()}) == 1, told
    for seen in told.values():
        assert {seen.error, seen.again} <= {"CollectiveTimeoutError", "PeerLostError"}, seen


@pytest.mark.parametrize(("phase", "size"), PHASES_AND_SIZES)
def test_a_stopped_rank(runner: Runner, phase: str, size: int) -> None:
    scenario = scenario_of(phase, "stop", size)
    told = runner.run(scenario)
    # The first to give up names the stopped rank; the others hear of it from that one, or find it themselves.
    assert any(
        seen.error == "CollectiveTimeoutError" and "is stopped, as by SIGSTOP" in seen.message for seen in told.values()
    ), told
    for seen in told.values():
        # Its program and its background thread may have found a different one of these at the same time.
        assert {seen.error, seen.again} <= {"CollectiveTimeoutError", "PeerLostError"}, seen
        assert not seen.is_kept, seen
        assert seen.milliseconds < 15_000, seen
