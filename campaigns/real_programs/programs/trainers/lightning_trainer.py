"""Lightning's Trainer with strategy="ddp": training, validation, synchronised logging, SyncBatchNorm off, a distributed test and predict."""

from results import note_groups, show

import os

import lightning
import torch
import torchmetrics
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    """A classifier that logs over all ranks."""

    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(3)

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])
        self.log("train_loss", loss, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, _):
        output = self.network(batch[0])
        self.accuracy(output, batch[1])
        self.log("accuracy", self.accuracy, on_epoch=True)
        self.log("val_loss", torch.nn.functional.cross_entropy(output, batch[1]), sync_dist=True)

    test_step = validation_step

    def predict_step(self, batch, _):
        return self.all_gather(self.network(batch[0]).argmax(1))

    def on_train_epoch_end(self):
        note_groups()
        show(f"epoch {self.current_epoch}", dict(self.trainer.callback_metrics))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


lightning.seed_everything(11, verbose=False)
inputs = torch.randn(64, 8)
data = TensorDataset(inputs, inputs[:, :3].argmax(1))
loader = DataLoader(data, batch_size=8, shuffle=True)
plain = DataLoader(data, batch_size=8)
folder = os.environ["REAL_PROGRAMS_RESULTS"]
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, default_root_dir=folder, accumulate_grad_batches=2,
    gradient_clip_val=1.0, enable_progress_bar=False, enable_model_summary=False, logger=False,
    callbacks=[lightning.pytorch.callbacks.EarlyStopping("val_loss", patience=5)],
)  # fmt: skip
model = Model()
trainer.fit(model, loader, plain)
show("parameters", model.network)
show("tested", trainer.test(model, plain, verbose=False))
show("predicted", trainer.predict(model, plain))
