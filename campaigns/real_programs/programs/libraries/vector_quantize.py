"""vector-quantize-pytorch: codebooks that all ranks learn together: k-means at the start, moving averages, replaced dead codes."""

from results import RANK, show

import torch
import torch.distributed as dist
from vector_quantize_pytorch import ResidualVQ, VectorQuantize

dist.init_process_group("gloo")
single = VectorQuantize(
    dim=8, codebook_size=16, kmeans_init=True, kmeans_iters=4, threshold_ema_dead_code=1, sync_codebook=True, decay=0.8
)
residual = ResidualVQ(dim=8, num_quantizers=2, codebook_size=16, sync_codebook=True, use_cosine_sim=True)
for step in range(3):
    inputs = torch.randn(2, 20, 8, generator=torch.Generator().manual_seed(10 * RANK + step))
    quantized, indices, loss = single(inputs)
    show(f"indices {step}", [indices.sum(), quantized, loss])
    show(f"residual {step}", residual(inputs)[0])
show("codebook", single.codebook)
show("residual codebooks", residual.codebooks)
dist.destroy_process_group()
