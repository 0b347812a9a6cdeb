# ranks: 2, 3
import torch
import torch.distributed as dist

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

# Every rank sends as many rows as the receiver's rank says, and one more.
rows = [receiver + 1 for receiver in range(size)]
sent = torch.full((sum(rows),), 10 * rank)
received = torch.empty(size * (rank + 1), dtype=torch.int64)
dist.all_to_all_single(received, sent, [rank + 1] * size, rows)
print(received.tolist()[: 2 * (rank + 1)])
# shows on rank 0: [0, 10]
# shows on rank 1: [0, 0, 10, 10]
# shows on rank 2: [0, 0, 0, 10, 10, 10]

too_short = torch.empty(1)
dist.all_to_all_single(too_short, torch.zeros(size + 1))
# raises ValueError
print(received.shape == (size * (rank + 1),), dist.get_world_size() == size)
# shows: True True
