"""How documents say of which ranks they speak."""

from __future__ import annotations

import pytest

from shim.conformance.examples.example import EVERY_RANK, Example
from shim.conformance.examples.reading import labels
from shim.conformance.examples.reading.reader import examples_in

SHOWN = {
    "nothing said": (["[1]", "[2]"], {EVERY_RANK: "[1]\n[2]"}),
    "after the text": (["[1]  # Rank 0", "[2]  # Rank 1"], {0: "[1]", 1: "[2]"}),
    "after the text, of two": (["[1]  # Rank 0 and 1", "[2]  # Rank 2"], {0: "[1]", 1: "[1]", 2: "[2]"}),
    "after the text's last line": (["[[1]", " [2]]  # Rank 1"], {1: "[[1]\n [2]]"}),
    "a heading": (["rank 0:", "[1]", "rank 1:", "[2]", "[3]"], {0: "[1]", 1: "[2]\n[3]"}),
    "a comment as heading": (["# rank_0", "[1]", "# rank_1", "[2]"], {0: "[1]", 1: "[2]"}),
    "a comment as heading, of one": (["# rank_0", "[1]"], {0: "[1]"}),
    "a heading of two": (["#rank 0 and 4:", "x is: 1", "#rank 1:", "x is: 2"], {0: "x is: 1", 4: "x is: 1", 1: "x is: 2"}),
    "before the text": (["#rank 0: 0", "#rank 1: 1"], {0: "0", 1: "1"}),
    "a process with a rank": (
        ["Process with rank 0: [[1]", "   [2]]", "Process with rank 1: [3]"],
        {0: "[[1]\n   [2]]", 1: "[3]"},
    ),
    "the others": (["Process with rank 1: [4],", "Other processes: [0.]."], {1: "[4],", EVERY_RANK: "[0.]"}),
    "the others, in two lines": (["rank 1: [4]", "Other ranks: [0", "1]"], {1: "[4]", EVERY_RANK: "[0\n1]"}),
    "in parentheses": (["[1] (2 GPUs, out for rank 0)", "[2] (2 GPUs, out for rank 1)"], {0: "[1]", 1: "[2]"}),
    "a remark after the text": (["[28]  # the sum of all", "['a # b']"], {EVERY_RANK: "[28]\n['a # b']"}),
    "GPUs": (["[1] (2 GPUs)"], {EVERY_RANK: "[1]"}),
}  # fmt: skip


@pytest.mark.parametrize("what", SHOWN)
def test_text_by_rank(what: str) -> None:
    lines, expected = SHOWN[what]
    assert labels.by_rank(lines) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# rank_0", True),
        ("  rank 1:", True),
        ("#rank 0 and 4:", True),
        ("[1]  # Rank 1", True),
        ("Other processes: [0.].", True),
        ("# Launch 2 processes, Process 0 sends the array to Process 1.", False),
        ("# the result is the rank_id in world_group", False),
        ("world_rank_id is: 4", False),
    ],
)
def test_labels_are_told_from_remarks(line: str, expected: bool) -> None:
    assert labels.is_label(line) is expected


NEEDS = {
    "nothing said": (">>> f()", 2),
    "devices": ("This is to be run with 4 devices.\n>>> f()", 4),
    "the example's own word before the document's": (
        "This is to be run with 4 devices.\n>>> # Launch 2 processes.\n>>> f()",
        2,
    ),
    "one": ("With 1 device, or world_size of 1.\n>>> f()", 1),
    "a rank that is shown": (">>> print(f())\nrank 2:\n3", 3),
    "fewer said than shown": ("Run with 2 devices.\n>>> print(f())\nrank 2:\n3", 3),
    "a list of ranks": (">>> rank_ids = [0, 7]\n>>> f(rank_ids)", 8),
    "a group's ranks": (">>> group = dist.new_group([2, 4])", 5),
    "an argument's ranks": (">>> f(send_rank_ids=[-1, 3])", 4),
    "a list of lists of ranks": (">>> f(ranks=[[0, 2], [1, 3]])", 4),
    "one card": (">>> # To be launched with one card configs.\n>>> f()", 1),
    "a list of something else": (">>> sizes = [0, 7]\n>>> f(sizes)", 2),
    "a size that is shown": (">>> print(f())\ngroup_size is: 8", 8),
    "a size of one that is shown": (">>> print(f())\ngroup_size is: 1", 1),
    "a store alone": ('>>> store = TCPStore("127.0.0.1", 1234, is_master=True)', 1),
    "a store for a world": ('>>> store = TCPStore("127.0.0.1", 1234, is_master=True)\n>>> init_process_group()', 2),
}


def example_in(text: str) -> Example:
    (example,) = examples_in(text, "mindspore", "function", "here")
    return example


@pytest.mark.parametrize("what", NEEDS)
def test_ranks_an_example_needs(what: str) -> None:
    text, expected = NEEDS[what]
    assert example_in(text).ranks == expected
