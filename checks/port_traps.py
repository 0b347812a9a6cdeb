"""The traps in ``docs/porting.md`` are written from examples, each with what the port makes of it.

``python -m checks.port_traps`` writes them; the check compares what stands there with what would be written.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Literal, NamedTuple

from shim.port import Plan, port_source

PAGE = Path("docs/porting.md")

_BEGINNING, _END = "### Traps\n", "### Entries\n"
_PREAMBLE = """
`python -m checks.port_traps` writes this table by porting each example. Where the port reports something, the entry's
name stands below it.

| in | the trap | for example | becomes |
| --- | --- | --- | --- |
"""
_LINE = "# the example\n"
_NAMES = {"torch": "torch", "paddle_2": "Paddle 2", "paddle_3": "Paddle 3", "mindspore": "MindSpore"}
_IMPORTS = {
    "torch": "import torch.distributed as dist",
    "paddle_2": "import paddle.distributed as dist",
    "paddle_3": "import paddle.distributed as dist",
    "mindspore": "import mindspore.mint.distributed as dist",
}


class Trap(NamedTuple):
    """Code that means something else, or nothing, in another API. ``setting`` stands before ``code`` and is not shown."""

    where: str
    trap: str
    source: str
    target: str
    code: str
    setting: str = ""
    scope: Literal["collectives", "statements"] = "collectives"


def _of_tensors(where: str, trap: str, source: str, target: str, code: str, setting: str = "") -> Trap:
    framework = source.partition("_")[0]
    made = f"import {framework}\nx = {framework}.ones([4])\ndist.all_reduce(x)\n"
    return Trap(where, trap, source, target, code, made + setting, "statements")


_GROUP = "g = dist.new_group([0, 1])\n"

TRAPS = (
    Trap("Paddle 2", "`alltoall` and `alltoall_single` take the input first in 2 and the output first in 3", "paddle_2", "paddle_3", "dist.alltoall(x, out)"),
    Trap("Paddle", "`alltoall_single` takes the input's split sizes first; torch and `stream.alltoall_single` the output's", "torch", "paddle_3", "dist.all_to_all_single(out, x, [2, 1], [1, 2])"),
    Trap("Paddle", "`sync_op=False` where others have `async_op=True`", "paddle_3", "torch", "task = dist.all_reduce(t, sync_op=fast)"),
    Trap("Paddle", "`all_gather` appends to an empty list", "paddle_3", "torch", "parts = []\ndist.all_gather(parts, t)", "import paddle\nt = paddle.ones([2])\n"),
    Trap("Paddle", "`all_gather_object` appends to any list", "torch", "paddle_3", "found = [None] * 2\ndist.all_gather_object(found, thing)"),
    Trap("Paddle", "there are no tags", "torch", "paddle_3", "dist.send(t, 1, tag=3)"),
    Trap("Paddle", "there is no `gather_object`; `--onto native` has glue for it", "torch", "paddle_3", "dist.gather_object(thing, found)"),
    Trap("Paddle", "every rank may ask a group for its ranks, elsewhere only its members", "paddle_3", "torch", "mine = rank in g.ranks", _GROUP),
    Trap("Paddle", "`stream.all_gather` takes a list or a tensor", "paddle_3", "torch", "dist.stream.all_gather(out, t)"),
    Trap("Paddle", "`ParallelEnv().local_rank` is the rank in the world", "paddle_3", "torch", "rank = dist.ParallelEnv().local_rank"),
    Trap("torch", "`group_src` and `group_dst` count in the group", "torch", "paddle_3", "dist.broadcast(t, group=g, group_src=1)", _GROUP),
    Trap("torch", "`recv` without `src` takes a message of any rank", "torch", "paddle_3", "dist.recv(t)"),
    Trap("torch", "`recv` returns who has sent", "torch", "paddle_3", "sender = dist.recv(t, 1)"),
    Trap("torch", "only the root may pass `gather_list` or `scatter_list`", "mindspore", "torch", "dist.gather(t, parts, dst=1)"),
    Trap("MindSpore", "every rank passes a list to `gather` and `scatter`", "torch", "mindspore", "dist.gather(t, parts)"),
    Trap("MindSpore", "a group is a string: its size and rank come from functions", "torch", "mindspore", "n = g.size()", _GROUP),
    Trap("torch", "`multiprocessing.spawn` passes the rank to the function, and Paddle's `spawn` does not", "torch", "paddle_3", "def main(rank, path):\n    run(path)\nmp.spawn(main, (path,), 2)", "import torch.multiprocessing as mp\n"),
    Trap("MindSpore", "`comm_func` returns tensors that others fill", "mindspore", "torch", "y, _ = comm_func.all_reduce(x)", "from mindspore.communication import comm_func\n"),
    _of_tensors("torch", "`x += y` changes the tensor; in Paddle and MindSpore it makes a new one", "torch", "paddle_3", "x += 1"),
    _of_tensors("torch", "`split` and `chunk` give views; in Paddle they give copies", "torch", "paddle_3", "dist.all_gather(list(x.split(2)), x)"),
    _of_tensors("Paddle", "`contiguous()` changes the tensor itself, elsewhere it makes a copy", "paddle_3", "torch", "x.contiguous()"),
    _of_tensors("Paddle", "`split(x, 2)` makes two parts, elsewhere parts of size 2", "paddle_3", "torch", "parts = paddle.split(x, 2)"),
    _of_tensors("Paddle", "`size` is a number, elsewhere a method or a shape", "torch", "paddle_3", "n = x.numel()"),
    _of_tensors("Paddle", "`pad` counts from the first dimension if all are given, elsewhere from the last", "torch", "paddle_3", "y = F.pad(x, (1, 1))", "import torch.nn.functional as F\n"),
    _of_tensors("torch", "without a dtype, `full([2], 1)` is int64, in Paddle float32; MindSpore cuts 1.5 to 1", "torch", "paddle_3", "y = torch.full([2], 1)"),
)  # fmt: skip


def check(root: Path) -> list[str]:
    """Find a table that is not what the port makes of the examples."""
    text = (root / PAGE).read_text(encoding="utf-8")
    return (
        []
        if text == render(text)
        else [f"{PAGE}:1: the traps are not what the port does: run python -m checks.port_traps"]
    )


def render(text: str) -> str:
    """Return *text*, the page, with the table as it is to be."""
    before, _, rest = text.partition(_BEGINNING)
    after = rest.partition(_END)[2]
    rows = "".join(f"| {trap.where} | {trap.trap} | {_cell(trap.code)} | {result(trap)} |\n" for trap in TRAPS)
    return f"{before}{_BEGINNING}{_PREAMBLE}{rows}\n{_END}{after}"


def result(trap: Trap) -> str:
    """Return what the port makes of *trap*'s code, as the table shows it. Raises ValueError where that is the same code without a word."""
    head = f"{_IMPORTS[trap.source]}\n{trap.setting}{_LINE}"
    ported = port_source(f"{head}{trap.code}\n", Plan(trap.source, trap.target, scope=trap.scope))
    code = ported.text.partition(_LINE)[2].strip()
    entries = [f"`{entry.rule}`" for entry in ported.entries if entry.line > head.count("\n")]
    is_left = any(entry.kind == "left" for entry in ported.entries)
    if code == trap.code and not entries:
        raise ValueError(f"the port does nothing about {trap.code!r}: {trap.trap}")
    return "<br>".join(
        [f"in {_NAMES[trap.target]}: {_cell(code)}"] * (not is_left)
        + [("left: " if is_left else "") + ", ".join(entries)] * bool(entries)
    )


def _cell(code: str) -> str:
    """Return *code* as a cell of a table, with its lines below each other."""
    lines = textwrap.dedent(code).splitlines()
    return "<br>".join(f"`{line}`" for line in lines)


if __name__ == "__main__":
    _page = Path(__file__).resolve().parent.parent / PAGE
    _page.write_text(render(_page.read_text(encoding="utf-8")), encoding="utf-8")
