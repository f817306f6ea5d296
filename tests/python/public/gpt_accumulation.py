"""A small GPT, trained with four micro-steps per step."""

import math

import torch
from common import IS_LAUNCHED, STEPS, Steps, wrapped
from torch import nn
from torch.nn import functional

WORDS, LENGTH, WIDTH, HEADS, LAYERS, MICRO_STEPS = 256, 64, 192, 4, 4, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)).bool())

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=2))
        scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])).masked_fill(~self.mask[:length, :length], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.before_mlp = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.ModuleList([Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words, targets=None):
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def batch():
    start = torch.randint(1000, (8, 1))
    words = (start + torch.arange(LENGTH + 1) * 7) % WORDS
    return words[:, :-1], words[:, 1:]


model = wrapped(Gpt())
decayed = [parameter for parameter in model.parameters() if parameter.dim() > 1]
other = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}], lr=1e-3)
steps = Steps()
x, y = batch()
for step in range(STEPS):
    for micro_step in range(MICRO_STEPS):
        if IS_LAUNCHED:
            model.require_backward_grad_sync = micro_step == MICRO_STEPS - 1
        logits, loss = model(x, y)
        loss = loss / MICRO_STEPS
        x, y = batch()
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    steps.end()
steps.report()
