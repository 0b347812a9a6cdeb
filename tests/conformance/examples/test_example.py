"""Which examples a name means."""

from __future__ import annotations

import pytest

from shim.conformance.examples.example import is_chosen, unmatched

NAMES = [
    "torch.distributed.all_gather",
    "torch.distributed.all_gather#2",
    "mindspore.ops.AllGather: ones",
    "a.b.gather",
]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], NAMES),
        (["torch.distributed.all_gather"], NAMES[:2]),
        (["torch.distributed.all_gather#2"], NAMES[1:2]),
        (["gather"], NAMES[3:]),
        (["all_gather", "AllGather"], NAMES[:3]),
        (["mindspore.ops.AllGather: ones"], NAMES[2:3]),
        (["torch.*", "*: ones"], NAMES[:3]),
        (["Gather"], []),
    ],
)
def test_a_name_means_an_example_or_those_of_a_function(patterns, chosen):
    assert [name for name in NAMES if is_chosen(name, patterns)] == chosen


def test_what_means_nothing_is_told_with_the_nearest_name():
    assert unmatched(NAMES, ["all_gather", "torch.distributed.al_gather", "al_gather", "xyz"]) == [
        "there is no example 'torch.distributed.al_gather'; is it torch.distributed.all_gather?",
        "there is no example 'al_gather'; is it torch.distributed.all_gather, a.b.gather?",
        "there is no example 'xyz'",
    ]
