"""What ``test_launchers`` has each launcher start: writes what this rank saw to a file of its own in the folder given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import shim.frontends.mindspore.communication as mindspore_communication
import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.paddle_3.distributed as paddle_dist
import shim.frontends.torch.distributed as torch_dist
from shim.core.job import rendezvous


def main(folder: str) -> None:
    sys.stdout.write("before the world\n")
    rank = paddle_dist.get_rank()
    paddle_dist.init_parallel_env()
    torch_dist.init_process_group()
    mindspore_communication.init()
    size = torch_dist.get_world_size()
    mine = np.array([100 * rank + 1, 100 * rank + 2])
    total, gathered, exchanged = mine.copy(), np.zeros(2 * size, mine.dtype), np.zeros(size, mine.dtype)
    torch_dist.all_reduce(total)
    mint.all_gather_into_tensor(gathered, mine)
    paddle_dist.alltoall_single(exchanged, np.arange(size) + 10 * rank)
    seen = {
        "rank": rank,
        "size": size,
        "launcher": rendezvous.locate().launcher,
        "ranks": [torch_dist.get_rank(), paddle_dist.get_rank(), mindspore_communication.get_rank()],
        "all_reduce": total.tolist(),
        "all_gather": gathered.tolist(),
        "all_to_all": exchanged.tolist(),
    }
    (Path(folder) / f"rank{rank}.json").write_text(json.dumps(seen))
    torch_dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1])
