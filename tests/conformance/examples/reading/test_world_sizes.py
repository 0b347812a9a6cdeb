"""How many ranks an example needs."""

from __future__ import annotations

import pytest

from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.reader import examples_in

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
