"""open_clip: the contrastive loss with features of all ranks, in its four ways to gather, and SigLIP's loss with neighbours' features."""

from results import RANK, WORLD_SIZE, show

import torch
import torch.distributed as dist
from open_clip.loss import ClipLoss, SigLipLoss

dist.init_process_group("gloo")


def features(offset):
    generator = torch.Generator().manual_seed(RANK + offset)
    return torch.nn.functional.normalize(torch.randn(6, 16, generator=generator), dim=-1).requires_grad_()


for local in (False, True):
    for with_gradients in (False, True):
        images, texts = features(0), features(100)
        loss_of = ClipLoss(local_loss=local, gather_with_grad=with_gradients, rank=RANK, world_size=WORLD_SIZE)
        loss = loss_of(images, texts, torch.tensor(10.0))
        loss.backward()
        show(f"CLIP, local {local}, gradients {with_gradients}", [loss, images.grad, texts.grad])
for way in ("bidir", "shift", "reduce", "gather"):
    images, texts = features(0), features(100)
    loss = SigLipLoss(rank=RANK, world_size=WORLD_SIZE, dist_impl=way)(
        images, texts, torch.tensor(10.0), torch.tensor(-10.0)
    )
    loss.backward()
    show(f"SigLIP, {way}", [loss, images.grad, texts.grad])
dist.destroy_process_group()
