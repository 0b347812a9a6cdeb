"""lightly: self-supervised losses over the batches of all ranks: NT-Xent, Barlow Twins, VICReg, SwAV's Sinkhorn, DINO's centre."""

from results import RANK, show

import torch
import torch.distributed as dist
from lightly.loss import BarlowTwinsLoss, DINOLoss, NTXentLoss, SwaVLoss, VICRegLoss
from lightly.utils.dist import eye_rank, gather

dist.init_process_group("gloo")


def view(offset, width=16):
    return torch.randn(8, width, generator=torch.Generator().manual_seed(RANK + offset), requires_grad=True)


def tried(name, loss_of):
    first, second = view(0), view(50)
    loss = loss_of(first, second)
    loss.backward()
    show(name, [loss, first.grad, second.grad])


tried("NT-Xent", NTXentLoss(gather_distributed=True))
tried("Barlow Twins", BarlowTwinsLoss(gather_distributed=True))
tried("VICReg", VICRegLoss(gather_distributed=True))
swav = SwaVLoss(sinkhorn_gather_distributed=True)
tried("SwAV", lambda first, second: swav([first, second], []))
dino = DINOLoss(output_dim=16, warmup_teacher_temp_epochs=1)
tried("DINO", lambda first, second: dino([first.detach(), second.detach()], [first, second], epoch=1))
show("DINO's centre", dict(dino.named_buffers()))
show("gathered", [torch.cat(gather(view(3))), eye_rank(3)])
dist.destroy_process_group()
