"""What ranks of the tests do: small models trained on made-up data."""

import os
import pathlib
import signal
import threading
import time

import torch
from torch.nn.parallel import DistributedDataParallel

import hipress


def model(width: int = 24) -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(20, width), torch.nn.Tanh(), torch.nn.Linear(width, 32), torch.nn.Tanh(),
                               torch.nn.Linear(32, 5))


def batch(rank: int, step: int) -> tuple:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(16, 20, generator=generator)
    return inputs, (inputs[:, :5] * 2).argmax(dim=1)


def step(ddp, optimizer, rank: int, number: int) -> float:
    inputs, labels = batch(rank, number)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(ddp(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(rank: int, ranks: int, plan: object, steps: int = 10, options: dict = {}, ddp_options: dict = {}) -> tuple:
    """Weights and losses; with plan None, of plain DDP."""
    ddp = DistributedDataParallel(model(), bucket_cap_mb=0.002, **ddp_options)
    attached = None if plan is None else hipress.attach(ddp, plan, **options)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    losses = [step(ddp, optimizer, rank, number) for number in range(steps)]
    weights = weights_of(ddp)
    if attached is not None:
        attached.close()
    return weights, losses


def weights_of(ddp) -> list:
    return [weight.detach().numpy().copy() for weight in ddp.module.parameters()]


def several_trainings(rank: int, ranks: int, plans: list, steps: int) -> list:
    return [train(rank, ranks, plan, steps) for plan in plans]


def one_step(rank: int, ranks: int, plan: str, folder: str) -> list:
    """Writes this rank's gradients for hipress-exec, in the hook's order, and returns their means by DDP and by the hook."""
    plain = DistributedDataParallel(model())
    inputs, labels = batch(rank, 0)
    with plain.no_sync():
        torch.nn.functional.cross_entropy(plain(inputs), labels).backward()
    own = [weight.grad.clone() for weight in plain.module.parameters()]
    mine = pathlib.Path(folder) / f"rank{rank}"
    mine.mkdir(parents=True)
    for index, gradient in enumerate(reversed(own)):
        gradient.numpy().tofile(mine / f"{index}.f32")
    means = []
    for chosen in (None, plan):
        ddp = DistributedDataParallel(model())
        if chosen is not None:
            attached = hipress.attach(ddp, chosen)
        torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
        means.append([weight.grad.numpy().copy() for weight in ddp.module.parameters()])
    attached.close()
    return means


def resumed(rank: int, ranks: int, plan: str) -> tuple:
    """Weights after six steps, and after three, a checkpoint, and three more in a new job's hook."""
    whole, _ = train(rank, ranks, plan, 6)
    ddp = DistributedDataParallel(model(), bucket_cap_mb=0.002)
    attached = hipress.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    for number in range(3):
        step(ddp, optimizer, rank, number)
    saved = {"model": ddp.state_dict(), "optimizer": optimizer.state_dict(), "hipress": attached.state_dict()}
    path = pathlib.Path(f"checkpoint{rank}.pt")
    torch.save(saved, path)
    attached.close()
    ddp = DistributedDataParallel(model(), bucket_cap_mb=0.002)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    attached = hipress.attach(ddp, plan)
    loaded = torch.load(path)
    path.unlink()
    ddp.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    attached.load_state_dict(loaded["hipress"])
    for number in range(3, 6):
        step(ddp, optimizer, rank, number)
    attached.close()
    return whole, weights_of(ddp)


def refused_states(rank: int, ranks: int) -> list:
    """What load_state_dict() says of states that are not this rank's."""
    ddp = DistributedDataParallel(model())
    attached = hipress.attach(ddp, "onebit")
    own = attached.state_dict()
    said = []
    for change in ({"ranks": 5}, {"fingerprint": "other"}, {"version": 99}):
        try:
            attached.load_state_dict({**own, **change} if rank == 0 else own)
            said.append("nothing")
        except ValueError as error:
            said.append(str(error))
    attached.load_state_dict(own)
    attached.close()
    return said


def killed(rank: int, ranks: int) -> tuple:
    """Rank 1 ends in the third step; what the others raise, its rank, and after how many seconds."""
    ddp = DistributedDataParallel(model())
    attached = hipress.attach(ddp, "onebit", timeout_s=5)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for number in range(2):
        step(ddp, optimizer, rank, number)
    if rank == 1:
        os._exit(9)
    begin = time.monotonic()
    try:
        step(ddp, optimizer, rank, 2)
    except Exception as error:
        seconds = time.monotonic() - begin
        lost = error if isinstance(error, hipress.RankLost) else error.__cause__
        attached.close()
        return str(error), getattr(lost, "rank", None), seconds, sorted(thread.name for thread in threading.enumerate())
    return "nothing was raised", None, 0.0, []


def interrupted(rank: int, ranks: int) -> str:
    """Rank 0 does not submit, and rank 1, which waits, is interrupted."""
    ddp = DistributedDataParallel(model())
    hipress.attach(ddp, "none")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    step(ddp, optimizer, rank, 0)
    if rank == 0:
        time.sleep(3)
        return "slept"
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        step(ddp, optimizer, rank, 1)
    except KeyboardInterrupt:
        return "interrupted"
    return "nothing was raised"


class Branches(torch.nn.Module):
    """Of two layers a step uses one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Linear(20, 5), torch.nn.Linear(20, 5)
        self.scale = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, inputs, second: bool):
        return (self.second if second else self.first)(inputs) * self.scale


def unused_parameters(rank: int, ranks: int) -> list:
    """Weights of plain DDP and of the hook; ranks use different branches."""
    found = []
    for plan in (None, "none"):
        ddp = DistributedDataParallel(Branches(), find_unused_parameters=True)
        if plan is not None:
            attached = hipress.attach(ddp, plan)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
        for number in range(4):
            inputs, labels = batch(rank, number)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(ddp(inputs, (number + rank) % 2 == 0), labels).backward()
            optimizer.step()
        found.append(weights_of(ddp))
    attached.close()
    return found


def accumulated(rank: int, ranks: int) -> list:
    """The same of two backward passes a step, the first without synchronisation."""
    found = []
    for plan in (None, "none"):
        ddp = DistributedDataParallel(model())
        if plan is not None:
            attached = hipress.attach(ddp, plan)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
        for number in range(3):
            optimizer.zero_grad()
            with ddp.no_sync():
                inputs, labels = batch(rank, 2 * number)
                torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
            inputs, labels = batch(rank, 2 * number + 1)
            torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
            optimizer.step()
        found.append(weights_of(ddp))
    attached.close()
    return found


def two_models(rank: int, ranks: int) -> list:
    """Two models in one process, as plain DDP and attached, with steps in turns."""
    found = []
    for plan in (None, "none"):
        ddps = [DistributedDataParallel(model(width)) for width in (24, 40)]
        attached = [hipress.attach(ddp, plan) for ddp in ddps] if plan is not None else []
        optimizers = [torch.optim.SGD(ddp.parameters(), lr=0.05) for ddp in ddps]
        for number in range(3):
            for ddp, optimizer in zip(ddps, optimizers):
                step(ddp, optimizer, rank, number)
        found.append([weight for ddp in ddps for weight in weights_of(ddp)])
        for one in attached:
            one.close()
    return found


def verified(rank: int, ranks: int, plan: str) -> tuple:
    ddp = DistributedDataParallel(model())
    attached = hipress.attach(ddp, plan)
    inputs, labels = batch(rank, 0)
    report = hipress.verify(ddp, lambda: torch.nn.functional.cross_entropy(ddp(inputs), labels).backward())
    attached.close()
    return [(row.name, row.elements, row.difference, row.same_bits) for row in report], str(report)


def refused(rank: int, ranks: int) -> list:
    """What attach() says of models and plans that it cannot take; rank 1's model alone is wrong in the last."""
    said = []
    wrong = [lambda: hipress.attach(model()), lambda: hipress.attach(DistributedDataParallel(model().double())),
             lambda: hipress.attach(DistributedDataParallel(model()), "no_such_algorithm"),
             lambda: hipress.verify(DistributedDataParallel(model()), lambda: None)]
    for attempt in wrong:
        try:
            attempt()
            said.append("nothing")
        except (TypeError, ValueError, hipress.HipressError) as error:
            said.append(f"{type(error).__name__}: {error}")
    return said
