"""What programs use beside tensors: objects, the store, monitored_barrier, subgroups, batched messages, all collectives by their names."""

from results import RANK, WORLD_SIZE, show

import datetime

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
gathered = [None] * WORLD_SIZE
dist.all_gather_object(gathered, {"rank": RANK, "values": list(range(RANK + 1))})
objects = ["a", {"b": RANK}]
dist.broadcast_object_list(objects, src=1)
scattered = [None]
dist.scatter_object_list(scattered, ["first", "second"] if RANK == 0 else None, src=0)
at_root = [None] * WORLD_SIZE if RANK == 1 else None
dist.gather_object(("from", RANK), at_root, dst=1)
show("objects", [gathered, objects, scattered, at_root])
group, groups = dist.new_subgroups(group_size=2)
show("subgroup", [dist.get_rank(group), dist.get_world_size(group), len(groups), dist.get_process_group_ranks(group)])
value = torch.full((4,), RANK + 1.0)
works = [dist.all_reduce(value, group=group, async_op=True)]
for work in works:
    work.wait()
show("all_reduce", value)
show(
    "future", dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda done: done.value()[0] * 10).wait()
)
sent, received = torch.arange(3.0) + RANK, torch.zeros(3)
peer = 1 - RANK
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, peer), dist.P2POp(dist.irecv, received, peer)]):
    work.wait()
show("batched messages", received)
parts = [torch.zeros(2) for _ in range(WORLD_SIZE)]
dist.all_to_all(parts, [torch.full((2,), 10.0 * RANK + to) for to in range(WORLD_SIZE)])
show("all_to_all", parts)
out = torch.zeros(2)
dist.reduce_scatter(out, [torch.full((2,), RANK + to + 1.0) for to in range(WORLD_SIZE)])
show("reduce_scatter", out)
for kind in (dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT):
    value = torch.tensor([RANK + 2, 5 - RANK])
    dist.all_reduce(value, op=kind)
    show(str(kind), value)
store = dist.distributed_c10d._get_default_store()
store.set(f"key {RANK}", str(RANK))
show("store", [store.get(f"key {peer}"), dist.get_backend(), dist.get_node_local_rank(-1)])
dist.monitored_barrier()
dist.barrier()
dist.destroy_process_group()
