"""``shim/_native.pyi`` says what the native module has, as the module itself tells it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import shim
from shim import _native

STUB = Path(shim.__file__).with_name("_native.pyi")  # an editable install has the module elsewhere

# Where the stub says more than C++ can, in the module's words.
NARROWER = {
    "check_call": (
        "def check_call(collective: str, rank: int, size: int, *, outputs: object | None=None, inputs: object "
        "| None=None, output_splits: object | None=None, input_splits: object | None=None, op: object=0, "
        "factor: float=1.0, root: int=-1, whole: bool=False, before: str='', devices: bool=False) -> Request: "
        "..."
    ),
    "set_reader_chooser": "def set_reader_chooser(chooser: Callable) -> None: ...",
    "set_before_exec": "def set_before_exec(function: Callable) -> None: ...",
    "Request.combine": "def combine(self, output: object, of_ranks: list, factors: Sequence[float]) -> None: ...",
    "Work.exception": "def exception(self) -> object: ...",
}


def in_the_stub() -> dict[str, str]:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    found = {node.name: _declared(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            found |= {f"{node.name}.{method.name}": _declared(method) for method in methods}
    return found


def _declared(function: ast.FunctionDef) -> str:
    function.body = [ast.Expr(ast.Constant(...))]
    return ast.unparse(function).replace("\n    ", " ")


def in_the_module() -> dict[str, str]:
    found = {}
    for name, thing in vars(_native).items():
        if hasattr(thing, "__nb_signature__"):
            found[name] = _told(thing)
        elif isinstance(thing, type):
            methods = {key: value for key, value in vars(thing).items() if hasattr(value, "__nb_signature__")}
            found |= {f"{name}.{key}": _told(value) for key, value in methods.items()}
    return found


def _told(function: object) -> str:
    """Return the one signature that nanobind keeps, in which defaults stand as numbers of their values."""
    [(text, _, defaults)] = function.__nb_signature__
    text = re.sub(r"\\(\d+)", lambda number: repr(defaults[int(number[1])]), text)
    text = re.sub(r"(\w+\.)+(?=[A-Z])", "", text)
    return _declared(ast.parse(f"{text}: ...").body[0])


def test_the_stub_is_that_of_the_module() -> None:
    module, stub = in_the_module(), in_the_stub()
    assert len(module) > 10
    assert {name: module[name] for name in NARROWER} == NARROWER
    assert {**module, **{name: stub.get(name) for name in NARROWER}} == stub
