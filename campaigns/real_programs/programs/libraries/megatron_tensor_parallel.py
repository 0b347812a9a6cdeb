"""Megatron-Core on CPUs: parallel_state's groups, column- and row-parallel linear layers, the vocabulary-parallel embedding and its loss."""

from results import RANK, show

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.model_parallel_config import ModelParallelConfig
from megatron.core.tensor_parallel import mappings

dist.init_process_group("gloo")
parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
show("groups", [parallel_state.get_tensor_model_parallel_rank(), parallel_state.get_data_parallel_world_size()])
config = ModelParallelConfig(
    tensor_model_parallel_size=2, use_cpu_initialization=True, params_dtype=torch.float32, perform_initialization=True,
    gradient_accumulation_fusion=False, async_tensor_model_parallel_allreduce=False,
)  # fmt: skip
torch.manual_seed(5)
init = torch.nn.init.xavier_normal_
embedding = tensor_parallel.VocabParallelEmbedding(32, 16, init_method=init, config=config)
up = tensor_parallel.ColumnParallelLinear(16, 64, config=config, init_method=init, gather_output=False, bias=True)
down = tensor_parallel.RowParallelLinear(
    64, 16, config=config, init_method=init, input_is_parallel=True, bias=True, skip_bias_add=False
)
head = tensor_parallel.ColumnParallelLinear(16, 32, config=config, init_method=init, gather_output=False, bias=False)
tokens = torch.randint(0, 32, (4, 6), generator=torch.Generator().manual_seed(1))
hidden = embedding(tokens)
hidden = hidden + down(torch.nn.functional.gelu(up(hidden)[0]))[0]
loss = tensor_parallel.vocab_parallel_cross_entropy(head(hidden)[0], tokens.roll(1, 1))
loss.mean().backward()
show("loss", loss)
show("gradients", [layer.weight.grad for layer in (embedding, up, down, head)])
rows = torch.arange(8.0).reshape(2, 4).requires_grad_()
copied = mappings.copy_to_tensor_model_parallel_region(rows)
total = mappings.reduce_from_tensor_model_parallel_region(copied * (RANK + 1))
(total * torch.arange(4.0)).sum().backward()
show("regions", [mappings.scatter_to_tensor_model_parallel_region(rows.detach()), total, rows.grad])
parallel_state.destroy_model_parallel()
dist.destroy_process_group()
