"""A model with an EmbeddingBag beside a GRU, which returns its output in a dict."""

import torch
from common import STEPS, Steps, wrapped
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(5000, 64)
        self.words = nn.Embedding(5000, 64)
        self.recurrent = nn.GRU(64, 128, num_layers=2, batch_first=True)
        self.out = nn.Linear(64 + 128, 4)

    def forward(self, text, offsets, sequence):
        _, last = self.recurrent(self.words(sequence))
        return {"logits": self.out(torch.cat([self.bag(text, offsets), last[-1]], dim=1))}


model = wrapped(Classifier())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = Steps()
for _ in range(STEPS):
    text, offsets = torch.randint(5000, (32 * 20,)), torch.arange(0, 32 * 20, 20)
    sequence, labels = torch.randint(5000, (32, 30)), torch.randint(4, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(text, offsets, sequence=sequence)["logits"], labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    steps.end()
steps.report()
