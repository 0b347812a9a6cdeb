"""TRL's SFTTrainer on tokenised data, with a tiny Llama that is made offline."""

from results import note_groups, show

import os

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback, set_seed
from trl import SFTConfig, SFTTrainer


class Note(TrainerCallback):
    """Keeps the groups that the trainer uses."""

    def on_step_end(self, *_, **__):
        note_groups()


set_seed(17)
words = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{number}" for number in range(40))]
tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
)
config = LlamaConfig(
    vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
model = LlamaForCausalLM(config)
texts = [" ".join(f"w{int(number)}" for number in torch.randint(0, 40, (8,))) for _ in range(24)]
arguments = SFTConfig(
    output_dir=os.environ["REAL_PROGRAMS_RESULTS"] + "/sft", per_device_train_batch_size=4, num_train_epochs=2, max_length=16,
    learning_rate=1e-2, logging_steps=1, report_to=[], use_cpu=True, bf16=False, disable_tqdm=True, save_strategy="no",
    ddp_backend="gloo", dataset_num_proc=None,
)  # fmt: skip
trainer = SFTTrainer(
    model,
    args=arguments,
    train_dataset=Dataset.from_dict({"text": texts}),
    processing_class=tokenizer,
    callbacks=[Note()],
)
result = trainer.train()
show("loss", result.training_loss)
show("parameters", dict(model.state_dict()))
