"""torcheval: sync_and_compute, a collection of metrics, and synchronised state dicts."""

from results import RANK, show

import torch
import torch.distributed as dist
from torcheval.metrics import BinaryAUPRC, Mean, MulticlassAccuracy
from torcheval.metrics.toolkit import get_synced_state_dict_collection, sync_and_compute, sync_and_compute_collection

dist.init_process_group("gloo")
generator = torch.Generator().manual_seed(RANK)
metrics = {"accuracy": MulticlassAccuracy(), "mean": Mean(), "AUPRC": BinaryAUPRC()}
for _ in range(2 + RANK):
    predictions, target = torch.randn(16, 4, generator=generator), torch.randint(0, 4, (16,), generator=generator)
    metrics["accuracy"].update(predictions, target)
    metrics["mean"].update(predictions.mean(), weight=2.0)
    metrics["AUPRC"].update(predictions[:, 0].sigmoid(), (target == 0).long())
for name, metric in metrics.items():
    show(name, sync_and_compute(metric))
show("collection", sync_and_compute_collection(metrics))
show("states", get_synced_state_dict_collection(metrics))
dist.destroy_process_group()
