"""A Trainer class, with a DataLoader for each rank."""

import os
import tempfile

import torch
from common import IS_LAUNCHED, RANKS, STEPS, Steps, wrapped
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class MadeUp(Dataset):
    def __init__(self, size):
        self.rows = [(torch.rand(400), torch.rand(50)) for _ in range(size)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class Trainer:
    def __init__(self, model, loader, optimizer, snapshot):
        self.model, self.loader, self.optimizer, self.snapshot = wrapped(model), loader, optimizer, snapshot
        self.steps = Steps()

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()
        self.steps.end()

    def train(self, epochs):
        for epoch in range(epochs):
            if isinstance(self.loader.sampler, DistributedSampler):
                self.loader.sampler.set_epoch(epoch)
            for source, targets in self.loader:
                self._run_batch(source, targets)
            if int(os.environ.get("RANK", "0")) == 0:
                module = self.model.module if hasattr(self.model, "module") else self.model
                torch.save({"state": module.state_dict(), "epoch": epoch}, self.snapshot)


def main():
    if IS_LAUNCHED:
        torch.distributed.init_process_group("gloo")
    data = MadeUp(RANKS * (STEPS // 2 * 256 - 100))
    loader = DataLoader(data, batch_size=256, shuffle=not IS_LAUNCHED, sampler=DistributedSampler(data) if IS_LAUNCHED else None)
    model = torch.nn.Sequential(torch.nn.Linear(400, 800), torch.nn.ReLU(), torch.nn.Linear(800, 800), torch.nn.ReLU(),
                                torch.nn.Linear(800, 50))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(model, loader, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9), f"{folder}/snapshot.pt")
        trainer.train(2)
    trainer.steps.report()


if __name__ == "__main__":
    main()
