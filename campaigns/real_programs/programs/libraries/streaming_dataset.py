"""MosaicML Streaming: a StreamingDataset whose samples are divided over the ranks, twice, and resumed from its state."""

from results import RANK, WORLD_SIZE, note_groups, show

import os

import numpy
import torch.distributed as dist
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

os.environ.setdefault("LOCAL_WORLD_SIZE", str(WORLD_SIZE))
os.environ.setdefault("LOCAL_RANK", str(RANK))
dist.init_process_group("gloo")
folder = os.environ["REAL_PROGRAMS_RESULTS"] + "/shards"
if RANK == 0:
    with MDSWriter(out=folder, columns={"number": "int", "row": "ndarray"}, size_limit=500) as writer:
        for number in range(37):
            writer.write({"number": number, "row": numpy.arange(3) + number})
dist.barrier()
data = StreamingDataset(local=folder, batch_size=4, shuffle=True, shuffle_seed=5, num_canonical_nodes=1)
loader = StreamingDataLoader(data, batch_size=4)
for epoch in range(2):
    show(f"epoch {epoch}", [batch["number"] for batch in loader])
show("of one rank", [len(data), data.size])
taken = iter(loader)
next(taken)
state = loader.state_dict()
show("state", {key: state[key] for key in ("epoch", "sample_in_epoch")} if state else None)
note_groups()
dist.destroy_process_group()
