"""Pieces of programs that compute with tensors, as ``programs.PROGRAMS`` has them for collectives. They are written in torch's words."""

from __future__ import annotations

TENSOR_PIECES = {
    "a mean over ranks": """
total = mine.clone()
<all_reduce(tensor=total)>
total /= size
seen += [total, total.sum(), (total - mine).abs().max()]
""",
    "a view that is written": """
part = mine.clone()
view = part[1:]
view += rank
view[0] = 7
<broadcast(tensor=part, root=size - 1)>
seen += [part, view.sum().item()]
""",
    "a bucket": """
parts = [mine.clone(), mine[:2] * 2, torch.ones(2, 2) * rank]
bucket = torch.cat([part.reshape(-1) for part in parts])
<all_reduce(tensor=bucket)>
start = 0
for part in parts:
    part.copy_(bucket[start : start + part.numel()].view(part.shape))
    start += part.numel()
seen += parts
""",
    "parts of unequal lengths": """
own = torch.arange(rank + 1) * 1.0
length = torch.tensor([own.shape[0]])
lengths = [torch.zeros_like(length) for _ in range(size)]
<all_gather(outputs=lengths, input=length)>
longest = max(int(each) for each in lengths)
padded = torch.zeros(longest)
padded[: own.shape[0]] = own
everything = [torch.zeros(longest) for _ in range(size)]
<all_gather(outputs=everything, input=padded)>
seen.append(torch.cat([one[: int(count)] for one, count in zip(everything, lengths)]))
""",
    "the best rank": """
score = torch.tensor([float(mine[rank % 3])])
scores = [torch.zeros(1) for _ in range(size)]
<all_gather(outputs=scores, input=score)>
best = int(torch.argmax(torch.cat(scores)))
chosen = mine * 3
<broadcast(tensor=chosen, root=best)>
seen += [best, chosen]
""",
    "counts of classes": """
labels = torch.tensor([0, 2, 1, 2, rank % 3])
counts = torch.zeros(3, dtype=torch.int64)
for label in range(3):
    counts[label] = (labels == label).sum()
<all_reduce(tensor=counts)>
seen += [counts, counts.tolist(), counts.float() / counts.sum()]
""",
    "a norm that clips": """
grad = mine - 3.5
square = (grad * grad).sum()
<all_reduce(tensor=square)>
norm = square.sqrt()
if norm.item() > 1.0:
    grad.mul_(1.0 / norm)
seen += [grad, norm]
""",
    "softmax over ranks": """
scores = mine * 0.1
largest = scores.max()
<all_reduce(tensor=largest, op=<ReduceOp.MAX>)>
weights = torch.exp(scores - largest)
total = weights.sum()
<all_reduce(tensor=total)>
seen.append(weights / total)
""",
    "rows to their ranks": """
rows = torch.arange(4 * size).reshape(2 * size, 2) * 1.0 + rank
output = torch.zeros_like(rows)
<all_to_all_whole(output=output, input=rows)>
seen += [output, output.T[0], output.mean(dim=0)]
""",
    "a copy that is spread": """
table = torch.zeros(2, 3)
row = mine + 1
<all_reduce(tensor=row)>
table.copy_(row)
table[1].copy_(mine)
seen += [table, table.sum()]
""",
    "a mask": """
kept = mine > 1
found = torch.where(kept, mine, torch.zeros_like(mine))
<all_reduce(tensor=found, op=<ReduceOp.MAX>)>
seen += [found, int(kept.sum()), found[found > 10].shape[0], bool(kept.all())]
""",
    "conversions": """
whole = mine.to(torch.int64)
<all_reduce(tensor=whole)>
half = mine.to(torch.float16)
seen += [whole, whole // 2, whole % 3, half.float(), whole.dtype == torch.int64, whole.tolist()]
""",
    "shapes": """
square = torch.arange(6).reshape(2, 3).float() + rank
stacked = torch.stack([square, square * 2], dim=1)
<all_reduce(tensor=stacked)>
seen += [stacked.shape[1], stacked.permute(2, 0, 1), stacked.transpose(0, 1), stacked.unsqueeze(0).squeeze(0), stacked.flatten(1)]
""",
    "an average that moves": """
average, decay = torch.zeros(3), 0.5
for turn in range(2):
    current = mine * (turn + 1)
    <all_reduce(tensor=current)>
    average = decay * average + (1 - decay) * current / size
seen.append(average)
""",
    "a sum by dimension": """
table = torch.ones(2, 3) * (rank + 1)
table[1, :] = mine
output = torch.zeros(2 * size, 3)
<all_gather_whole(output=output, input=table)>
seen += [output.sum(0), output.sum(dim=1, keepdim=True), output.cumsum(0), output[::2], output[-1]]
""",
}
