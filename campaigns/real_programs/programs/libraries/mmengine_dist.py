"""MMEngine: its dist package on tensors, dicts and objects, and collected results."""

from results import RANK, show

import mmengine.dist as mm
import torch
import torch.distributed as dist

dist.init_process_group("gloo")  # mm.init_dist would ask for CUDA
show("info", [mm.get_dist_info(), mm.get_backend(), mm.is_main_process()])
value = torch.arange(6.0) * (RANK + 1)
mm.all_reduce(value, op="mean")
show("mean", value)
show("gathered", mm.all_gather(torch.full((2,), RANK)))
show("gathered at 1", mm.gather(torch.full((2,), RANK), dst=1))
data = torch.full((3,), RANK + 4)
mm.broadcast(data, src=1)
show("broadcast", data)
show("seed", type(mm.sync_random_seed()).__name__)
numbers = {"loss": torch.tensor(1.0 + RANK), "accuracy": torch.tensor([0.5, 0.25 * RANK])}
mm.all_reduce_dict(numbers, op="mean")
show("dict", numbers)
objects = [{"rank": RANK}, "two"]
mm.broadcast_object_list(objects, src=1)
show("objects", [objects, mm.all_gather_object([RANK] * (RANK + 1)), mm.gather_object("x" * RANK, dst=0)])
show("collected", mm.collect_results([RANK * 10 + number for number in range(3)], 5, "cpu", tmpdir=None))
parameters = [torch.full((3,), float(RANK)), torch.full((2, 2), 2.0 * RANK)]
mm.all_reduce_params(parameters, coalesce=True)
show("parameters", parameters)
mm.barrier()
