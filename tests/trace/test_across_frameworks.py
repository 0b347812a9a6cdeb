"""One program, written for three frameworks: its recordings are equal, call by call and value by value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_programs import IN_FRAMEWORKS

from shim.trace.differences import compare
from shim.trace.reading import read_recording

FRAMEWORKS = ["torch", "paddle_2", "paddle_3", "mindspore"]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("framework", FRAMEWORKS[1:])
def test_the_same_calls_of_another_framework_are_equal(
    framework: str, ranks: int, recorded: Callable[..., Path]
) -> None:
    one, other = (read_recording(recorded(IN_FRAMEWORKS[name], ranks, True)) for name in ("torch", framework))
    outcome = compare(one, other)
    assert outcome.differences == []
    assert outcome.equal == 6 * ranks
    assert outcome.digests == 5 * ranks
    users = [call.shape.function for call in other.calls if not call.shape.is_internal]
    assert {function.split(".")[0] for function in users} <= {framework, framework.partition("_")[0]}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_swapped_arguments_are_found(framework: str, recorded: Callable[..., Path]) -> None:
    """The trap of Paddle 3.0: output and input of alltoall_single in the wrong order give other values."""
    right, wrong = IN_FRAMEWORKS["torch"], IN_FRAMEWORKS[framework]
    for order, other in (("(exchanged, sent)", "(sent, exchanged)"), ("(sent, exchanged)", "(exchanged, sent)")):
        if order in IN_FRAMEWORKS[framework]:
            wrong = wrong.replace(order, other)
    outcome = compare(*(read_recording(recorded(program, 2, True)) for program in (right, wrong)))
    assert [(one.rank, one.number) for one in outcome.differences] == [(0, 5), (1, 5)]
    assert all(one.whats[0].startswith("values of the inputs: digest") for one in outcome.differences)
