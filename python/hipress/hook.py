"""attach(): a communication hook of DistributedDataParallel that averages gradients as a plan says."""

import hashlib
import os
import pathlib
import tempfile
import typing
import weakref

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import job, native
from hipress.native import Gradient, RankLost

#: Of what Attached.state_dict() returns.
STATE_VERSION = 1


class Attached:
    """The hook of one model. state_dict() and load_state_dict() are for checkpoints, one per rank: codecs keep residuals, which
    differ between ranks."""

    def __init__(self, ddp: DistributedDataParallel, options: dict, interface: typing.Optional[str]):
        self.group = ddp.process_group
        self._options, self._interface = options, interface
        named = [(name, weight) for name, weight in ddp.module.named_parameters() if weight.requires_grad]
        named.reverse()  # about the order in which gradients become ready
        self._names = [name for name, _ in named]
        self._numbers = {id(weight): number for number, (_, weight) in enumerate(named)}
        self._weights = [weight for _, weight in named]  # so that their ids stay theirs
        self._gradients = []
        self._device = -1
        job.agree(self.group, self._describe(named))
        self._pending: list = []  #: (Work, gradient) of this step's buckets
        self._futures: list = []  #: (Future, buffer) of them
        #: Called with every bucket before its gradients are submitted; for verify().
        self.observer: typing.Optional[typing.Callable[[dist.GradBucket], None]] = None
        self._engine: typing.Optional[native.Engine] = None
        self._open()

    def _describe(self, named: list) -> str:
        """Sets gradients and device; returns what is wrong with them, or ""."""
        if not named:
            return "the model has no parameters that need gradients"
        devices = {weight.device for _, weight in named}
        if len(devices) > 1 or next(iter(devices)).type not in ("cpu", "cuda"):
            return f"the model's parameters are on {', '.join(sorted(map(str, devices)))}: they must be on the CPU or on one GPU"
        device = next(iter(devices))
        self._device = (device.index or 0) if device.type == "cuda" else -1
        try:
            for name, weight in named:
                # In memory of another order than its shape's a matrix is none.
                shape = tuple(weight.shape) if weight.is_contiguous() else (weight.numel(),)
                self._gradients.append(Gradient(name, shape, job.type_of(weight)))
        except ValueError as error:
            return f"parameter '{name}': {error}"
        return ""

    def _open(self, **state) -> None:
        self._engine = job.open_engine(self._gradients, self.group, self._interface, device=self._device,
                                       **self._options, **state)
        self._finalizer = weakref.finalize(self, native.Engine.close, self._engine)
        self._finalizer.atexit = False  # a process that ends, ends its connections

    # ------------------------------------------------------------------------------------------------------------ hook

    def __call__(self, bucket: dist.GradBucket) -> torch.futures.Future:
        on_device = self._device >= 0
        future = torch.futures.Future(devices=[torch.device("cuda", self._device)]) if on_device else torch.futures.Future()
        self._futures.append((future, bucket.buffer()))
        try:
            if self.observer is not None:
                self.observer(bucket)
            event = self._event() if on_device else None
            for weight, gradient in zip(bucket.parameters(), bucket.gradients()):
                work = self._engine.submit(self._numbers[id(weight)], gradient.data_ptr(), on_device=on_device,
                                           event=event.cuda_event if event else None, kept=(gradient, event))
                self._pending.append(work)
            if bucket.is_last():
                self._finish()
        except BaseException as error:
            self._fail(error)
            raise
        return future

    def name_of(self, weight: torch.nn.Parameter) -> str:
        return self._names[self._numbers[id(weight)]]

    def _event(self) -> "torch.cuda.Event":
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self._device))
        return event

    def _finish(self) -> None:
        """Waits for all of the step, and only then completes the Futures: one wake-up of Python for all of them."""
        pending, self._pending = self._pending, []
        for work in pending:
            work.wait()
        futures, self._futures = self._futures, []
        for future, buffer in futures:
            future.set_result(buffer)

    def _fail(self, error: BaseException) -> None:
        self._pending = []
        for future, _ in self._futures:
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
        self._futures = []
        if not isinstance(error, (RankLost, native.HipressError)):
            # Interrupted: others may wait for what was submitted, and closing would wait for them.
            self._finalizer.detach()
            self._engine.forget()

    # ------------------------------------------------------------------------------------------------------ checkpoints

    def _fingerprint(self) -> str:
        """Of what a state belongs to: names and shapes of gradients, the plan, the ranks."""
        plan = self._options.get("plan", "none")
        content = pathlib.Path(plan).read_bytes() if os.path.exists(plan) else plan.encode()
        digest = hashlib.sha256(content)
        for name in ("strategy", "algorithm", "seed"):
            digest.update(repr(self._options.get(name)).encode())
        for gradient in self._gradients:
            digest.update(repr((gradient.name, gradient.shape, gradient.type)).encode())
        return digest.hexdigest()

    def state_dict(self) -> dict:
        """What this rank's codecs keep between steps. Between steps only."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "state"
            self._engine.save_state(file)
            content = torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8)
        return {"version": STATE_VERSION, "rank": dist.get_rank(self.group), "ranks": dist.get_world_size(self.group),
                "iteration": self._engine.iteration(), "fingerprint": self._fingerprint(), "state": content}

    def load_state_dict(self, state: dict) -> None:
        """Goes on where state_dict() was called, with the same bits. All ranks call it together, each with its own. ValueError
        on all ranks, and nothing has changed, if one's is not this job's."""
        job.agree(self.group, self._complaint(state))
        self.close()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "state"
            file.write_bytes(state["state"].cpu().numpy().tobytes())
            self._open(state=str(file), iteration=state["iteration"])

    def _complaint(self, state: dict) -> str:
        missing = {"version", "rank", "ranks", "iteration", "fingerprint", "state"} - set(state)
        if missing:
            return f"this is no state of hipress: it lacks {', '.join(sorted(missing))}"
        if state["version"] != STATE_VERSION:
            return f"the state is of version {state['version']}, and this is {STATE_VERSION}"
        rank, ranks = dist.get_rank(self.group), dist.get_world_size(self.group)
        if (state["rank"], state["ranks"]) != (rank, ranks):
            return (f"the state is of rank {state['rank']} of {state['ranks']}, this is rank {rank} of {ranks}: each rank loads "
                    "its own; with another number of ranks, begin without it (residuals are lost once)")
        if state["fingerprint"] != self._fingerprint():
            return "the state is of other gradients, or of another plan, strategy, algorithm or seed: begin without it"
        return ""

    def close(self) -> None:
        """Leaves the job. All ranks; the model cannot be trained with its hook after that."""
        self._finalizer()


def attach(ddp: DistributedDataParallel, plan: typing.Union[str, os.PathLike] = "none", *, strategy: str = "ring",
           algorithm: str = "onebit", interface: typing.Optional[str] = None, timeout_s: float = 30,
           seed: int = 1) -> Attached:
    """Averages the gradients of `ddp` as `plan` says from now on. All ranks call it together, with the same arguments.

    `plan`: a plan file (hipress-plan), or none, all, or an algorithm's name, such as "powersgd(rank=4)". `strategy`: ps, ring
    or allreduce, and `algorithm`: of compressed entries, where the plan does not say. `interface`: a network interface or
    address; None: loopback where all ranks are on one host, else the address from which MASTER_ADDR is reached.
    `timeout_s`: a rank that does not submit a gradient for so long after the others is taken for lost.

    Each bucket's gradients are submitted as DDP finishes it, and the last bucket's hook waits for all of them, so that all of
    a step's gradients are averaged when backward() returns. Parameters that need no gradient now must not need one later.

    Raises TypeError if `ddp` is none, ValueError if the model does not fit, HipressError (RankLost: names the rank) if
    the engine cannot be opened; backward() raises those of the engine.
    """
    if not isinstance(ddp, DistributedDataParallel):
        raise TypeError(f"attach() takes a DistributedDataParallel, not a {type(ddp).__name__}")
    attached = Attached(ddp, {"plan": os.fspath(plan), "strategy": strategy, "algorithm": algorithm,
                              "timeout_s": timeout_s, "seed": seed}, interface)

    def hook(state: Attached, bucket: dist.GradBucket) -> torch.futures.Future:
        return state(bucket)

    ddp.register_comm_hook(attached, hook)
    ddp._hipress_attached = attached
    return attached


def attached_to(ddp: DistributedDataParallel) -> Attached:
    """What attach() returned for it; ValueError if nothing is attached."""
    attached = getattr(ddp, "_hipress_attached", None)
    if attached is None:
        raise ValueError("nothing is attached to this model: call hipress.attach(ddp) first")
    return attached
