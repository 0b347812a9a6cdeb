from __future__ import annotations

import pytest

from checks import support

TREE = {
    "shim/frontends/paddle_2/distributed.py": '__all__ = ["Group", "all_reduce"]\n',
    "shim/frontends/paddle_2/_ranks.py": '__all__ = ["hidden"]\n',
    "shim/frontends/torch/distributed/distributed_c10d.py": '__all__ = ["barrier"]\n',
}


def test_names_are_here_or_not(write_tree) -> None:
    sections = support.render(write_tree(TREE)).split("\n## ")[1:]
    assert [section.partition("\n")[0] for section in sections] == [
        "shim.frontends.paddle_2.distributed",
        "shim.frontends.torch.distributed.distributed_c10d",
    ]
    has, lacks = sections[0].split("\n\n")[2:4]
    assert has == "Here: `Group`, `all_reduce`."
    assert lacks.startswith("Not here: `P2POp`, `ParallelEnv`,")
    assert "`alltoall_single`" in lacks
    assert "`all_reduce`" not in lacks
    assert "`_" not in sections[1]


def test_a_page_that_says_the_same_passes(write_tree) -> None:
    root = write_tree(TREE)
    write_tree({str(support.PAGE): support.render(root)})
    assert support.check(root) == []


@pytest.mark.parametrize("page", [None, "", "# What each frontend has\n"])
def test_a_page_that_says_something_else_is_found(write_tree, page: str | None) -> None:
    root = write_tree(TREE)
    if page is not None:
        write_tree({str(support.PAGE): page})
    assert support.check(root) == ["docs/support.md:1: is not what the frontends have: run python -m checks.support"]
