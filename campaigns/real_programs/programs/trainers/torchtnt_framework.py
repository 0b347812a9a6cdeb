"""torchtnt: an AutoUnit under its DDP strategy, and its distributed utilities."""

from results import RANK, note_groups, show

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torchtnt.framework.auto_unit import AutoUnit
from torchtnt.framework.train import train
from torchtnt.utils import init_from_env
from torchtnt.utils.distributed import all_gather_tensors, get_global_rank, sync_bool


class Unit(AutoUnit):
    """Learns the mean of its inputs."""

    def compute_loss(self, state, data):
        output = self.module(data[0])
        return torch.nn.functional.mse_loss(output, data[1]), output

    def configure_optimizers_and_lr_scheduler(self, module):
        return torch.optim.SGD(module.parameters(), lr=0.1), None

    def on_train_step_end(self, state, data, step, results):
        note_groups()
        show(f"loss {step}", results.loss)


device = init_from_env(device_type="cpu")
torch.manual_seed(29)
model = torch.nn.Linear(5, 1)
generator = torch.Generator().manual_seed(RANK)
inputs = torch.randn(24, 5, generator=generator)
loader = DataLoader(TensorDataset(inputs, inputs.mean(1, keepdim=True)), batch_size=4)
unit = Unit(module=model, device=device, strategy="ddp", gradient_accumulation_steps=2, clip_grad_norm=1.0)
train(unit, loader, max_epochs=1)
show("parameters", model)
show("gathered", all_gather_tensors(torch.full((2 + RANK,), float(RANK))))
show("agreed", [sync_bool(RANK == 0, coherence_mode=mode) for mode in ("any", "all", "rank_zero", 0.4, 2)])
show("rank", get_global_rank())
dist.destroy_process_group()
