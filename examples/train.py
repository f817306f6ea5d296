#!/usr/bin/env python3
"""Trains a model on real data between ranks that average gradients as you say, and writes the loss by step and second.

    examples/train.py --ranks 2 --model digits --average hipress --plan onebit --log onebit.csv
    torchrun --nproc_per_node 2 examples/train.py --model text --average ddp --log ddp.csv
    scripts/plot_losses.py losses.png *.csv

Models: `digits` is a convolutional network that classifies the 1797 handwritten digits in examples/data; `text` is a
character-level transformer of 10.8 million parameters that learns the licences in /usr/share/common-licenses, which every
Debian has (--text takes other files). `--average`: ddp is plain DistributedDataParallel, fp16 and powersgd are PyTorch's hooks
(--rank, batched as --batched says), hipress attaches --plan. With none each rank trains a model of its own: to time the
computation of ranks that share a machine. With --local, ranks train by local updates instead, which --plan compresses:

    examples/train.py --ranks 2 --model text --local 'local(steps=20, fragments=4, overlap=1)' --plan int4block
"""

import argparse
import gzip
import os
import pathlib
import socket
import sys
import time

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

FOLDER = pathlib.Path(__file__).resolve().parent
LICENCES = pathlib.Path("/usr/share/common-licenses")


class Digits:
    """Classifies 8 x 8 images; the last 297 are for testing."""

    tested = 297

    def __init__(self, options: argparse.Namespace):
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

    def optimizer(self, weights) -> torch.optim.Optimizer:
        return torch.optim.SGD(weights, lr=0.05, momentum=0.9)


class Block(torch.nn.Module):
    """A transformer's layer, normalised first."""

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
    """Predicts each next character of a text."""

    def __init__(self, characters: int, length: int, width: int = 384, layers: int = 6, heads: int = 6):
        super().__init__()
        self.characters, self.places = torch.nn.Embedding(characters, width), torch.nn.Embedding(length, width)
        self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, characters)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        values = self.characters(text) + self.places(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(values)))


class Text:
    """Learns a text by character; its last tenth is for testing."""

    length = 64

    def __init__(self, options: argparse.Namespace):
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

    def optimizer(self, weights) -> torch.optim.Optimizer:
        return torch.optim.AdamW(weights, lr=3e-4)


TASKS = {"digits": Digits, "text": Text}


def average(ddp: DistributedDataParallel, options: argparse.Namespace) -> None:
    """Registers what averages the gradients."""
    if options.average == "fp16":
        ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    elif options.average == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=options.rank, start_powerSGD_iter=2,
                                            batch_tensors_with_same_shape=options.batched)

        def one_bucket_at_a_time(state, bucket):
            # Over gloo, several buckets under way meet each other's messages.
            future = powerSGD_hook.powerSGD_hook(state, bucket)
            future.wait()
            return future
        ddp.register_comm_hook(state, one_bucket_at_a_time)
    elif options.average == "hipress":
        import hipress
        hipress.attach(ddp, options.plan, topology=options.topology, model=options.timings, network=options.interface)


def local_updates(model: torch.nn.Module, optimizer: torch.optim.Optimizer, options: argparse.Namespace):
    """What averages the ranks' weights now and then."""
    import hipress
    return hipress.LocalUpdates(model, optimizer, plan=options.plan, schedule=options.local, alpha=options.alpha,
                                topology=options.topology, network=options.interface)


def train(options: argparse.Namespace) -> None:
    """As one rank of the process group."""
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    task = TASKS[options.model](options)
    model = task.make()
    if options.average != "none" and not options.local:
        model = DistributedDataParallel(model, bucket_cap_mb=options.bucket_mb or (1 if options.average == "hipress" else 25))
        average(model, options)
    optimizer = task.optimizer(model.parameters())
    local = local_updates(model, optimizer, options) if options.local else None
    generator = torch.Generator().manual_seed(1000 * options.seed + rank)
    rows = []
    dist.barrier()
    begin = time.perf_counter()
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = task.loss(model, generator)
        loss.backward()
        optimizer.step()
        rows.append((step, time.perf_counter() - begin, loss.item()))
    if local is not None:
        local.finish()
    if rank == 0:
        seconds = (rows[-1][1] - rows[0][1]) / max(1, len(rows) - 1)
        print(f"{options.model}, {dist.get_world_size()} ranks, {describe(options)}: {seconds * 1e3:.1f} ms a step, training loss "
              f"{numpy.mean([loss for *_, loss in rows[-20:]]):.3f}, {task.test(getattr(model, 'module', model))}")
        if options.log:
            with open(options.log, "w", encoding="utf-8") as file:
                file.write("average,step,seconds,loss\n")
                file.writelines(f"\"{describe(options)}\",{step},{seconds:.6f},{loss:.6f}\n" for step, seconds, loss in rows)
    dist.barrier()


def describe(options: argparse.Namespace) -> str:
    if options.local:
        return f"{options.local} {pathlib.Path(options.plan).name}"
    if options.average == "hipress":
        return f"hipress {pathlib.Path(options.plan).name}"
    return f"powersgd rank {options.rank}" if options.average == "powersgd" else options.average


def as_rank(rank: int, port: int, options: argparse.Namespace) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=options.ranks)
    train(options)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(TASKS), default="digits")
    parser.add_argument("--average", choices=["ddp", "fp16", "powersgd", "hipress", "none"], default="ddp")
    parser.add_argument("--local", metavar="SCHEDULE", help="train by local updates, as in local(steps=20, fragments=4, overlap=1)")
    parser.add_argument("--alpha", type=float, help="of --local: a rank's share of its own weights (default: 0, overlapped 0.5)")
    parser.add_argument("--plan", default="none", help="of hipress and --local: a plan file, none, all or an algorithm "
                        "(default: %(default)s)")
    parser.add_argument("--topology", help="of hipress and --local: ring, ps, allreduce or allgather (default: the plan file's, or "
                        "ring)")
    parser.add_argument("--timings", metavar="FILE", help="of hipress: the captured model that the plan was made of")
    parser.add_argument("--rendezvous", metavar="URL", help="file:///folder where the ranks of a launcher meet, instead of MASTER_ADDR")
    parser.add_argument("--interface", help="of hipress and --local: network interface or address to use")
    parser.add_argument("--rank", type=int, default=4, help="of powersgd (default: %(default)s)")
    parser.add_argument("--batched", action="store_true", help="powersgd: tensors of one shape are one")
    parser.add_argument("--ranks", type=int, default=2, help="to start here, unless torchrun has (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=0, help="samples of a rank's step (default: 64 digits, 8 texts)")
    parser.add_argument("--bucket-mb", type=float, help="DDP's buckets (default: 25; with hipress 1, so that gradients go when they are ready)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--text", nargs="+", help="files to learn instead of the licences")
    parser.add_argument("--log", help="CSV: the loss of rank 0 by step and second")
    options = parser.parse_args()
    if options.steps < 1 or options.ranks < 1:
        parser.error("--steps and --ranks must be at least 1")
    return options


def main() -> None:
    options = parse_arguments()
    if "RANK" in os.environ:  # a launcher's, such as torchrun's
        meeting = {} if options.rendezvous is None else {
            "init_method": f"{options.rendezvous}/group", "rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
        dist.init_process_group("gloo", **meeting)
        train(options)
    elif options.ranks == 1:
        as_rank(0, free_port(), options)
    else:
        torch.multiprocessing.spawn(as_rank, (free_port(), options), options.ranks)


if __name__ == "__main__":
    main()
