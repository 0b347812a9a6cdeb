"""What a rank sees of an example, here in this process and without a framework."""

from __future__ import annotations

import builtins
import gc
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.cases import examples_of_case
from shim.conformance.examples.reading.files import examples_in_files
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running import rank as rank_module
from shim.conformance.examples.running.rank import Sight, StepSight, see_example
from shim.conformance.examples.running.runner import unseen_steps
from shim.substitution import own_modules
from shim.substitution.importlib_bootstrap import ImportHook

PLAIN = "plain"  # a framework of which there is nothing


@pytest.fixture(autouse=True)
def no_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_module, "_kept", [])


def example(*lines: str) -> Example:
    (found,) = examples_in("\n".join(lines), PLAIN, "function", "here")
    return found


def see(*lines: str, rank: int = 0) -> Sight:
    return see_example(example(*lines), rank)


def test_what_is_shown_is_seen() -> None:
    sight = see(">>> x = [1, 2]", ">>> print(x)", "[1, 2]", ">>> x", "[1, 2]")
    assert sight.failures == []
    assert [step.outputs for step in sight.steps] == [(), ("[1, 2]",), ("[1, 2]",)]


def test_a_difference_is_told_with_its_line() -> None:
    failure = see(">>> x = [1, 2]", ">>> print(x)", "[1, 3]").failures[0]
    assert failure.line == 2
    assert "shown 3, seen 2" in str(failure.difference)


def test_an_error_ends_the_example_on_its_line() -> None:
    sight = see(">>> x = 1", ">>> def f():", "...     return 1 / 0", ">>> f()", ">>> print(x)")
    assert sight.failures
    assert sight.failures[0].line == 4
    assert 'function.py", line 3, in f' in str(sight.failures[0].error)
    assert "    return 1 / 0" in str(sight.failures[0].error)
    assert len(sight.steps) == 3


ON_ONE_RANK = (">>> import os", ">>> if here == 1:", "...     print('me')")


@pytest.mark.parametrize("shown", [("me",), ("rank 1:", "me")])
def test_code_under_a_condition_may_show_nothing(shown: tuple[str, ...]) -> None:
    here = (">>> here = 0", *ON_ONE_RANK[1:], *shown)
    assert see(*here).failures == []
    there = (">>> here = 1", *ON_ONE_RANK[1:], *shown)
    assert see(*there, rank=1).failures == []


def test_a_rank_that_is_named_must_show_it() -> None:
    failure = see(">>> here = 0", *ON_ONE_RANK[1:], "rank 0:", "me").failures[0]
    assert failure.difference is not None


def test_code_without_a_condition_must_show_it() -> None:
    assert see(">>> x = 1", ">>> f = list(range(x))", "me").failures


def test_some_rank_must_show_what_is_shown() -> None:
    silent, seen = StepSight(3, (), silent=True), StepSight(3, ("me",))
    assert unseen_steps([[silent], [seen]]) == []
    assert unseen_steps([[silent], [silent]]) == [(0, 3, "shown, and seen on no rank")]


def test_a_value_that_is_not_waited_for_is_not_believed() -> None:
    begin = (">>> class Handle:", "...     def wait(self):", "...         pass", ">>> handle = Handle()", ">>> x = 1")
    failure = see(*begin, ">>> print(x)", "1").failures[0]
    assert failure.difference == "shown before handle has been waited for"
    assert see(*begin, ">>> handle.wait()", ">>> print(x)", "1").failures == []


def see_case(text: str, rank: int = 0) -> Sight:
    (case,) = examples_of_case(f"# ranks: 2\nif 0:\n    import torch\n{text}", "case.py")
    return see_example(replace(case, framework=PLAIN), rank)


RAISES = "def f():\n    raise FileNotFoundError('gone')\n"


@pytest.mark.parametrize(
    ("marker", "ranks"),
    [
        ("raises", (0, 1)),
        ("raises FileNotFoundError", (0, 1)),
        ("raises OSError", (0, 1)),
        ("raises: OSError", (0, 1)),
        ("raises on rank 1", (1,)),
        ("raises on rank 1: OSError", (1,)),
        ("raises on ranks 0, 1: OSError", (0, 1)),
    ],
)
def test_a_case_says_which_ranks_raise(marker: str, ranks: tuple[int, ...]) -> None:
    for rank in (0, 1):
        failures = see_case(f"{RAISES}f()  # {marker}\nx = 1", rank).failures
        assert (failures == []) is (rank in ranks)
        assert all("FileNotFoundError: gone" in str(failure.error) for failure in failures)


@pytest.mark.parametrize("rank", [0, 1])
def test_every_rank_that_a_case_says_raises(rank: int) -> None:
    failure = see_case(
        f"f = print\nf()  # raises on rank {rank}: ValueError\n# raises on rank {1 - rank}", rank
    ).failures[0]
    assert (failure.line, failure.difference) == (5, "documented to raise ValueError, and raised none")


def test_a_case_raises_what_it_says() -> None:
    sight = see_case(f"{RAISES}f()  # raises ValueError\nprint(1)\n# shows: 1")
    assert sight.failures
    assert sight.failures[0].difference == "documented to raise ValueError, and raised FileNotFoundError: gone"
    assert sight.failures[0].outputs == ("raised FileNotFoundError: gone",)
    assert sight.steps[-1].outputs == ("1",)


def test_what_a_case_shows_before_it_raises_is_compared() -> None:
    text = f"{RAISES}for x in (1, 2):\n    print(x)\n    f()\n# raises OSError\n# shows: "
    assert see_case(text + "1").failures == []
    failure = see_case(text + "2").failures[0]
    assert "shown 2, seen 1" in str(failure.difference)


def test_what_a_case_shows_of_a_tensor_is_exact() -> None:
    kind = "class T:\n    shape = (1,)\n    def tolist(self):\n        return [1]\n"
    kind += "    def __repr__(self):\n        return 'tensor([1], dtype=torch.int32)'\n"
    assert see_case(f"{kind}T()\n# shows: tensor([1], dtype=torch.int32)").failures == []
    failure = see_case(f"{kind}T()\n# shows: tensor([1])").failures[0]
    assert "seen dtype" in str(failure.difference)


@pytest.mark.parametrize(
    "code", ["from pprint import pprint as f", "import sys\nf = lambda x: print(x, file=sys.stdout)"]
)
def test_what_others_write_for_a_case_is_seen(code: str) -> None:
    text = f"{code}\nfor _ in (1,):\n    print('before')\n    f([1, 2])\n    print('after')\n"
    assert see_case(f"{text}# shows: before\n#     [1, 2]\n#     after").failures == []
    assert see_case(f"{text}# shows: before\n#     after").failures


def test_a_case_imports_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(builtins, "__import__", builtins.__import__)
    monkeypatch.setattr(own_modules, "_folders", [])
    monkeypatch.setattr(
        own_modules, "serve_torch_when_imported", lambda: None
    )  # torch's groups stay its own for other tests
    monkeypatch.setattr(own_modules, "_hook", ImportHook(own_modules._gets_views))
    (tmp_path / "beside_the_case.py").write_text("print(__builtins__['__import__'].__module__)\n")
    case = (
        "# ranks: 2\nimport beside_the_case\n# shows: shim.substitution.importlib_bootstrap\nif 0:\n    import torch\n"
    )
    (tmp_path / "case.py").write_text(case)
    (example,) = examples_in_files([tmp_path / "case.py"]).examples
    before = list(sys.path)
    assert see_example(replace(example, framework=PLAIN), 0).failures == []
    assert sys.path == before
    del sys.modules["beside_the_case"]


def test_the_code_has_its_own_future_and_not_ours() -> None:
    text = "def f(x: int): ...\nprint(f.__annotations__['x'])\n# shows: {}\n"
    assert see_case(text.format("<class 'int'>")).failures == []
    assert see_case("from __future__ import annotations\n" + text.format("int")).failures == []


def test_an_exit_is_not_what_a_case_raises() -> None:
    assert see_case("import sys\nsys.exit()  # raises").failures


def test_nothing_is_given_to_a_case() -> None:
    failure = see_case("x\n# shows: 1").failures[0]
    assert "NameError" in str(failure.error)


def test_what_a_case_shows_is_seen_on_every_rank() -> None:
    failure = see_case("if 0:\n    print(1)\n# shows: 1").failures[0]
    assert "shown, not seen: 1" in str(failure.difference)


def test_names_live_as_long_as_the_process() -> None:
    see(
        ">>> class Served:",
        "...     pass",
        ">>> served = Served()",
        ">>> import weakref, gc",
        ">>> alive = weakref.ref(served)",
    )
    gc.collect()
    (names,) = rank_module._kept
    assert names["alive"]() is names["served"]


def test_nothing_is_left() -> None:
    main = sys.modules["__main__"]
    assert see(">>> import sys", ">>> sys.modules['__main__'].x = 1", ">>> print(x)", "1").failures == []
    assert sys.modules["__main__"] is main
    assert not hasattr(main, "x")
