"""What a process outside a group is told when it calls in it."""

from __future__ import annotations

import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, NotMemberError

ME = Caller("test")


def test_a_wrong_argument_outside_the_group_is_told_in_the_callers_words() -> None:
    outside = groups.ProcessGroup("others", (1, 2), -1, None, "", 1.0)
    with pytest.raises(ArgumentError, match=r"^test: op must be good \(rank -1 of 2, group 'others'\)") as caught:
        calls.refused(ME, outside, ArgumentError("{op} must be good"))
    assert not isinstance(caught.value, NotMemberError)
