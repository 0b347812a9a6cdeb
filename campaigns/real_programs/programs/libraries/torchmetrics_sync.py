"""torchmetrics: metrics of several classes accumulate on each rank and are synchronised by compute, on step too."""

from results import RANK, show

import torch
import torch.distributed as dist
import torchmetrics
from torchmetrics.classification import BinaryAUROC, MulticlassAccuracy, MulticlassConfusionMatrix

dist.init_process_group("gloo")
metrics = torchmetrics.MetricCollection(
    {
        "accuracy": MulticlassAccuracy(5, average="macro"),
        "confusion": MulticlassConfusionMatrix(5),
        "mean": torchmetrics.MeanMetric(),
        "stepwise": MulticlassAccuracy(5, dist_sync_on_step=True),
    },
    compute_groups=False,
)
auroc, values, spearman = BinaryAUROC(), torchmetrics.CatMetric(), torchmetrics.SpearmanCorrCoef()
generator = torch.Generator().manual_seed(60 + RANK)
for step in range(3 + RANK):
    predictions, target = torch.randn(32, 5, generator=generator), torch.randint(0, 5, (32,), generator=generator)
    for name in ("accuracy", "confusion"):
        metrics[name].update(predictions, target)
    metrics["mean"].update(predictions.mean())
    if step < 3:  # a collective
        show(f"step {step}", metrics["stepwise"](predictions, target))
    auroc.update(torch.rand(17, generator=generator), torch.randint(0, 2, (17,), generator=generator))
    values.update(torch.rand(RANK + step + 1, generator=generator))
    spearman.update(predictions[:, 0], predictions[:, 1] + predictions[:, 0])
for name, metric in metrics.items():
    show(name, metric.compute())
show("AUROC of uneven lists", auroc.compute())
show("values of uneven lengths", values.compute())
show("Spearman", spearman.compute())
own = MulticlassAccuracy(5, sync_on_compute=False)
own.update(predictions, target)
show("not synchronised", own.compute())
with own.sync_context():
    show("in its context", own.tp)
dist.destroy_process_group()
