"""transformers' Trainer: a tiny GPT-2 that is made offline, with evaluation, gathered metrics, accumulation and a checkpoint."""

from results import RANK, note_groups, show

import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed


class Note(TrainerCallback):
    """Keeps the groups that the trainer uses."""

    def on_step_end(self, *_, **__):
        note_groups()


set_seed(13)
config = GPT2Config(
    vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
)
model = GPT2LMHeadModel(config)
rows = torch.randint(0, 50, (40, 16))
data = [{"input_ids": row, "labels": row} for row in rows]
arguments = TrainingArguments(
    output_dir=os.environ["REAL_PROGRAMS_RESULTS"] + "/trainer", per_device_train_batch_size=4, per_device_eval_batch_size=3,
    num_train_epochs=2, gradient_accumulation_steps=2, learning_rate=1e-2, eval_strategy="epoch", save_strategy="epoch",
    logging_steps=1, report_to=[], use_cpu=True, disable_tqdm=True, ddp_backend="gloo", seed=13,
)  # fmt: skip
trainer = Trainer(model, arguments, train_dataset=data, eval_dataset=data[:11], callbacks=[Note()])
result = trainer.train()
show("loss", result.training_loss)
for number, entry in enumerate(trainer.state.log_history):
    for key in ("loss", "grad_norm", "eval_loss"):
        if key in entry and RANK == 0:
            show(f"log {number}, {key}", entry[key])
show("predicted", trainer.predict(data[:7]).predictions)
show("parameters", dict(model.state_dict()))
