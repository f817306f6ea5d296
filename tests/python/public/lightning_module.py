"""A LightningModule whose training_step() calls its parts."""

import lightning.pytorch as lightning
import torch
from common import RANKS, STEPS, Steps
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

steps = Steps()


class Autoencoder(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 64))
        self.decoder = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 784))

    def training_step(self, batch, _index):
        values, = batch
        return nn.functional.mse_loss(self.decoder(self.encoder(values)), values)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def on_train_batch_end(self, *_):
        steps.end()


loader = DataLoader(TensorDataset(torch.randn(RANKS * STEPS * 256, 784)), batch_size=256)
trainer = lightning.Trainer(accelerator="cpu", devices=RANKS, strategy="ddp" if RANKS > 1 else "auto", max_epochs=1, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Autoencoder(), loader)
steps.report()
