"""PEFT: LoRA on a tiny Llama under DDP, where only the adapters have gradients, and under fully_shard."""

from results import RANK, show

import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from transformers import LlamaConfig, LlamaForCausalLM

dist.init_process_group("gloo")
config = LlamaConfig(
    vocab_size=40,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
)


def network():
    torch.manual_seed(6)
    adapted = LoraConfig(
        r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0, init_lora_weights=False
    )
    return get_peft_model(LlamaForCausalLM(config), adapted)


def train(name, model):
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-2)
    for step in range(3):
        tokens = torch.randint(0, 40, (2, 8), generator=torch.Generator().manual_seed(step + 20 * RANK))
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        show(f"{name}: loss {step}", loss)


model = network()
train("DDP", DistributedDataParallel(model))
show("adapters", get_peft_model_state_dict(model))
model = network()
for layer in model.base_model.model.model.layers:
    fully_shard(layer)
fully_shard(model)
train("fully_shard", model)
show("shards", [one.to_local() for one in model.parameters() if one.requires_grad])
dist.destroy_process_group()
