"""How many ranks an example needs: what it says, what its code names, what it shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shim.conformance.examples.example import Step

_DEFAULT = 2
# "2 devices", "2 process groups, 2 ranks", "world_size of 3", "(2 GPUs)", "Launch 2 processes", "two ranks"
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8}
_COUNT = re.compile(
    r"\b(\d+|two|three|four|eight) (?:\w+ )?(?:devices|ranks|GPUs|gpus|processes|cards|workers)\b|world_size of (\d+)|\b(one) card\b"
)
_SHOWN_SIZE = re.compile(r"_size is\s*:\s*(\d+)")
_SERVES_A_STORE = re.compile(r"Store\([^()]*is_master=True\)")
_WORLD = re.compile(r"\b(?:init\w*|rank)\b")


def ranks_of(own: str, document: str, steps: Sequence[Step]) -> int:
    """Return how many ranks the example needs whose text is *own*, in the text *document*.

    What the example says itself goes before what the document says around it. A rank that is shown, or that its code names, is there. An example that
    serves a store and speaks of no world is one process. Where nothing says anything, there are 2.
    """
    sources = [step.source for step in steps]
    if any(map(_SERVES_A_STORE.search, sources)) and not any(map(_WORLD.search, sources)):
        return 1
    stated = _stated(own) or _stated(document)
    shown = [text for step in steps if step.wanted is not None for text in step.wanted.text.values()]
    sizes = [int(size) for text in shown for size in _SHOWN_SIZE.findall(text)]
    ranks = [rank for step in steps if step.wanted is not None for rank in step.wanted.text]
    named = [rank for source in sources for rank in _named_ranks(source)]
    return max([stated or _DEFAULT if not sizes else 1, *sizes, *(rank + 1 for rank in [*ranks, *named])])


def _stated(text: str) -> int:
    found = _COUNT.search(text)
    if found is None:
        return 0
    number = found[1] or found[2] or found[3]
    return _NUMBERS.get(number, 0) or int(number)


def _named_ranks(source: str) -> Iterator[int]:
    """Give the ranks in (nested) lists of numbers that are called ranks, or that a group is made of."""
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Assign) and "rank" in ast.unparse(node.targets[0])) or (
            isinstance(node, ast.keyword) and "rank" in (node.arg or "")
        ):
            yield from _numbers_in(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_group"):
            for argument in node.args:
                yield from _numbers_in(argument)


def _numbers_in(node: ast.expr) -> Iterator[int]:
    if isinstance(node, (ast.List, ast.Tuple)):
        for entry in node.elts:
            if isinstance(entry, ast.Constant) and type(entry.value) is int:
                yield entry.value
            yield from _numbers_in(entry)
