"""What an example finds on this machine that its document takes as given, and what is changed in it for that."""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import pickle
import re
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from shim.conformance.examples.adapting import (
    RULES,
    WHY_A_FOLDER,
    WHY_A_PORT,
    as_program,
    begin_of,
    free_ports,
    in_its_own_place,
    names_of,
    rewritten,
    variables_of,
)
from shim.conformance.examples.example import Example
from shim.conformance.examples.reading.reader import examples_in

CHANGED = [
    ("torch", 'device = torch.device(f"cuda:{rank}")', 'device = torch.device("cpu")'),
    ("torch", "torch.device('cuda:0')", 'torch.device("cpu")'),
    ("torch", "torch.ones(1, device=rank) * rank", 'torch.ones(1, device="cpu") * rank'),
    ("torch", "torch.cuda.set_device(rank)", "None"),
    ("torch", "x = torch.ones(2).cuda(rank)", "x = torch.ones(2)"),
    ("torch", "mine, all = dist.new_subgroups()", "mine, all = dist.new_subgroups(dist.get_world_size())"),
    ("paddle", "paddle.set_device(f'gpu:{env.dev_id}')", "paddle.set_device('cpu')"),
    ("mindspore", 'set_device(device_target="Ascend")', "set_device(device_target='CPU')"),
    ("mindspore", 'set_device("GPU")', "set_device('CPU')"),
    ("mindspore", "context(mode=1, device_target='Ascend')", "context(mode=1, device_target='CPU')"),
]
KEPT = [
    ("torch", "dist.new_subgroups(2)"),
    ("torch", "dist.new_subgroups_by_enumeration([[0], [1]])"),
    ("torch", 'torch.device("cpu")'),
    ("torch", "tensor.cpu()"),
    ("torch", "paddle.set_device('gpu:0')"),
    ("paddle", "paddle.set_device('cpu')"),
    ("mindspore", 'print("Ascend")'),
]


@pytest.mark.parametrize(("framework", "source", "expected"), CHANGED)
def test_what_is_changed_and_told(framework: str, source: str, expected: str) -> None:
    changed, reasons = rewritten(framework, source)
    assert changed == expected
    assert len(reasons) == 1


@pytest.mark.parametrize(("framework", "source"), KEPT)
def test_what_is_left_alone(framework: str, source: str) -> None:
    assert rewritten(framework, source) == (source, [])


def test_every_rule_is_tested() -> None:
    used = {
        rule
        for rule in RULES
        for framework, source, _ in CHANGED
        if (rule.framework == framework and rule.pattern.search(source))
    }
    assert used == set(RULES)


def example_of(*lines):
    (example,) = examples_in("".join(f">>> {line}\n" for line in lines), "torch", "torch.distributed.x", "a test")
    return example


def placed(example):
    with in_its_own_place(example) as (own, reasons):
        return [step.source for step in own.steps], reasons


@pytest.mark.parametrize(
    "line", ['dist.FileStore("/tmp/filestore", 2)', "dist.init_process_group(init_method='file:///tmp/some/file')"]
)
def test_a_file_to_meet_at_lies_in_a_folder_of_its_own_until_the_end(line):
    with in_its_own_place(example_of(line)) as (own, reasons), in_its_own_place(example_of(line)) as (other, _):
        assert reasons == (WHY_A_FOLDER,)
        folder = Path(re.search(r"(/[^'\"]*shim-example-\w+)/", own.steps[0].source.replace("file://", ""))[1])
        assert own.steps[0].source == line.replace("/tmp", str(folder), 1)
        assert other.steps[0].source != own.steps[0].source
        (folder / "left").touch()
    assert not folder.exists()


def test_a_port_to_meet_at_is_a_free_one_and_the_same_in_all_of_the_example():
    lines = (
        'a = TCPStore("127.0.0.1", 1234, is_master=True)',
        'b = dist.TCPStore("localhost", 1234, 2)',
        "dist.init_process_group(init_method='tcp://10.1.1.20:23456', rank=3)",
    )
    sources, reasons = placed(example_of(*lines))
    assert reasons == (WHY_A_PORT,)
    ports = [re.search(r"\d{5}", source)[0] for source in sources]
    assert ports[0] == ports[1] != ports[2]
    assert sources[0] == lines[0].replace("1234", ports[0])
    assert placed(example_of(*lines))[0] != sources


@pytest.mark.parametrize(
    "line", ['open("/tmp/data")', "x = 1234", 'f("127.0.0.1", 1234)', 'FileStore("/tmpfile")', "TCPStore(host, 1234)"]
)
def test_what_is_no_place_to_meet_at_stays_as_it_is(line):
    assert placed(example_of(line)) == ([line], ())


def test_ports_that_are_taken_are_not_given():
    ports = free_ports(3)
    assert len(set(ports)) == 3
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[0]))
        assert ports[0] not in free_ports(9000)
    with pytest.raises(OSError, match="no 20000 free ports"):
        free_ports(20000)


def example_with(text: str, framework: str = "torch", function: str = "torch.distributed.all_reduce") -> Example:
    (found,) = examples_in(text, framework, function, "a test")
    return found


def bound_by(code: str) -> set[str]:
    names = {
        alias.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return names | {
        node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">>> f(op=ReduceOp.SUM)\n", {"ReduceOp"}),
        (">>> f(op=dist.ReduceOp.SUM)\n", set()),
        (">>> for i in range(num_colls):\n>>>     f(tensors[i])\n", {"num_colls", "tensors"}),
        (">>> tensors = [1]\n>>> f(tensors)\n", set()),
        (">>> all_reduce(1)\n", {"all_reduce"}),
        (">>> from torch.distributed import all_reduce\n>>> dist.all_reduce(1)\n", set()),
    ],
)
def test_names_that_are_used_and_not_bound(text: str, expected: set[str]) -> None:
    assert bound_by(names_of(example_with(text))) - {"_"} == expected


def test_names_are_left_to_the_reader_by_one_framework_only() -> None:
    assert names_of(example_with(">>> f(op=ReduceOp.SUM)\n", "paddle", "paddle.distributed.reduce")) == ""


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        (">>> dist.all_reduce(1)\n", True),
        (">>> dist.init_process_group('gloo')\n", False),
        (">>> dist.HashStore()\n", False),
    ],
)
def test_the_world_is_prepared_unless_the_example_does_so(text: str, prepared: bool) -> None:
    assert ("init_process_group" in begin_of(example_with(text))) is prepared


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
