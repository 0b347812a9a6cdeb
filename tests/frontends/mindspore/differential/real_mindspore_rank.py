"""One rank of a job that does everything in ``real_mindspore_cases`` and ``real_mindspore_mistakes`` with MindSpore and with the frontend, and tells both.

MindSpore's own variables say which rank; its scheduler runs this too. The argument is where to write; the next free ports
begin at the second one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore.communication as communication
from mindspore_comparison import Outcome, outcome

from shim.frontends.mindspore.mint.distributed import barrier


def main(folder: Path, port: int) -> None:
    communication.init()
    if os.environ["MS_ROLE"] == "MS_SCHED":
        return
    from real_mindspore_cases import Framework
    from real_mindspore_mistakes import CASES

    rank, size = communication.get_rank(), communication.get_group_size()
    frameworks = [
        Framework(modules, rank, size, pair(modules, rank), port + 10 * rank + index)
        for index, modules in enumerate((real(), ours()))
    ]
    outcomes = {
        name: [called(name, function, framework) for framework in frameworks] for name, function in CASES.items()
    }
    (folder / f"{rank}.json").write_text(json.dumps(outcomes))


def real() -> dict[str, Any]:
    import mindspore.communication.comm_func as comm_func
    import mindspore.mint.distributed as mint
    import mindspore.ops.communication as ops
    from mindspore.mint.distributed import distributed
    from mindspore.ops.function import comm_func as functions

    # On a CPU the world has another name than the one that these functions keep from when they were imported.
    for module in (distributed, functions):
        for name in ("get_cache_group_rank", "get_cache_group_size", "_get_rank_helper"):
            setattr(module, name, _in_the_world(getattr(module, name)))
    return {"mint": mint, "ops": ops, "comm_func": comm_func, "communication": communication}


def _in_the_world(function: Callable[[str], int]) -> Callable[..., int]:
    return lambda group=None: function(communication.GlobalComm.WORLD_COMM_GROUP if group is None else group)


def ours() -> dict[str, Any]:
    import shim.frontends.mindspore.communication as communication
    import shim.frontends.mindspore.mint.distributed as mint
    import shim.frontends.mindspore.ops.communication as ops
    from shim.frontends.mindspore.communication import comm_func

    communication.init("mccl")
    return {"mint": mint, "ops": ops, "comm_func": comm_func, "communication": communication}


def pair(modules: dict[str, Any], rank: int) -> str:
    return str(modules["mint"].new_group([0, 2])) if rank != 1 else ""


def called(name: str, function: Callable[[Any], Any], framework: Any) -> Outcome:
    sys.stderr.write(f"{name}\n")
    barrier()  # MindSpore's messages get lost where one rank is ahead of another
    return outcome(lambda: function(framework))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
