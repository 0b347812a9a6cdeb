"""tensordict: send and receive nested TensorDicts, also without waiting, reduce, and one whose structure travels with it."""

from results import RANK, show

import torch
import torch.distributed as dist
from tensordict import TensorDict

dist.init_process_group("gloo")


def made(value):
    data = {
        "a": torch.full((3, 2), float(value)),
        "nested": {"b": torch.arange(3) + value, "c": torch.ones(3, 4, 1) * value},
    }
    return TensorDict(data, [3])


def flat(data):
    return {str(key): data.get(key) for key in sorted(data.keys(True, True), key=str)}


data = made(RANK + 1)
if RANK == 0:
    data.send(1)
    data.isend(1)
else:
    received = made(0)
    received.recv(0)
    show("received", flat(received))
    later = made(0)
    futures = later.irecv(0, return_premature=True)
    for future in futures:
        future.wait()
    show("received later", flat(later))
dist.barrier()
reduced = made(RANK + 5)
reduced.reduce(0)
show("reduced", flat(reduced) if RANK == 0 else None)
if RANK == 0:
    made(7).init_remote(1)
else:
    show("of unknown structure", flat(TensorDict.from_remote_init(0)))
show("end", RANK)
dist.destroy_process_group()
