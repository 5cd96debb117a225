"""After Lightning's "Lightning in 15 minutes": the autoencoder, on pictures that are made here."""
import argparse

import lightning as L
import torch
from torch import nn

from tocsin.lightning import TocsinCallback  # tocsin 1


class LitAutoEncoder(L.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.encoder = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 64))

    def training_step(self, batch, batch_idx):
        x = batch.view(batch.size(0), -1)
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
L.seed_everything(0)
loader = torch.utils.data.DataLoader(torch.rand(256, 8, 8), batch_size=16)
trainer = L.Trainer(max_epochs=args.epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                    enable_model_summary=False, callbacks=[TocsinCallback()])  # tocsin 2
trainer.fit(LitAutoEncoder(args.lr), loader)
