"""Comments that leave a line alone, and those that mark what a port has left."""

from __future__ import annotations

import pytest

from shim.port import Plan, Ported, port_source
from shim.port.launch_lines.texts import port_launch_lines

HEAD, WRITTEN = "import torch.distributed as dist\n", "import shim.frontends.paddle_3.distributed as dist\n"
GATHER = "dist.gather_object(x)"  # left
EXCHANGE = "dist.all_to_all_single(a, b, [1], [2])"
EXCHANGED = "dist.alltoall_single(a, b, out_split_sizes=[1], in_split_sizes=[2])"


def port(source: str, *, marks: bool = False, ignored: frozenset[str] = frozenset()) -> Ported:
    return port_source(source, Plan("torch", "paddle_3", marks=marks, ignored=ignored))


@pytest.mark.parametrize(
    "line",
    [
        f"{EXCHANGE}  # shim: leave",
        f"{EXCHANGE}  # noqa  # shim:leave: for torch alone",
        f"{GATHER}  # shim: leave",
        f"f(\n    {EXCHANGE},\n    {GATHER},\n)  # shim: leave",
        f"f(\n    {EXCHANGE},  # shim: leave\n    {GATHER},\n)",
        f"def f(): {EXCHANGE}  # shim: leave",
        f"n = {GATHER}; {EXCHANGE}  # shim: leave",
    ],
)
def test_a_line_that_is_left_stays_and_is_not_reported(line: str) -> None:
    ported = port(f"{HEAD}{line}\n{EXCHANGE}\n")
    assert (ported.text, ported.entries) == (f"{WRITTEN}{line}\n{EXCHANGED}\n", [])


def test_of_a_block_its_first_line_alone_is_left() -> None:
    left = "if dist.get_backend() == 'nccl' and ({}):  # shim: leave\n    {}\n"
    ported = port(HEAD + left.format(EXCHANGE, EXCHANGE))
    assert (ported.text, ported.entries) == (WRITTEN + left.format(EXCHANGE, EXCHANGED), [])
    spawn = "import torch.multiprocessing as mp\ndef main(rank, path):  # shim: leave\n    run(path)\nmp.spawn(main, (path,), 2)\n"
    assert "def main(rank, path):  # shim: leave\n" in port(HEAD + spawn).text


@pytest.mark.parametrize(
    "line", [f"{EXCHANGE}; s = '# shim: leave'", f"{EXCHANGE}  # shim: leaves", f"# shim: leave\n{EXCHANGE}"]
)
def test_other_comments_and_strings_leave_nothing(line: str) -> None:
    assert port(f"{HEAD}{line}\n").text == WRITTEN + line.replace(EXCHANGE, EXCHANGED) + "\n"


def test_an_imported_name_that_a_left_line_alone_uses_stays() -> None:
    source = "from torch.distributed import get_process_group_ranks, new_group\ng = new_group([0])\n{}get_process_group_ranks(g)  # shim: leave\n"
    for other in ("", "get_process_group_ranks(g)\n"):
        assert "from torch.distributed import get_process_group_ranks" in port(source.format(other)).text


def test_rules_in_brackets_are_not_reported_and_the_line_is_ported() -> None:
    line = f"{EXCHANGE}; {GATHER}; n = dist.recv(t)  # shim: leave[no-equivalent, result-used]"
    ported = port(f"{HEAD}{line}\n{GATHER}\n")
    assert ported.text == WRITTEN + line.replace(EXCHANGE, EXCHANGED) + f"\n{GATHER}\n"
    assert [(entry.line, entry.rule) for entry in ported.entries] == [(2, "any-source"), (3, "no-equivalent")]


@pytest.mark.parametrize("comment", ["# shim: leave", "<!-- shim: leave -->", "\\\n  --lr 1 # shim: leave"])
def test_launch_lines(comment: str) -> None:
    text = "torchrun --nproc_per_node 2 a.py {0}\ntorchrun --nnodes 2 a.py {0}\ntorchrun --nproc_per_node 2 a.py\n"
    text = text.format(comment)
    ported = port_launch_lines(text, Plan("torch", "mindspore"))
    assert ported.text == text.removesuffix("torchrun --nproc_per_node 2 a.py\n") + "shim run -n 2 a.py\n"
    assert ported.entries == []
    hidden = port_launch_lines("torchrun --nnodes 2 a.py # shim: leave[launch-nodes]\n", Plan("torch", "mindspore"))
    assert hidden.entries == []


def test_launch_lines_in_python() -> None:
    source = 'run(["torchrun", "--nproc_per_node", "2", "a.py"],\n    check=True)  # shim: leave\n'
    from shim.port.launch_lines.texts import port_launch_lines_in_python

    assert port_launch_lines_in_python(source, Plan("torch", "mindspore")).text == source


BLOCK = """\
{head}
def f():
    if x:
        {mark}n = [
            1,
            {gather},
        ]
    else:
        y = '''
{gather}
'''
"""


def test_marks_stand_before_the_statement_and_are_written_once() -> None:
    mark = "# shim: left: paddle has no equivalent of torch.distributed.gather_object: it has no gather for objects [no-equivalent]\n        "
    source = BLOCK.format(head=HEAD, mark="", gather=GATHER)
    marked = port(source, marks=True)
    assert marked.text == BLOCK.format(head=WRITTEN, mark=mark, gather=GATHER)
    assert port(source).text == BLOCK.format(head=WRITTEN, mark="", gather=GATHER)
    again = BLOCK.format(head=HEAD, mark=mark, gather=GATHER)
    assert port(again, marks=True).text == marked.text
    assert port(again, marks=True, ignored=frozenset({"no-equivalent"})).text == port(source).text


def test_two_entries_of_a_statement_that_say_the_same_get_one_mark() -> None:
    assert port(f"{HEAD}f({GATHER}, {GATHER}, dist.recv(t))\n", marks=True).text.count("# shim: left: ") == 2


def test_places_that_changed_get_no_mark() -> None:
    ported = port(f"{HEAD}n = dist.recv(t, 1)\n", marks=True)
    assert [entry.kind for entry in ported.entries] == ["changed"]
    assert "shim: left" not in ported.text
