"""fastai: Learner.distrib_ctx on tabular data of all ranks, with its synchronised metrics."""

from results import note_groups, show

import os

import fastai.distributed  # noqa: F401  # adds distrib_ctx
import torch
from fastai.basics import DataLoaders, Learner, accuracy
from fastai.callback.core import Callback
from fastai.data.load import DataLoader
from fastai.distributed import rank_distrib

os.environ["ACCELERATE_USE_CPU"] = "true"


class Note(Callback):
    """Keeps the groups that the learner uses."""

    def after_step(self):
        note_groups()


torch.manual_seed(3)
inputs = torch.randn(64, 6)
rows = [(row, label) for row, label in zip(inputs, (inputs[:, 0] > 0).long(), strict=True)]
loaders = DataLoaders(DataLoader(rows, bs=8, shuffle=True), DataLoader(rows[:20], bs=8), device=torch.device("cpu"))
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
learner = Learner(loaders, model, loss_func=torch.nn.CrossEntropyLoss(), metrics=accuracy, cbs=[Note()])
with learner.distrib_ctx(sync_bn=False, in_notebook=False):
    with learner.no_bar(), learner.no_logging():
        learner.fit(2, lr=1e-2)
    show("losses", learner.recorder.values)
    show("parameters", model)
show("rank", rank_distrib())
