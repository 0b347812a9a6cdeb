"""Programs as hypothesis draws them: pieces of programs, one after another, each in some place, with its calls written in some way."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from hypothesis import strategies as st
from programs import PROGRAMS, VARIANTS, body_of, framed, rows_of
from tensor_pieces import TENSOR_PIECES

from shim.port.apis import APIS
from shim.port.correspondences.table import forms_of

# Where a piece stands. The functions and classes of some stand before ``run``.
PLACES = {
    "alone": "{body}",
    "twice": "{body}\n{body}",
    "loop": "for turn in range(2):\n    {inner}\n    seen.append(turn)",
    "condition": "if size > 1:\n    {inner}\nelse:\n    seen.append(None)",
    "try": "try:\n    {inner}\nfinally:\n    seen.append('done')",
    "with": "with contextlib.nullcontext():\n    {inner}",
    "closure": "def inner_{number}():\n    nonlocal seen\n    {inner}\ninner_{number}()",
    "function": "step_{number}(rank, size, mine, seen)",
    "keyword only": "step_{number}(rank, size, mine=mine, seen=seen)",
    "method": "Step_{number}(rank, size).take(mine, seen)",
    "called": "for step in (Call_{number}(rank, size),):\n    step(mine, seen)",
    "generator": "for found in steps_{number}(rank, size, mine):\n    seen += found",
    "main": "if __name__ != '__main__':\n    {inner}",
}
_BEFORE = {
    "function": "def step_{number}(rank, size, mine, seen):\n    {inner}\n",
    "keyword only": "def step_{number}(rank, size, *, mine, seen):\n    {inner}\n",
    "method": "class Step_{number}:\n    def __init__(self, rank, size):\n        self.rank, self.size = rank, size\n\n"
    "    def take(self, mine, seen):\n        rank, size = self.rank, self.size\n        {inmost}\n",
    "called": "class Call_{number}:\n    def __init__(self, *where):\n        self.where = where\n\n"
    "    def __call__(self, mine, seen):\n        rank, size = self.where\n        {inmost}\n",
    "generator": "def steps_{number}(rank, size, mine):\n    seen = []\n    {inner}\n    yield seen\n",
}
# How a piece's calls are written.
STYLES = ("plain", "arguments before", "in a dict", "in dict()", "in a list", "another name", "partial", "in a lambda")
IMPORTS = ("module", "other name", "whole path", "from package", "names", "other names", "in function")
GROUPS = ("", "of the program", "of the piece", "None")  # the collectives' group, which has all ranks
_GROUPED = re.compile(r"<((?:all_|broadcast|gather|reduce|scatter)\w*)\(")
_STATEMENT = re.compile(
    r"^<((?!\w*object)(?:all_|broadcast|gather|reduce|scatter)\w*\((?!.*background).*)\)>$", re.MULTILINE
)


class Piece(NamedTuple):
    program: str
    place: str
    style: str
    variant: int
    group: str
    in_background: bool


class Drawn(NamedTuple):
    """A program of *api*; ``text`` returns its source. It computes with NumPy's arrays, or with torch's ``tensors``."""

    api: str
    imports: str
    pieces: tuple[Piece, ...]
    tensors: bool = False

    @property
    def text(self) -> str:
        before, steps = [], ["everyone = " + body_of("<new_group(ranks=list(range(size)))>", self.api)]
        for number, piece in enumerate(self.pieces):
            body = _body(piece, self.api, number)
            indented = {"inner": body.replace("\n", "\n    "), "inmost": body.replace("\n", "\n        ")}
            before.append(_BEFORE.get(piece.place, "").format(number=number, **indented))
            steps.append(PLACES[piece.place].format(body=body, number=number, **indented))
        text = framed("\n".join(steps), self.api)
        text = text.replace("import numpy as np", "import contextlib\nimport functools\nimport numpy as np")
        text = text.replace("\n\ndef run(", "\n" + "\n".join(filter(None, before)) + "\ndef run(")
        if self.tensors:
            text = text.replace("import numpy as np", "import torch").replace("np.", "torch.")
        return _imported(text, self)


def _body(piece: Piece, api: str, number: int) -> str:
    text = {**PROGRAMS, **TENSOR_PIECES}[piece.program].strip()
    if api == "mindspore":  # where all groups of the same ranks go with it
        text = text.replace("\n    <destroy(group=group)>", "")
    if piece.in_background:
        text = _STATEMENT.sub(r"handle = <\1, background=True)>\nhandle.wait()", text)
    if piece.group and "group=" not in text:
        text = _GROUPED.sub(r"<\1(group=of_all, ", text)
        group = piece.group if piece.place not in _BEFORE or piece.group == "None" else "of the piece"
        made = {"of the program": "everyone", "of the piece": "<new_group(ranks=list(range(size)))>"}
        text = f"of_all = {made.get(group, 'None')}\n{text}"
    return _styled(body_of(text, api, piece.variant), piece.style, number)


def programs_of(api: str) -> list[str]:
    return [name for name in PROGRAMS if all(forms_of(row, api) for row in rows_of(name))]


def drawn(api: str, tensors: bool = False) -> st.SearchStrategy[Drawn]:
    """Return the strategy of programs of *api*, which is torch's if they are to compute with *tensors*."""
    names = [*programs_of(api), *(TENSOR_PIECES if tensors else ())]
    piece = st.builds(
        Piece,
        st.sampled_from(names),
        st.sampled_from(sorted(PLACES)),
        st.sampled_from(STYLES),
        st.sampled_from(range(len(VARIANTS))),
        st.sampled_from(GROUPS),
        st.booleans(),
    )
    pieces = st.lists(piece, min_size=1, max_size=4).map(tuple)
    return st.builds(Drawn, st.just(api), st.sampled_from(IMPORTS), pieces, st.just(tensors))


def _styled(text: str, style: str, number: int) -> str:
    if style == "plain":
        return text
    tree = ast.parse(text)
    rewriting = _Styling(style, number)
    tree.body = rewriting.statements(tree.body)
    return ast.unparse(ast.fix_missing_locations(tree))


class _Styling(ast.NodeTransformer):
    """Writes the calls of the API in another way; what is needed stands in statements before."""

    def __init__(self, style: str, number: int) -> None:
        self._style, self._number, self._before = style, f"{number}", list[ast.stmt]()
        self._count = 0

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            for part in ("body", "orelse"):
                if isinstance(statement, (ast.For, ast.If)):
                    setattr(statement, part, self.statements(getattr(statement, part)))
            changed = self.visit(statement) if not isinstance(statement, (ast.For, ast.If)) else statement
            found += [*self._before, changed]
            self._before = []
        return found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = ast.unparse(node.func)
        if not name.startswith(("dist.", "comm_func.")) or name.rpartition(".")[2] in (
            "new_group",
            "P2POp",
            "ReduceOp",
        ):
            return self.generic_visit(node)
        self._count += 1
        mark = f"{self._number}_{self._count}"
        if self._style == "arguments before":
            node.args = [self._named(value, f"given_{mark}_{place}") for place, value in enumerate(node.args)]
        elif self._style in ("in a dict", "in dict()") and node.keywords:
            keys: list[ast.expr | None] = [ast.Constant(each.arg) for each in node.keywords]
            values: ast.expr = ast.Dict(keys, [each.value for each in node.keywords])
            if self._style == "in dict()":
                values = ast.Call(ast.Name("dict"), [], node.keywords)
            node.keywords = [ast.keyword(None, values)]
        elif self._style == "in a list" and node.args:
            node.args = [ast.Starred(ast.List(node.args))]
        elif self._style == "another name":
            node.func = self._named(node.func, f"call_{mark}")
        elif self._style == "partial" and node.keywords:
            now, later = node.keywords[::2], node.keywords[1::2]
            node.func = ast.Call(ast.Attribute(ast.Name("functools"), "partial"), [node.func], now)
            node.keywords = later
        elif self._style == "in a lambda":
            return ast.Call(
                self._named(ast.Lambda(ast.arguments([], [], None, [], [], None, []), node), f"later_{mark}"), [], []
            )
        return node

    def _named(self, value: ast.expr, name: str) -> ast.expr:
        self._before.append(ast.Assign([ast.Name(name)], value))
        return ast.Name(name)


def _imported(text: str, drawn: Drawn) -> str:
    """Return *text* with its module of collectives imported as *drawn* says."""
    api = APIS[drawn.api]
    path = api.written(api.main, native=False)
    line = f"import {path} as dist\n"
    package, _, name = path.rpartition(".")
    if drawn.imports == "other name":
        return re.sub(r"\bdist\.", "c.", text.replace(line, f"import {path} as c\n"))
    if drawn.imports == "whole path":
        return re.sub(r"\bdist\.", f"{path}.", text.replace(line, f"import {path}\n"))
    if drawn.imports == "from package":
        return re.sub(r"\bdist\.", f"{name}.", text.replace(line, f"from {package} import {name}\n"))
    if drawn.imports in ("names", "other names"):
        used = sorted(set(re.findall(r"\bdist\.(\w+)", text)) - {"stream"})
        renamed = {each: f"{each}_of_it" if drawn.imports == "other names" else each for each in used}
        whole = line if re.search(r"\bdist\.stream\b", text) else ""
        names = ", ".join(each if new == each else f"{each} as {new}" for each, new in renamed.items())
        text = text.replace(line, f"{whole}from {path} import {names}\n")
        return re.sub(r"\bdist\.(\w+)", lambda found: renamed.get(found[1], found[0]), text)
    if drawn.imports == "in function" and not any(piece.place in _BEFORE for piece in drawn.pieces):
        return text.replace(line, "").replace("    seen = [rank]\n", f"    {line}    seen = [rank]\n", 1)
    return text
