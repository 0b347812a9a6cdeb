"""What an example has started and does not wait for."""

from __future__ import annotations

import pytest

from shim.conformance.examples.comparing import unwaited


class Handle:
    def wait(self, timeout: float = 0) -> None: ...


class Store:
    def wait(self, keys: list[str]) -> None: ...


def test_a_handle_is_found() -> None:
    assert unwaited({"x": 1, "handle": Handle()}, ["handle = f()", "print(x)"]) == "handle"
    assert unwaited({"handles": [Handle()]}, []) == "handles"


@pytest.mark.parametrize("source", ["handle.wait()", "dist.wait(x)", "torch.cuda.synchronize()"])
def test_code_that_waits_is_believed(source: str) -> None:
    assert unwaited({"handle": Handle()}, [source]) is None


@pytest.mark.parametrize("value", [Handle, Store(), None, [1], 3, "wait", pytest])
def test_other_things_are_no_handles(value: object) -> None:
    assert unwaited({"value": value}, []) is None


def test_names_of_the_module_are_passed_over() -> None:
    assert unwaited({"__handle__": Handle()}, []) is None
