"""MMEngine's Runner: a model under MMDistributedDataParallel trains and is validated with a metric over all ranks."""

from results import note_groups, show

import os

import torch
import torch.distributed as dist
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner


class Model(BaseModel):
    """A linear classifier."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 2)

    def forward(self, inputs, labels, mode):
        output = self.layer(inputs)
        if mode == "loss":
            return {"loss": torch.nn.functional.cross_entropy(output, labels)}
        return output, labels


class Right(BaseMetric):
    """How many are right."""

    def process(self, data_batch, data_samples):
        output, labels = data_samples
        self.results.append((int((output.argmax(1) == labels).sum()), len(labels)))

    def compute_metrics(self, results):
        return {"right": sum(right for right, _ in results), "of": sum(count for _, count in results)}


class Note(Hook):
    """Shows what comes of each iteration."""

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        note_groups()
        show(f"iteration {runner.iter}", outputs["loss"])

    def after_val_epoch(self, runner, metrics=None):
        show("validated", metrics)


dist.init_process_group("gloo")  # the runner would ask for CUDA
inputs = torch.randn(48, 6, generator=torch.Generator().manual_seed(2))
data = [(row, int(row[0] > 0)) for row in inputs]
loader = {"batch_size": 4, "num_workers": 0, "sampler": {"type": "DefaultSampler", "shuffle": True}, "dataset": data}
loader["collate_fn"] = {"type": "default_collate"}
runner = Runner(
    model=Model(), work_dir=os.environ["REAL_PROGRAMS_RESULTS"], train_dataloader=loader,
    train_cfg={"by_epoch": True, "max_epochs": 2, "val_interval": 1}, val_cfg={}, launcher="pytorch",
    optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}}, val_dataloader=loader | {"sampler": {"type": "DefaultSampler", "shuffle": False}},
    val_evaluator={"type": Right}, custom_hooks=[Note()], env_cfg={"dist_cfg": {"backend": "gloo"}}, randomness={"seed": 4},
    log_level="ERROR", cfg={"model_wrapper_cfg": {"type": "MMDistributedDataParallel", "device_ids": None}},
)  # fmt: skip
runner.train()
show("parameters", {name: value.cpu() for name, value in runner.model.state_dict().items()})
