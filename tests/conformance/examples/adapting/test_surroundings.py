"""An example is a program of its own, and nothing of it stays."""

from __future__ import annotations

import builtins
import inspect
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from shim.conformance.examples.adapting import as_program, variables_of
from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.reader import examples_in

TEXT = """Text.

>>> class Net:
...     def construct(self):
...         return 1
>>> device = dict(device_target="Ascend")
"""
BUILTINS = dict(vars(builtins))


def example(framework: str = "mindspore") -> Example:
    (found,) = examples_in(TEXT, framework, "function", "here")
    return found


def test_classes_have_their_source() -> None:
    with as_program(example(), {}, BUILTINS) as program:
        assert program.__file__ is not None
        lines = Path(program.__file__).read_text(encoding="utf-8").splitlines()
        exec(compile("\n".join(lines), program.__file__, "exec"), program.__dict__)
        assert inspect.getsource(program.Net).startswith("class Net:")
        assert inspect.getsource(program.Net.construct).strip().endswith("return 1")
        assert type(pickle.loads(pickle.dumps(program.Net()))) is program.Net
    assert lines[2] == "class Net:"  # as in the document
    assert lines[5] == "device = dict(device_target='CPU')"


@pytest.mark.parametrize("name", ["folder/case.py", "/a/page.md", "page.md:owner"])
def test_a_name_that_is_a_path_is_none_here(name: str) -> None:
    with as_program(replace(example(), function=name), {}, BUILTINS) as program:
        assert program.__file__ is not None
        file = Path(program.__file__)
        assert file.is_file()
        assert file.parent == Path.cwd()


def test_it_is_the_program() -> None:
    main, folder = sys.modules["__main__"], os.getcwd()
    with as_program(example(), {}, BUILTINS) as program:
        assert (program.__name__, sys.modules["__main__"]) == ("__main__", program)
        own = Path.cwd()
        assert own != Path(folder)
        Path("left.txt").write_text("left", encoding="utf-8")
    assert (sys.modules["__main__"], os.getcwd()) == (main, folder)
    assert not own.exists()


def test_variables_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_ID", "7")
    monkeypatch.delenv("RANK_SIZE", raising=False)
    with as_program(example(), {"RANK_ID": "1", "RANK_SIZE": "2"}, BUILTINS):
        assert (os.environ["RANK_ID"], os.environ["RANK_SIZE"]) == ("1", "2")
    assert os.environ["RANK_ID"] == "7"
    assert "RANK_SIZE" not in os.environ


def test_an_error_leaves_nothing_either() -> None:
    main, folder = sys.modules["__main__"], os.getcwd()
    with pytest.raises(KeyError), as_program(example(), {"SHIM_EXAMPLE": "1"}, BUILTINS):
        raise KeyError
    assert (sys.modules["__main__"], os.getcwd(), os.environ.get("SHIM_EXAMPLE")) == (main, folder, None)


def test_msrun_sets_the_rank() -> None:
    assert variables_of(example(), 1) == {"RANK_ID": "1", "RANK_SIZE": "2", "DEVICE_ID": "1"}
    assert variables_of(example("torch"), 1) == {}
