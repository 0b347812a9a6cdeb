from __future__ import annotations

import pytest

from checks import exports


@pytest.mark.parametrize(
    "source",
    [
        '"""Nothing but words."""\n',
        "_private = 1\n",
        "import os\n",
        '__all__ = ["LIMIT", "Work", "wait"]\nLIMIT: int = 1\nclass Work: ...\ndef wait(): ...\n',
        '__version__ = "1"\n__all__ = ["__version__"]\n',
        '__all__ = ["A", "B"]\nA, B = 1, 2\n',
    ],
)
def test_modules_that_say_what_they_offer_pass(write_tree, source: str) -> None:
    assert exports.check(write_tree({"shim/frontends/a.py": source})) == []


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("def wait(): ...\n", "has no __all__, and defines wait"),
        ("__all__ = []\ndef wait(): ...\n", "wait is public and not in __all__"),
        ("__all__ = []\nclass Work: ...\n", "Work is public and not in __all__"),
        ("__all__ = []\nLIMIT = 1\n", "LIMIT is public and not in __all__"),
        ("__all__ = []\nLIMIT: int = 1\n", "LIMIT is public and not in __all__"),
        ('__all__ = ["gone"]\n', "lists gone, which is not there"),
        ('__all__ = ["wait", "wait"]\ndef wait(): ...\n', "lists wait twice"),
    ],
)
def test_what_is_missing_or_too_much_is_found(write_tree, source: str, finding: str) -> None:
    findings = exports.check(write_tree({"shim/frontends/a.py": source}))
    assert len(findings) == 1
    assert finding in findings[0]


def test_what_programs_do_not_import_has_no_list(write_tree) -> None:
    root = write_tree(
        {
            "shim/core/a.py": "def wait(): ...\n",
            "shim/core/b.py": '__all__ = ["wait"]\ndef wait(): ...\n',
            "shim/core/c.py": 'from shim.core.d import *\n__all__ = ["wait"]\n',
            "shim/core/d.py": '__all__ = ["wait"]\ndef wait(): ...\n',
            "shim/core/e.py": '__all__ = ["wait"]\ndef wait(): ...\nprint(__all__)\n',
        }
    )
    assert exports.check(root) == ["shim/core/b.py:1: nobody reads its __all__: programs do not import it"]


def test_a_package_may_offer_what_it_imports_and_its_submodules(write_tree) -> None:
    root = write_tree(
        {"shim/__init__.py": 'from shim.a import b as c\n__all__ = ["a", "c"]\n', "shim/a.py": "b = _c = 1\n"}
    )
    assert [line for line in exports.check(root) if line.startswith("shim/__init__")] == []


def test_a_list_may_take_up_that_of_another_module(write_tree) -> None:
    below = '__all__ = ["_hidden", "wait"]\ndef wait(): ...\ndef _hidden(): ...\n'
    above = "from shim.a import *\nfrom shim.a import __all__ as _names\n__all__ = [*_names, {}]\n"
    root = write_tree({"shim/a.py": below, "shim/b.py": above.format('"gone"'), "shim/c.py": above.format('"wait"')})
    assert [line.partition(": ")[2] for line in exports.check(root)] == [
        "__all__ lists gone, which is not there",
        "__all__ lists wait twice",
    ]
