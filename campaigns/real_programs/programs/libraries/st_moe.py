"""st-moe-pytorch: a mixture of experts that are distributed over the ranks, with batches of different sizes."""

from results import RANK, show

import torch
import torch.distributed as dist
from st_moe_pytorch import MoE
from st_moe_pytorch.distributed import AllGather, all_gather_variable_dim

dist.init_process_group("gloo")
torch.manual_seed(9)
model = MoE(
    dim=16,
    num_experts=4,
    gating_top_n=2,
    threshold_train=0.2,
    threshold_eval=0.2,
    allow_var_seq_len=False,
    is_distributed=True,
)
model.eval()
inputs = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(RANK), requires_grad=True)
output = model(inputs)
output.outputs.square().mean().backward()
show("outputs", [output.outputs, output.total_aux_loss])
show("gradients", [inputs.grad, *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)])
rows = torch.arange(4.0 * (RANK + 1)).reshape(RANK + 1, 4).requires_grad_()
show("uneven", all_gather_variable_dim(rows.detach(), dim=0))
gathered, sizes = AllGather(dim=0)(rows)
(gathered * 2).sum().backward()
show("with a gradient", [gathered, sizes, rows.grad])
dist.destroy_process_group()
