"""CLIP's loss over the pairs of all ranks, with its gradient written out."""

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

PAIRS, WIDTH = 4, 6


def gathered(part: torch.Tensor) -> torch.Tensor:
    whole = torch.empty(PAIRS * dist.get_world_size(), part.shape[1], dtype=part.dtype)
    dist.all_gather_into_tensor(whole, part)
    return whole


def loss_and_gradient(images: torch.Tensor, texts: torch.Tensor, scale: float):
    rank, size = dist.get_rank(), dist.get_world_size()
    labels = torch.arange(PAIRS) + rank * PAIRS
    logits = scale * torch.matmul(images, gathered(texts).t())
    loss = F.cross_entropy(logits, labels)
    slope = (F.softmax(logits, dim=-1) - F.one_hot(labels, PAIRS * size).float()) * (scale / PAIRS)
    right = torch.sum(torch.eq(torch.argmax(logits, dim=-1), labels).float())
    return loss, torch.matmul(slope, gathered(texts)), right


def train():
    dist.init_process_group()
    numbers = np.random.default_rng(5 + dist.get_rank()).normal(size=(2, PAIRS, WIDTH)).astype(np.float32)
    images, texts = torch.tensor(numbers[0]), torch.tensor(numbers[1])
    texts = F.normalize(texts, dim=-1)
    for step in range(5):
        normal = F.normalize(images, dim=-1)
        loss, slope, right = loss_and_gradient(normal, texts, 4.0)
        images = normal - 0.1 * slope
        dist.all_reduce(loss)
        dist.all_reduce(right)
        print(f"step {step}: loss {loss.item():.7f} right {int(right.item())}")
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
