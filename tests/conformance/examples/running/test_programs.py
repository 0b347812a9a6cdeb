"""Examples that are programs: what they print is compared, and how they end."""

from __future__ import annotations

import pytest

from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running.programs import is_program, run_program

BEGIN = """
>>> import multiprocessing, sys, time
>>> def child(number):
...     print("number: ", number, flush=True)
...     if number < 0:
...         raise ValueError("a number below zero")
>>> if __name__ == "__main__":
...     processes = [multiprocessing.Process(target=child, args=(number,)) for number in {numbers}]
...     for process in processes:
...         process.start()
...     for process in processes:
...         process.join()
...     {end}
"""
SHOWN = """
# Print result in process 1:
number: 0

# Print result in process 2:
number: 1
"""


def example(numbers: str, end: str = "", shown: str = SHOWN) -> Example:
    text = BEGIN.format(numbers=numbers, end=end or "pass") + shown
    (found,) = examples_in(text, "torch", "torch.distributed.all_reduce", "a test")
    return found


def failures(found: Example, deadline: float = 60.0) -> list[str]:
    return [text for _, text in run_program(found, False, deadline)[0]]


def test_what_is_a_program() -> None:
    assert is_program(example("[0]"))
    (other,) = examples_in(">>> x = 1\n", "torch", "torch.distributed.all_reduce", "a test")
    assert not is_program(other)


def test_all_that_is_shown_is_printed_in_any_order() -> None:
    assert failures(example("[1, 0]")) == []


def test_a_line_that_nobody_prints() -> None:
    assert failures(example("[0, 2]")) == ["shown, and not printed by any process: number: 1"]


def test_a_line_that_is_not_printed_often_enough() -> None:
    twice = "\n# Print result in process 1:\nnumber: 0\n\n# Print result in process 2:\nnumber: 0\n"
    assert failures(example("[0, 0]", shown=twice)) == []
    assert failures(example("[0, 1]", shown=twice)) == ["shown, and not printed by any process: number: 0"]


@pytest.mark.parametrize(
    ("numbers", "end", "told"),
    [
        ("[0, 1]", "sys.exit(3)", "ended with status 3"),
        ("[0, 1, -1]", "", "ValueError: a number below zero"),
        ("[0, 1]", "undefined", "NameError"),
        ("[0, 1]", "import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
    ],
)
def test_an_end_in_failure(numbers: str, end: str, told: str) -> None:
    (text,) = failures(example(numbers, end))
    assert told in text


def test_a_program_that_does_not_end() -> None:
    (text,) = failures(example("[0, 1]", "time.sleep(1000)"), deadline=3.0)
    assert text.startswith("had not ended after 3 s")


def test_a_program_is_told_of_no_other_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "SHIM_JOB", "MASTER_ADDR", "OMPI_COMM_WORLD_RANK", "COLOUR"):
        monkeypatch.setenv(name, "7")
    names = "RANK", "SHIM_JOB", "MASTER_ADDR", "OMPI_COMM_WORLD_RANK", "COLOUR"
    ends = f"import os; sys.exit(str([name for name in {names} if name in os.environ]))"
    (text,) = failures(example("[0, 1]", ends))
    assert text.splitlines()[1:] == ["['COLOUR']"]
