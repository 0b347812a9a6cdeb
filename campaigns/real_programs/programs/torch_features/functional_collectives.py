"""Functional collectives, called and in a graph that torch.compile traces."""

from results import RANK, show

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

dist.init_process_group("gloo")
group = dist.group.WORLD
rows = torch.arange(12.0).reshape(4, 3) * (RANK + 1)
show("all_reduce", functional.wait_tensor(functional.all_reduce(rows, "sum", group)))
show("avg", functional.wait_tensor(functional.all_reduce(rows, "avg", group)))
show("all_gather", functional.wait_tensor(functional.all_gather_tensor(rows, 1, group)))
show("reduce_scatter", functional.wait_tensor(functional.reduce_scatter_tensor(rows, "sum", 0, group)))
show("all_to_all", functional.wait_tensor(functional.all_to_all_single(rows, [1 + 2 * RANK] * 2, [1, 3], group)))
show("broadcast", functional.wait_tensor(functional.broadcast(rows, 1, group)))
show(
    "coalesced", [functional.wait_tensor(one) for one in functional.all_reduce_coalesced([rows, rows[0]], "max", group)]
)
show(
    "gathered, coalesced",
    [functional.wait_tensor(one) for one in functional.all_gather_into_tensor_coalesced([rows, rows[:1]], group)],
)


def step(given):
    total = functional.all_reduce(given * 2, "sum", group)
    return functional.all_gather_tensor(total.relu(), 0, group) + 1


compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
show("compiled", compiled(rows))
show("compiled again", compiled(rows + 1))
dist.destroy_process_group()
