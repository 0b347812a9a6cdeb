"""ring-attention-pytorch: a transformer whose sequence lies on all ranks, striped and not, and tree attention for decoding."""

from results import show

import torch
import torch.distributed as dist
from ring_attention_pytorch import RingAttention, RingTransformer, tree_attn_decode

dist.init_process_group("gloo")
torch.manual_seed(3)
attention = RingAttention(
    dim=32, dim_head=16, heads=2, causal=True, ring_attn=True, ring_seq_size=8, bucket_size=4, auto_shard_seq=True
)
inputs = torch.randn(1, 16, 32, generator=torch.Generator().manual_seed(4), requires_grad=True)
output = attention(inputs)
output.square().mean().backward()
show("attention", output)
show("its gradients", [inputs.grad, *(parameter.grad for parameter in attention.parameters())])

for striped in (False, True):
    torch.manual_seed(5)
    model = RingTransformer(
        num_tokens=32, dim=16, depth=2, heads=2, dim_head=8, causal=True, bucket_size=4, ring_attn=True,
        striped_ring_attn=striped, ring_seq_size=8, auto_shard_seq=True,
    )  # fmt: skip
    tokens = torch.randint(0, 32, (2, 16), generator=torch.Generator().manual_seed(6))
    loss = model(tokens).square().mean()
    loss.backward()
    show(f"transformer, striped {striped}", [loss, *(parameter.grad for parameter in model.parameters())])

query, key, value = (
    torch.randn(1, 2, 1 if number == 0 else 12, 8, generator=torch.Generator().manual_seed(number))
    for number in range(3)
)
show("tree decoding", tree_attn_decode(query, key, value, use_triton=False))
dist.destroy_process_group()
