from __future__ import annotations

import pytest

from checks import support

TREE = {
    "shim/core/calls.py": "def all_reduce(): ...\ndef gather(): ...\ndef send(): ...\ndef receive(): ...\ndef received(): ...\ndef refused(): ...\ndef refuse(): ...\n",
    "shim/core/objects.py": "from shim.core import calls\ndef collect(): return calls.gather()\n",
    "shim/_native.pyi": "class Group:\n    def all_reduce(self): ...\nclass Work:\n    def gather(self): ...\n",
    "shim/core/engines/fast.py": "class FastEngine(Group):\n    def send(self): ...\n",
    "shim/frontends/paddle_2/distributed/__init__.py": """
        from shim.frontends.paddle_2.distributed._own import Group, all_reduce, recv, reduce, get_rank, split
        __all__ = ["Group", "all_reduce", "get_rank", "recv", "reduce", "split"]
        """,
    "shim/frontends/paddle_2/distributed/_own.py": """
        from shim.core import calls, objects
        from shim.frontends.paddle_2.distributed import _inner

        class Group:
            def __init__(self): self.kept = 1
            def talk(self): return calls.send()

        def all_reduce(group: Group): return _finish(calls.all_reduce(), isinstance(group, Group))
        def reduce(): return Group() if _inner.TABLE else calls.refused()
        def recv(): return calls.received()
        def get_rank(): return Group()
        def split():
            '''Cut.

            Raises: UnsupportedError, always: it belongs to
            another part of Paddle.
            See: the page
            '''
            raise UnsupportedError
        def _finish(work, member): return work if member else calls.refuse()
        """,
    "shim/frontends/paddle_2/distributed/_inner.py": """
        def pick():
            from shim.core.objects import collect
            return collect()
        TABLE = {"one": pick}
        """,
    "shim/frontends/paddle_2/_ranks.py": '__all__ = ["hidden"]\n',
}


def test_a_name_is_told_with_its_collectives_and_how_the_engine_has_them(write_tree) -> None:
    sections = support.render(write_tree(TREE)).split("\n## ")[1:]
    assert [section.partition("\n")[0] for section in sections] == ["shim.frontends.paddle_2.distributed"]
    assert sections[0].splitlines()[-6:] == [
        "| `Group` | send | own |",
        "| `all_reduce` | all_reduce | own |",
        "| `get_rank` |  | - |",
        "| `recv` | receive | default: receive |",
        "| `reduce` | gather | default: gather |",
        "| `split` |  | unsupported: it belongs to another part of Paddle |",
    ]


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


def test_an_engine_has_the_methods_of_the_classes_that_it_is_derived_from(write_tree) -> None:
    common = "class CommonEngine(Engine):\n    def gather(self): ...\n"
    slow = "class SlowEngine(CommonEngine):\n    def receive(self): ...\n"
    root = write_tree(TREE | {"shim/core/engines/common.py": common, "shim/core/engines/slow.py": slow})
    lines = support.render(root).splitlines()
    assert "| name | collectives | fast | slow |" in lines
    assert lines[-5:-1] == [
        "| `all_reduce` | all_reduce | own | default: all_reduce |",
        "| `get_rank` |  | - | - |",
        "| `recv` | receive | default: receive | own |",
        "| `reduce` | gather | default: gather | own |",
    ]
