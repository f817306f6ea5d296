"""Program that uses the whole public interface; mypy checks it."""
import pathlib

import hipress
import torch
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel


def step(ddp: torch.nn.Module) -> None:
    ddp(torch.ones(1)).sum().backward()


def show(progress: hipress.Progress) -> None:
    print(progress.stage, progress.share, progress.best_s)


def ask() -> None:
    plan: hipress.Plan = hipress.plan("vgg19", nnodes=4, output=pathlib.Path("plan.yaml"), explain=True, progress=show)
    simulation: hipress.Simulation = hipress.simulate("vgg19", plan="plan.yaml", steady=4)
    sweep: hipress.Sweep = hipress.sweep({"model": "vgg19", "nodes": [2, 4]}, progress=show)
    trace: hipress.Trace = hipress.import_trace("trace.json", output="model.yaml")
    replay: hipress.Replay = hipress.replay("vgg19", plan="plan.yaml", nnodes=2, iterations=2, progress=show)
    profile: hipress.Profile = hipress.profile(algorithm=["onebit"], quick=True, output=pathlib.Path("profile.yaml"))
    print(replay.verified, replay.measured_iteration_s["median"], profile.codecs["onebit"], profile.records())
    plan.save_html("report.html")
    results: list[hipress.Result] = [plan, simulation, sweep, trace, replay, profile]
    print(results, plan.verdict, simulation.iteration_s, len(sweep), [row["iteration_s"] for row in sweep], trace.steps)
    print(hipress.answer({"request": "schema"}), plan.to_frame(), sweep.plot("nodes").savefig("rows.png"))
    try:
        hipress.plan("vgg19", nnodes=0)
    except hipress.InputError as error:
        print(error.file, error.line, error.field, error.remedy)
    except hipress.UnmetError as error:
        print(error.result)
    except (hipress.EnvironmentFailure, hipress.Interrupted, hipress.HipressError) as error:
        print(error.kind, hipress.HipressWarning)


def watch(hook: hipress.Hook) -> None:
    held_back: dict[str, float] = hook.statistics()
    print(held_back)


def try_plans(loss: torch.Tensor) -> None:
    hipress.pilot.report(loss)
    hipress.pilot.report(0.5, held_out=True)
    document: dict[str, object] = hipress.pilot(["train.py", "--seed", "{seed}"], ranks=2, steps=100, plans=["fp16"], seeds=2,
                                                output=pathlib.Path("pilot.yaml"), jobs=2, say=print)
    print(document)


def outer(weights: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(weights, lr=0.7)


def train_locally(model: torch.nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hipress.LocalUpdates(model, optimizer, outer, "plan.yaml", schedule="local(steps=4)", alpha=0.5, algorithm="onebit",
                              topology="ring", timeout=3.0, seed=1, rendezvous="file:///x", network="lo",
                              process_group=None, log_every=100) as local:
        weights: dict[str, torch.nn.Parameter] = local.outer_weights()
        local.load_state_dict(local.state_dict())
        failure: hipress.Error | None = local.failure
        print(weights, failure, local.outer_optimizer.param_groups)
        local.finish()
    local.close()


def main() -> None:
    ask()
    with hipress.capture(torch.nn.Linear(1, 1), "model.yaml", optimizer=None, warmup=1) as capture:
        pass
    text: str = capture.text()
    other = hipress.Capture(torch.nn.Linear(1, 1), None)
    ddp = DistributedDataParallel(torch.nn.Linear(1, 1))
    hook: hipress.Hook = hipress.attach(ddp, "plan.yaml", algorithm="onebit", topology="ring", model="model.yaml", timeout=3.0,
                                        seed=1, rendezvous="file:///x", network="lo", pilot="pilot.yaml", log_every=100)
    state = hook.state_dict()
    hook.load_state_dict(state)
    hook.discard()
    failure: hipress.Error | None = hook.failure
    found: hipress.Verification = hipress.verify(ddp, lambda: step(ddp), seed=2)
    for row in found.rows:
        print(row.name, row.elements, row.difference, row.relative, row.equal, row.agreed, found.agreed and found.equal)
    hook.close()
    either: hipress.Hook | hipress.ShardedHook = hipress.attach(torch.nn.Linear(1, 1), "plan.yaml", seed=1)
    if isinstance(either, hipress.ShardedHook):
        either.load_state_dict(either.state_dict())
        either.discard()
        print(either.failure)
    either.close()
    train_locally(torch.nn.Linear(1, 1))
    pair = hipress.Hook(ddp, plan="none")

    def counted(state: hipress.Hook, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        return hipress.synchronise(state, bucket)

    ddp.register_comm_hook(pair, counted)
    print(text, other, failure, hipress.__version__, hipress.library_path().name, hipress.Gradient("a", (2, 3)).elements)
    try:
        print(hipress.attach(ddp, algorithms="int8block", profile="profile.yaml").report())
    except hipress.RankLost as error:
        print(error.rank + 1)
    except (hipress.InvalidRequest, hipress.LibraryError) as refused:
        print(refused)


main()
