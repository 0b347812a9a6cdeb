"""A layer of experts, one on each rank: tokens are routed, sent by their counts, changed, and sent back."""

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

TOKENS, WIDTH = 12, 4


def route(tokens: torch.Tensor, gate: torch.Tensor, size: int):
    scores = F.softmax(torch.matmul(tokens, gate), dim=-1)
    weight, expert = torch.max(scores, dim=-1)
    order = torch.argsort(expert, stable=True)
    counts = torch.bincount(expert, minlength=size)
    balance = torch.sum(torch.mean(scores, dim=0) * torch.mean(F.one_hot(expert, size).float(), dim=0)) * size
    return weight, order, counts, balance


def exchange(tokens: torch.Tensor, sent: list, received: list) -> torch.Tensor:
    output = torch.empty(sum(received), tokens.shape[1], dtype=tokens.dtype)
    dist.all_to_all_single(output, tokens, received, sent)
    return output


def layer(tokens: torch.Tensor, gate: torch.Tensor, expert: torch.Tensor):
    size = dist.get_world_size()
    weight, order, counts, balance = route(tokens, gate, size)
    theirs = torch.empty_like(counts)
    dist.all_to_all_single(theirs, counts)
    sent, received = counts.tolist(), theirs.tolist()
    inner = exchange(torch.index_select(tokens, 0, order), sent, received)
    inner = torch.relu(torch.matmul(inner, expert))
    back = exchange(inner, received, sent)
    places = order.unsqueeze(1).expand(-1, tokens.shape[1])
    output = torch.scatter(torch.zeros_like(back), 0, places, back)
    return output * weight.unsqueeze(-1), balance


def train():
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    numbers = np.random.default_rng(3)
    gate = torch.tensor(numbers.normal(size=(WIDTH, size)).astype(np.float32))
    experts = numbers.normal(size=(size, WIDTH, WIDTH)).astype(np.float32)
    own = torch.tensor(experts[rank])
    tokens = torch.tensor(np.random.default_rng(rank).normal(size=(TOKENS, WIDTH)).astype(np.float32))
    for step in range(4):
        output, balance = layer(tokens, gate, own)
        loss = torch.mean(torch.square(output))
        for each in (loss, balance):
            dist.all_reduce(each)
        tokens = tokens + 0.1 * output
        print(f"step {step}: loss {loss.item():.7f} balance {balance.item():.7f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
