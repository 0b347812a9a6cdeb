"""Functions of the kinds that libraries have round collectives: gather along the last dimension, gather unequal tensors, autograd."""

import torch
import torch.distributed as dist
import torch.nn.functional as F


def gather_last_dimension(part: torch.Tensor, group=None) -> torch.Tensor:
    """Join what the ranks have, along the last dimension."""
    count = dist.get_world_size(group)
    if count == 1:
        return part
    shape = list(part.size())
    shape[0] *= count
    whole = torch.empty(shape, dtype=part.dtype, device=part.device)
    dist.all_gather_into_tensor(whole, part.contiguous(), group=group)
    return torch.cat(whole.chunk(count, dim=0), dim=part.dim() - 1).contiguous()


def gather_unequal(own: torch.Tensor, group=None):
    """Return every rank's tensor, whatever their lengths."""
    count = dist.get_world_size(group)
    length = torch.tensor([own.size(0)], dtype=torch.int64, device=own.device)
    lengths = [torch.zeros_like(length) for _ in range(count)]
    dist.all_gather(lengths, length, group=group)  # rows of each rank
    most = torch.stack(lengths).max(dim=0).values
    padded = F.pad(own, [0, 0, 0, int(most.item()) - own.size(0)])
    gathered = [torch.zeros_like(padded) for _ in range(count)]
    dist.all_gather(gathered, padded, group=group)
    return [each[: int(rows.item())] for each, rows in zip(gathered, lengths, strict=True)]


class SumForward(torch.autograd.Function):
    """Add up over the ranks; the gradient passes."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, group):
        total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class SumBackward(torch.autograd.Function):
    """Pass; add the gradients up over the ranks, and take their mean."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        total = gradient * x.abs()
        dist.all_reduce(total, group=ctx.group)
        total /= dist.get_world_size(ctx.group)
        return total, None
