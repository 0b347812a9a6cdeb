"""parallelize_module: a transformer's feed-forward and attention, column- and row-wise, with sequence parallelism, and loss_parallel."""

from results import show

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))


class Block(torch.nn.Module):
    """A norm and a gated feed-forward network."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.gate, self.up = torch.nn.Linear(16, 32, bias=False), torch.nn.Linear(16, 32, bias=False)
        self.down = torch.nn.Linear(32, 16, bias=False)

    def forward(self, inputs):
        normed = self.norm(inputs)
        return self.down(torch.nn.functional.silu(self.gate(normed)) * self.up(normed))


torch.manual_seed(19)
plain, columns = Block(), {"gate": ColwiseParallel(), "up": ColwiseParallel()}
inputs = torch.randn(2, 8, 16)
expected = plain(inputs)
model = parallelize_module(plain, mesh, columns | {"down": RowwiseParallel()})
output = model(inputs)
output.square().mean().backward()
show("feed-forward", output)
show("near the plain one", bool(torch.allclose(output, expected, atol=1e-5)))
show("gradients", [model.gate.weight.grad.full_tensor(), model.down.weight.grad.full_tensor()])

torch.manual_seed(19)
plan = {
    "norm": SequenceParallel(),
    "gate": ColwiseParallel(input_layouts=Shard(1)),
    "up": ColwiseParallel(input_layouts=Shard(1)),
    "down": RowwiseParallel(output_layouts=Shard(1)),
}
model = parallelize_module(Block(), mesh, plan)
sharded = distribute_tensor(inputs, mesh, [Shard(1)])
output = model(sharded.to_local())
show("sequence parallel", output)

torch.manual_seed(23)
head = parallelize_module(
    torch.nn.Linear(16, 50), mesh, ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
)
table = parallelize_module(torch.nn.Embedding(50, 16), mesh, RowwiseParallel(input_layouts=Replicate()))
tokens = torch.randint(0, 50, (6,))
with loss_parallel():
    loss = torch.nn.functional.cross_entropy(head(table(tokens)), tokens)
    loss.backward()
show("loss", loss.full_tensor() if hasattr(loss, "full_tensor") else loss)
show("gradients of head and table", [head.weight.grad.full_tensor(), table.weight.grad.full_tensor()])
dist.destroy_process_group()
