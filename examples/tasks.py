"""Models that train.py trains on real data, with their data and optimizers: a class each, and a row of TASKS.

A task has make(), which makes the model; loss(model, generator), the loss of a random batch; test(model), the result of a test in
words; and optimizer(weights). `rates` has learning rates that work, by optimizer; the first is the default."""

import argparse
import collections
import gzip
import pathlib
import re
import sys

import numpy
import torch
from torch.nn import functional

FOLDER = pathlib.Path(__file__).resolve().parent
LICENCES = pathlib.Path("/usr/share/common-licenses")


class Task:
    """Common base of all tasks, with their optimizers."""

    rates = {"sgd": 0.05, "adamw": 1e-3}

    def __init__(self, options: argparse.Namespace):
        self._optimizer = options.optimizer or next(iter(self.rates))

    def optimizer(self, weights) -> torch.optim.Optimizer:
        if self._optimizer == "sgd":
            return torch.optim.SGD(weights, lr=self.rates["sgd"], momentum=0.9)
        return torch.optim.AdamW(weights, lr=self.rates["adamw"])


class Digits(Task):
    """Classification of 8 x 8 images; the last 297 are for testing."""

    tested = 297

    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        with gzip.open(FOLDER / "data/digits.csv.gz", "rt") as file:
            table = numpy.loadtxt(file, delimiter=",", dtype=numpy.float32)
        order = numpy.random.RandomState(0).permutation(len(table))
        self._images = torch.from_numpy(table[order, :-1].reshape(-1, 1, 8, 8) / 16)
        self._labels = torch.from_numpy(table[order, -1].astype(numpy.int64))
        self.batch = options.batch or 64

    def make(self) -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Conv2d(1, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(64, 128, 3, padding=1), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(2048, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))

    def loss(self, model: torch.nn.Module, generator: torch.Generator) -> torch.Tensor:
        chosen = torch.randint(len(self._labels) - self.tested, (self.batch,), generator=generator)
        return functional.cross_entropy(model(self._images[chosen]), self._labels[chosen])

    @torch.no_grad()
    def test(self, model: torch.nn.Module) -> str:
        right = model(self._images[-self.tested:]).argmax(dim=1) == self._labels[-self.tested:]
        return f"accuracy {right.float().mean().item() * 100:.1f} %"


class Block(torch.nn.Module):
    """Layer of a transformer, with normalisation before each part."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention, self.projection = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        batch, length, width = values.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                             for part in self.attention(self.norm1(values)).chunk(3, dim=-1))
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        mixed = (scores.softmax(dim=-1) @ value).transpose(1, 2).reshape(batch, length, width)
        values = values + self.projection(mixed)
        return values + self.narrow(functional.gelu(self.wide(self.norm2(values))))


class Transformer(torch.nn.Module):
    """Transformer that predicts each next character of a text."""

    def __init__(self, characters: int, length: int, width: int = 384, layers: int = 6, heads: int = 6):
        super().__init__()
        self.characters, self.places = torch.nn.Embedding(characters, width), torch.nn.Embedding(length, width)
        self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, characters)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        values = self.characters(text) + self.places(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(values)))


class Text(Task):
    """Prediction of a text's characters by a transformer; the last tenth is for testing."""

    length = 64
    rates = {"adamw": 3e-4, "sgd": 0.05}

    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        files = options.text or sorted(path for path in LICENCES.iterdir() if not path.is_symlink())
        content = "".join(pathlib.Path(file).read_text(errors="replace") for file in files)
        if len(content) < 20 * self.length:
            sys.exit(f"train.py: the text has {len(content)} characters: give more with --text")
        self._letters = sorted(set(content))
        numbers = {letter: number for number, letter in enumerate(self._letters)}
        self._text = torch.tensor([numbers[letter] for letter in content])
        self._trained = len(content) * 9 // 10
        self.batch = options.batch or 8

    def make(self) -> torch.nn.Module:
        return Transformer(len(self._letters), self.length)

    def _loss(self, model: torch.nn.Module, begins: torch.Tensor) -> torch.Tensor:
        text = torch.stack([self._text[begin:begin + self.length + 1] for begin in begins])
        return functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())

    def loss(self, model: torch.nn.Module, generator: torch.Generator) -> torch.Tensor:
        return self._loss(model, torch.randint(self._trained - self.length - 1, (self.batch,), generator=generator))

    @torch.no_grad()
    def test(self, model: torch.nn.Module) -> str:
        begins = torch.arange(self._trained, len(self._text) - self.length - 1, 4 * self.length)[:64]
        return f"loss {self._loss(model, begins).item():.3f} on text that it has not seen"


class Residual(Digits):
    """Classification of the digits by residual blocks with batch normalisation."""

    rates = {"sgd": 0.005, "adamw": 3e-4}

    class Layer(torch.nn.Module):
        """Residual block of two convolutions."""

        def __init__(self, channels: int):
            super().__init__()
            self.body = torch.nn.Sequential(
                torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False), torch.nn.BatchNorm2d(channels), torch.nn.ReLU(),
                torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False), torch.nn.BatchNorm2d(channels))

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return functional.relu(values + self.body(values))

    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        self.batch = options.batch or 16

    def make(self) -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Conv2d(1, 64, 3, stride=2, padding=1), torch.nn.ReLU(), self.Layer(64),
            torch.nn.Conv2d(64, 128, 3, stride=2, padding=1), torch.nn.ReLU(), self.Layer(128),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 10))


class Autoencoder(Digits):
    """Reconstruction of the digits from 16 numbers each."""

    rates = {"adamw": 1e-3, "sgd": 1.0}

    def make(self) -> torch.nn.Module:
        widths = (64, 512, 256, 16, 256, 512, 64)
        layers = [layer for one, other in zip(widths, widths[1:]) for layer in (torch.nn.Linear(one, other), torch.nn.ReLU())]
        return torch.nn.Sequential(torch.nn.Flatten(), *layers[:-1])

    def _error(self, model: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        return functional.mse_loss(model(images), images.flatten(1))

    def loss(self, model: torch.nn.Module, generator: torch.Generator) -> torch.Tensor:
        return self._error(model, self._images[torch.randint(len(self._images) - self.tested, (self.batch,), generator=generator)])

    @torch.no_grad()
    def test(self, model: torch.nn.Module) -> str:
        return f"squared error {self._error(model, self._images[-self.tested:]).item():.4f} of images that it has not seen"


class Tabular(Task):
    """Regression from 40 numbers, on synthetic rows: sums of sines of random mixtures, with noise."""

    rates = {"sgd": 0.02, "adamw": 1e-3}

    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        source = torch.Generator().manual_seed(0)
        self._rows = torch.randn(8192, 40, generator=source)
        mixed = self._rows @ torch.randn(40, 8, generator=source) / 40 ** 0.5
        self._values = mixed.sin().sum(dim=1) + mixed[:, 0] * mixed[:, 1] + 0.1 * torch.randn(8192, generator=source)
        self.batch = options.batch or 128

    def make(self) -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Linear(40, 512), torch.nn.ReLU(), torch.nn.Linear(512, 384), torch.nn.ReLU(), torch.nn.Linear(384, 128),
            torch.nn.ReLU(), torch.nn.Linear(128, 1))

    def loss(self, model: torch.nn.Module, generator: torch.Generator) -> torch.Tensor:
        chosen = torch.randint(len(self._rows) - 1024, (self.batch,), generator=generator)
        return functional.mse_loss(model(self._rows[chosen])[:, 0], self._values[chosen])

    @torch.no_grad()
    def test(self, model: torch.nn.Module) -> str:
        return f"squared error {functional.mse_loss(model(self._rows[-1024:])[:, 0], self._values[-1024:]).item():.3f}"


class Gpt(Text):
    """Prediction of a text's characters by a transformer of 0.45 million parameters."""

    length = 32
    rates = {"adamw": 2e-3, "sgd": 0.1}

    def make(self) -> torch.nn.Module:
        return Transformer(len(self._letters), self.length, width=96, layers=4, heads=4)


class Recurrent(torch.nn.Module):
    """LSTM that predicts each next character of a text."""

    def __init__(self, characters: int, width: int = 192):
        super().__init__()
        self.characters = torch.nn.Embedding(characters, width)
        self.memory, self.head = torch.nn.LSTM(width, width, batch_first=True), torch.nn.Linear(width, characters)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.head(self.memory(self.characters(text))[0])


class Lstm(Text):
    """Prediction of a text's characters by an LSTM."""

    length = 32
    rates = {"adamw": 5e-3, "sgd": 1.0}

    def make(self) -> torch.nn.Module:
        return Recurrent(len(self._letters))


class Words(Text):
    """Prediction of a word from the two on either side, by embeddings of the 2000 most frequent words."""

    rates = {"adamw": 5e-3, "sgd": 1.0}
    words = 2000

    def __init__(self, options: argparse.Namespace):
        super().__init__(options)
        text = re.findall(r"[a-z]+", "".join(self._letters[one] for one in self._text.tolist()).lower())
        frequent = [word for word, _ in collections.Counter(text).most_common(self.words - 1)]
        kept = {word: number for number, word in enumerate(frequent, 1)}
        self._text = torch.tensor([kept.get(word, 0) for word in text])
        self._trained = len(text) * 9 // 10
        self.length = 4
        self.batch = options.batch or 256

    def make(self) -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Embedding(self.words, 64), torch.nn.Flatten(), torch.nn.Linear(256, 128), torch.nn.ReLU(),
            torch.nn.Linear(128, self.words))

    def _loss(self, model: torch.nn.Module, begins: torch.Tensor) -> torch.Tensor:
        text = self._text[begins[:, None] + torch.arange(5)]
        return functional.cross_entropy(model(text[:, [0, 1, 3, 4]]), text[:, 2])


TASKS = {"digits": Digits, "text": Text, "residual": Residual, "autoencoder": Autoencoder, "tabular": Tabular, "gpt": Gpt,
         "lstm": Lstm, "words": Words}
