"""PyTorch-Ignite: idist.Parallel, auto_model, auto_dataloader, an Engine with metrics of all ranks, and its collectives."""

from results import RANK, note_groups, show

import ignite.distributed as idist
import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, EpochMetric, Loss, RunningAverage
from torch.utils.data import TensorDataset


def training(local_rank):
    torch.manual_seed(5)
    inputs = torch.randn(40, 6)
    data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    loader = idist.auto_dataloader(data, batch_size=8, shuffle=True)
    model = idist.auto_model(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.5))
    loss_of = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, optimizer, loss_of)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running")
    metrics = {
        "accuracy": Accuracy(),
        "loss": Loss(loss_of),
        "gathered": EpochMetric(lambda predictions, target: float((predictions.argmax(1) == target).sum())),
    }
    evaluator = create_supervised_evaluator(model, metrics)

    @trainer.on(Events.EPOCH_STARTED)
    def set_epoch(engine):
        loader.sampler.set_epoch(engine.state.epoch)

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(loader)
        show(f"epoch {engine.state.epoch}", [evaluator.state.metrics, engine.state.metrics["running"]])

    trainer.run(loader, max_epochs=2)
    show("parameters", model)
    show("info", [idist.get_rank(), idist.get_world_size(), idist.get_nproc_per_node(), local_rank])
    show("all_reduce", [idist.all_reduce(RANK + 1.5), idist.all_reduce(torch.tensor([RANK, 4]), op="MAX")])
    show(
        "all_gather",
        [idist.all_gather(torch.full((1, 2), RANK)), idist.all_gather(f"rank {RANK}"), idist.all_gather({"a": RANK})],
    )
    show("uneven", idist.all_gather_tensors_with_shapes(torch.full((RANK + 1,), RANK), [[1], [2]]))
    show("broadcast", [idist.broadcast(torch.full((2,), 1.0 + RANK), src=1), idist.broadcast("a" * (RANK + 1), src=1)])
    group = idist.new_group([0, 1])
    show("in a group", idist.all_reduce(torch.tensor(2.0), group=group))
    idist.barrier()
    note_groups()


with idist.Parallel(backend="gloo") as parallel:
    parallel.run(training)
