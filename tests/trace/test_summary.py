"""Where the time of a job went, and whose fault it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_recordings import WORLD, all_reduce, call, failure, recording, tensors
from recorded_programs import AGAIN, EVERYTHING

from shim.core.tracing.layout import State
from shim.trace.aligning import meetings_of
from shim.trace.calls import Group, Shape
from shim.trace.reading import read_recording
from shim.trace.summary import summarize


def test_the_last_to_come_is_the_slowest() -> None:
    job = recording(
        call(0, all_reduce(), 0, 110), call(0, all_reduce(), 200, 320),
        call(1, all_reduce(), 100, 112), call(1, all_reduce(), 300, 321),
    )  # fmt: skip
    found = summarize(job)
    [operation] = found.operations
    assert (operation.calls, operation.bytes, operation.waiting, operation.moving) == (
        2,
        4 * 24,
        200,
        10 + 20 + 12 + 21,
    )
    assert operation.slowest == (1, 1.0)
    assert [(one.waiting, one.moving, one.awaited) for one in found.ranks] == [(200, 30, 0), (0, 33, 200)]
    assert found.slowest is found.ranks[1]
    assert found.seconds == 321e-9


def test_a_wait_ends_with_the_call() -> None:
    """A rank that was late for a call which the others gave up counts until they did."""
    job = recording(call(0, all_reduce(), 0, 50, failure=failure()), call(1, all_reduce(), 80, 90))
    assert [one.waiting for one in summarize(job).ranks] == [50, 0]


@pytest.mark.parametrize(
    ("waited", "in_background", "expected"),
    [(None, True, (0, 0)), (60, True, (40, 20)), (110, True, (0, 10)), (None, False, (100, 20))],
)
def test_a_call_in_the_background_costs_the_program_only_its_wait(
    waited: int | None, in_background: bool, expected: tuple[int, int]
) -> None:
    mine = call(0, all_reduce(), 0, 120, waited=waited, in_background=in_background)
    found = summarize(recording(mine, call(1, all_reduce(), 100, 121))).ranks[0]
    assert (found.waiting, found.moving) == expected


def test_what_has_not_ended_waits_for_those_that_have_not_come() -> None:
    job = recording(call(0, all_reduce(), 0, 10), call(1, all_reduce(), 5, 10), call(0, all_reduce(), 20, None), call(1, all_reduce(group=replace(WORLD, ranks=(1,), key="other")), 90, 100))  # fmt: skip
    found = summarize(job)
    assert [(one.rank, absent) for one, absent in found.unfinished] == [(0, (1,))]
    assert found.ranks[0].waiting == 5 + 80
    assert found.ranks[1].awaited == 85


def test_failures_are_listed() -> None:
    job = recording(call(0, all_reduce(), 0, 9, failure=failure()), call(1, all_reduce(), 1, 9, failure=failure()))
    assert [one.rank for one in summarize(job).failures] == [0, 1]


def test_what_a_rank_refused_is_a_failure_and_no_operation_and_what_failed_has_moved_no_bytes() -> None:
    refused = all_reduce(collective="refused", inputs=None, outputs=None, op="", function="torch.distributed.reduce")
    job = recording(
        call(0, all_reduce(), 0, 9), call(1, all_reduce(), 1, 9),
        call(0, all_reduce(), 10, 11, failure=failure("TensorError")), call(1, all_reduce(), 10, 19, failure=failure()),
        call(0, refused, 20, 21, failure=failure("ArgumentError")), call(1, refused, 20, 21, failure=failure("RankError")),
    )  # fmt: skip
    found = summarize(job)
    [operation] = found.operations
    assert (operation.collective, operation.calls, operation.bytes) == ("all_reduce", 2, 2 * 24)
    assert [one.calls for one in found.ranks] == [1, 2]
    assert [(one.rank, one.failure.kind) for one in found.failures if one.failure] == [
        (0, "TensorError"), (0, "ArgumentError"), (1, "MismatchError"), (1, "RankError"),
    ]  # fmt: skip
    assert found.failures[1].line() == "torch.distributed.reduce, at /a/train.py:7 in step"


def test_calls_of_shim_itself_count_where_asked_for() -> None:
    job = recording(*(call(rank, all_reduce(is_internal=True), rank, 9) for rank in range(2)))
    assert summarize(job).operations == []
    assert summarize(job, internal=True).operations[0].calls == 1
    assert summarize(job).internal_calls == 2


def _message(rank: int, collective: str, begin: int, tag: int = 0, **more: object) -> object:
    given = {"inputs" if collective == "send" else "outputs": tensors((4,))}
    shape = Shape(WORLD, collective, peer=more.pop("peer", 1 - rank), tag=tag, **given)
    return call(rank, shape, begin, begin + 100, **more)


def test_messages_are_paired_by_ranks_tag_and_order() -> None:
    job = recording(
        _message(0, "send", 0, 1), _message(0, "send", 10, 2), _message(0, "send", 20, 1),
        _message(1, "receive", 5, 2), _message(1, "receive", 15, 1, peer=None, source_rank=0), _message(1, "receive", 25, 1),
    )  # type: ignore[arg-type]  # fmt: skip
    pairs = [tuple(call.begin for call in meeting.calls) for meeting in meetings_of(job)]
    assert sorted(pairs) == [(0, 15), (10, 5), (20, 25)]


def test_a_group_that_is_made_again_is_another_group() -> None:
    again = replace(WORLD, occurrence=2)
    job = recording(call(0, all_reduce(), 0, 1), call(0, all_reduce(group=again), 2, 3), call(1, all_reduce(group=again), 1, 3))  # fmt: skip
    assert [(len(meeting.calls), meeting.absent) for meeting in meetings_of(job)] == [(1, (1,)), (2, ())]


def test_a_world_that_is_made_again_has_groups_of_its_own(recorded: Callable[..., Path]) -> None:
    job = read_recording(recorded(AGAIN))
    assert [group.occurrence for _, group in job.ranks[1].groups] == [1, 2]
    assert [call.shape.group.occurrence for call in job.ranks[0].calls] == [1, 1, 2, 2]  # of each the first is shim's
    assert all(len(meeting.calls) == 2 for meeting in meetings_of(job))


def test_a_recording_of_a_program_is_whole(recorded: Callable[..., Path]) -> None:
    job = read_recording(recorded(EVERYTHING, 3))
    meetings = list(meetings_of(job))
    assert all(not meeting.absent for meeting in meetings)
    assert all(
        len({call.shape.collective for call in one.calls}) == 1 for one in meetings if not one.calls[0].shape.is_message
    )
    assert all(len(one.calls) == 2 for one in meetings if one.calls[0].shape.is_message)
    assert all(call.state == State.ENDED for call in job.calls)
    assert all(rank.has_ended for rank in job.ranks.values())
    assert {group.name for _, group in job.ranks[0].groups} == {"world", "group_1"}
    names = {(one.collective, one.group): one.calls for one in summarize(job).operations}
    assert names[("all_reduce", "world")] == names[("all_reduce", "group_1")] == 2
    assert names[("send and receive", "world")] == 4
    assert names[("all_gather of objects", "world")] == 2
    assert isinstance(job.calls[0].shape.group, Group)
