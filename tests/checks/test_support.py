from __future__ import annotations

from pathlib import Path

import pytest

from checks import support
from checks.support_page import Row

TREE = {
    "shim/core/calls.py": "def all_reduce(): ...\ndef gather(): ...\ndef send(): ...\ndef receive(): ...\ndef received(): ...\ndef refused(): ...\ndef refuse(): ...\n",
    "shim/core/objects.py": "from shim.core import calls\ndef collect(): return calls.gather()\n",
    "shim/_native.pyi": "class Group:\n    def all_reduce(self): ...\nclass Work:\n    def gather(self): ...\n",
    "shim/core/engines/fast.py": "class FastEngine(Group):\n    def send(self): ...\n",
    "shim/core/engines/rest.py": "class RestEngine(Engine):\n    def gather(self): ...\n    def receive(self): ...\n",
    "shim/frontends/paddle_2/distributed/__init__.py": """
        from shim.frontends.paddle_2.distributed._own import Group, Made, all_reduce, recv, reduce, get_rank, split
        __all__ = ["Group", "Made", "all_reduce", "get_rank", "recv", "reduce", "split"]
        """,
    "shim/frontends/paddle_2/distributed/_own.py": """
        from shim.core import calls, objects
        from shim.frontends.paddle_2.distributed import _inner

        class Group:
            def __init__(self): self.kept = 1
            def talk(self): return calls.send()

        class Made:
            def member(self): return _Named
        class _Named:
            def run(self): return calls.send()

        def all_reduce(group: Group): return _finish(calls.all_reduce(), isinstance(group, Group))
        def reduce(): return Group() if _inner.TABLE else calls.refused()
        def recv(): return calls.received()
        def get_rank():
            '''Tell.

            Deviates: it is 0.
            Deviates: reset: nothing.
            '''
            return Group()
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


OWN = "shim.frontends.paddle_2.distributed"


def rows_of(root: Path, module: str = OWN) -> dict[str, Row]:
    """Return the rows of *module* by their names."""
    return {row["name"]: row for row in support.collect(root)["names"] if row["module"] == module}


def test_a_name_is_told_with_its_collectives_or_why_it_is_refused_or_absent(write_tree) -> None:
    root = write_tree(TREE)
    rows = rows_of(root)
    assert {name: row.get("collectives") for name, row in rows.items() if row["state"] == "communicates"} == {
        "Group": ["send"],
        "Made": ["send"],
        "all_reduce": ["all_reduce"],
        "recv": ["receive"],
        "reduce": ["gather"],
    }
    assert rows["get_rank"] == {
        "module": OWN,
        "name": "get_rank",
        "state": "there",
        "differs": "it is 0. reset: nothing.",
    }
    assert (rows["split"]["state"], rows["split"]["why"]) == ("refused", "it belongs to another part of Paddle")
    assert rows["rpc"]["state"] == "absent"
    assert rows["rpc"]["instead"].startswith("Exchange objects with")
    assert "shim.frontends.paddle_2._ranks" not in {row["module"] for row in support.collect(root)["names"]}


def test_a_module_with_the_name_of_a_function_that_is_there_is_not_told_to_be_absent(write_tree) -> None:
    root = write_tree(TREE)
    assert rows_of(root)["launch"]["state"] == "absent"
    write_tree({"shim/frontends/paddle_2/distributed/__init__.py": "def launch(): ...\n__all__ = ['launch']\n"})
    assert rows_of(root)["launch"] == {"module": OWN, "name": "launch", "state": "there"}


def test_the_page_groups_names_by_what_becomes_of_them(write_tree) -> None:
    page = support.render(write_tree(TREE))[support.PAGE]
    assert "| `shim.frontends.paddle_2` | paddle 2.6.2 | 5 | 1 | 1 | " in page
    section = page.partition("### paddle_2.distributed\n")[2]
    assert section.splitlines()[:9] == [
        "",
        "Communicate: `Group`, `Made`, `all_reduce`, `recv`, `reduce`.",
        "",
        "There: `get_rank`.",
        "",
        "| refused | why |",
        "| --- | --- |",
        "| `split` | it belongs to another part of Paddle |",
        "",
    ]
    assert "| `ParallelMode`, `ReduceType`, `io` | does not communicate | Import it from paddle itself," in section
    assert page.splitlines()[-4:] == [
        "| engine | all_reduce | gather | receive | send |",
        "| --- | --- | --- | --- | --- |",
        "| `fast` | own | default | default | own |",
        "| `rest` | default | own | own | default |",
    ]


def test_a_module_that_has_all_of_another_names_it(write_tree) -> None:
    more = f"from {OWN} import *\nfrom {OWN} import __all__ as own\n__all__ = [*own, 'seed']\n"
    page = support.render(write_tree({**TREE, "shim/frontends/paddle_2/distributed/stream.py": more}))[support.PAGE]
    section = page.partition("### paddle_2.distributed.stream\n")[2].partition("\n## ")[0]
    assert "Has every name of `paddle_2.distributed`." in section
    assert "`seed`" in section
    assert "`all_reduce`" not in section.partition("| not there")[0]


def test_files_that_say_the_same_pass(write_tree) -> None:
    root = write_tree(TREE)
    write_tree({str(file): text for file, text in support.render(root).items()})
    assert support.check(root) == []


@pytest.mark.parametrize("written", [None, "", "# What each frontend has\n"])
@pytest.mark.parametrize("file", [support.DATA, support.PAGE], ids=str)
def test_a_file_that_says_something_else_is_found(write_tree, file: Path, written: str | None) -> None:
    root = write_tree(TREE)
    write_tree({str(file): text for file, text in support.render(root).items()})
    (root / file).unlink()
    if written is not None:
        write_tree({str(file): written})
    assert support.check(root) == [f"{file}:1: is not what the frontends have: run python -m checks.support"]


def test_an_engine_has_the_methods_of_the_classes_that_it_is_derived_from(write_tree) -> None:
    common = "class CommonEngine(Engine):\n    def gather(self): ...\n"
    slow = "class SlowEngine(CommonEngine):\n    def receive(self): ...\n    def arrive(self): ...\n"
    root = write_tree(TREE | {"shim/core/engines/common.py": common, "shim/core/engines/slow.py": slow})
    engines = support.collect(root)["engines"]
    assert engines == {"fast": ["all_reduce", "send"], "rest": ["gather", "receive"], "slow": ["gather", "receive"]}
