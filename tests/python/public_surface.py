"""Uses all of the public surface."""
import hipress
import torch
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel


def step(ddp: torch.nn.Module) -> None:
    ddp(torch.ones(1)).sum().backward()


def main() -> None:
    with hipress.capture(torch.nn.Linear(1, 1), "model.yaml", optimizer=None, warmup=1) as capture:
        pass
    text: str = capture.text()
    other = hipress.Capture(torch.nn.Linear(1, 1), None)
    ddp = DistributedDataParallel(torch.nn.Linear(1, 1))
    hook: hipress.Hook = hipress.attach(ddp, "plan.yaml", algorithm="onebit", topology="ring", model="model.yaml", timeout=3.0,
                                        seed=1, rendezvous="file:///x", network="lo")
    state = hook.state_dict()
    hook.load_state_dict(state)
    hook.discard()
    failure: hipress.Error | None = hook.failure
    found: hipress.Verification = hipress.verify(ddp, lambda: step(ddp), seed=2)
    for row in found.rows:
        print(row.name, row.elements, row.difference, row.relative, row.equal, row.agreed, found.agreed and found.equal)
    hook.close()
    pair = hipress.Hook(ddp, plan="none")

    def counted(state: hipress.Hook, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        return hipress.synchronise(state, bucket)

    ddp.register_comm_hook(pair, counted)
    print(text, other, failure, hipress.__version__, hipress.library_path().name, hipress.Gradient("a", (2, 3)).elements)
    try:
        hipress.attach(ddp)
    except hipress.RankLost as error:
        print(error.rank + 1)
    except (hipress.InvalidRequest, hipress.LibraryError) as refused:
        print(refused)


main()
