"""A run of a pilot: trains an unmodified script under one plan and seed, and records losses and errors. hipress._pilot starts it.

A script with DistributedDataParallel runs as N processes, whose gradients hipress.attach's hook averages. A script without it runs
in one process, in which N ranks take turns: each turn is one pass of the script's training loop up to its optimizer's step(). A
turn computes the gradients of its rank. The last turn averages the gradients of all ranks, by N engines in this process, and only
then does the optimizer step. Rank r of step s has the script's batch N·s + r, in the script's own order."""

import contextlib
import ctypes
import functools
import json
import math
import os
import pathlib
import random
import secrets
import signal
import sys
import threading
import types
import weakref
from typing import Any, Dict, List, Optional, Sequence

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import _ddp, _library, _pilot_report, _script, _trained
from hipress._capture import unwrapped
from hipress._engine import Engine
from hipress._job import GROUP_BYTES
from hipress._library import CTensor, Gradient
from hipress._steps_ratio import Divergence

#: Offsets that are added to the script's own seeds for each further seed of the pilot, and to the seeds of generators for each
#: rank.
_SEED_SHIFT, _RANK_SHIFT = 1_000_003, 7_919
#: Steps at which errors are measured, as shares of all steps.
_POINTS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
#: Number of parts of a run, each with a noise scale of its own.
_NOISE_PARTS = 10
#: Longest wait of ranks for each other, in seconds.
_TIMEOUT_S = 1800.0


class Ended(BaseException):
    """End of a script whose run is complete. It is no Exception, so that the script's `except Exception` does not catch it."""


class Refusal(BaseException):
    """Refusal of a script that cannot be piloted; the text has the reason and the remedy."""


class Recorder:
    """Losses by step, and other measurements of a run. A step is closed when the next backward begins, so that its loss may be
    reported after it."""

    def __init__(self, steps: int, reports_per_step: int, rank: int, folder: pathlib.Path) -> None:
        self._steps, self._reports_per_step, self._decides = steps, reports_per_step, rank == 0
        self._progress = os.open(folder / f"progress{rank}", os.O_WRONLY | os.O_CREAT, 0o600)
        self.points = {max(1, round(share * steps)) for share in _POINTS}
        self.losses: List[float] = []
        self.held_out: List[List[float]] = []
        self.errors: List[Dict[str, Any]] = []
        self.norms: List[List[float]] = []  #: mean of the ranks' squared norms, and squared norm of the mean, by step
        self.diverged = False
        self.taken = 0  #: number of steps taken
        self.why_none = ""  #: reason why no loss was found
        self._reported: List[float] = []
        self._found: Optional[float] = None
        self._divergence = Divergence(steps)

    def report(self, value: float, held_out: bool) -> None:
        """Adds a loss that the script reports."""
        if held_out:
            if math.isfinite(value):
                self.held_out.append([self.taken, value])
        else:
            self._reported.append(value)

    def take(self, loss: Optional[float]) -> None:
        """Adds a step, with the loss that was found for it."""
        self.taken += 1
        self._found = loss
        os.pwrite(self._progress, b"%d" % self.taken, 0)

    def close(self) -> None:
        """Closes the last step. Raises Ended if the run has diverged or is complete."""
        if len(self.losses) < self.taken:
            loss = self._loss() if self._decides else 0.0
            if self._divergence.add(loss):
                self.diverged = True
            if math.isfinite(loss):
                self.losses.append(loss)
            if self.diverged:
                raise Ended
        if len(self.losses) >= self._steps:
            raise Ended

    def _loss(self) -> float:
        first = len(self.losses) * self._reports_per_step
        chunk = self._reported[first:first + self._reports_per_step]
        if self._reported and len(chunk) == self._reports_per_step:
            return math.fsum(chunk) / len(chunk)
        if self._reported:
            raise Refusal(f"hipress.pilot.report() was called {len(self._reported)} times in "
                          f"{self.taken * self._reports_per_step} steps of the script: call it once per step")
        if self._found is None:
            raise Refusal(f"no loss was found: {self.why_none or 'backward() was not called'}: call "
                          "hipress.pilot.report(loss) in each step")
        return self._found

    def noise(self, ranks: int) -> List[Dict[str, Any]]:
        """Gradient noise scale of each of _NOISE_PARTS parts of the run, in units of a rank's batch."""
        rows, each = [], max(1, len(self.norms) // _NOISE_PARTS)
        for first in range(0, len(self.norms) - each + 1, each):
            value = noise_scale(self.norms[first:first + each], ranks)
            rows += [{"step": first + each, "batches": value}] if value is not None else []
        return rows


def noise_scale(norms: Sequence[Sequence[float]], ranks: int) -> Optional[float]:
    """Gradient noise scale tr(Σ) / |G|² of McCandlish et al. (arXiv 1812.06162, appendix A), in units of a rank's batch. It
    follows from two numbers, each averaged over steps: the mean squared norm of the gradients of one batch, and the squared norm of
    the mean over `ranks` batches. None if |G|² is lost in the noise."""
    small = math.fsum(one for one, _ in norms) / len(norms)
    large = math.fsum(one for _, one in norms) / len(norms)
    signal_squared = (ranks * large - small) / (ranks - 1)
    trace = (small - large) / (1 - 1 / ranks)
    return trace / signal_squared if signal_squared > 0 and trace >= 0 else None


class Averager:
    """Engines of N ranks in this process, which average copies of the ranks' gradients."""

    def __init__(self, gradients: List[Gradient], ranks: int, plan: str, seed: int) -> None:
        options = {"ranks": ranks, "plan": plan, "topology": _ddp._said_by(plan, "topology", "ring"), "algorithm": "onebit",
                   "transport": "memory", "rendezvous": f"local:{secrets.token_hex(16)}", "timeout_s": _TIMEOUT_S, "seed": seed,
                   "silence_s": _TIMEOUT_S, "group_bytes": GROUP_BYTES}
        self._engines: List[Optional[Engine]] = [None] * ranks
        failures: List[BaseException] = []

        def open_engine(rank: int) -> None:
            try:
                self._engines[rank] = Engine(gradients, rank=rank, **options)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=open_engine, args=(rank,)) for rank in range(ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise Refusal(f"plan {plan}: {failures[0]}")
        self._numbers = (ctypes.c_uint32 * len(gradients))(*range(len(gradients)))
        self.first: Any = self._engines[0]  #: engine of rank 0
        self.notes = self.first.notes

    def average(self, buffers: List[List[torch.Tensor]]) -> None:
        """Replaces each rank's gradients, a list per rank, by the means that the ranks apply under the plan."""
        for engine, tensors in zip(self._engines, buffers):
            lent = (CTensor * len(tensors))()
            for place, tensor in zip(lent, tensors):
                place.data, place.elements, place.type = tensor.data_ptr(), tensor.numel(), _ddp._TYPES[tensor.dtype]
            engine.submit(len(tensors), self._numbers, lent)
        for engine in self._engines:
            engine.wait()

    def discard_infinite(self) -> None:
        """Discards a step whose means are not all finite, as the hook does."""
        if not self.first.all_finite():
            self.discard()

    def discard(self) -> None:
        """Restores the residuals and factors from before the last average."""
        for engine in self._engines:
            engine.discard()


class Sampler:
    """Measures how far the gradients applied under a plan are from the exact mean of the ranks' own gradients."""

    def __init__(self, gradients: List[Gradient], ranks: int, plan: str, seed: int, recorder: Recorder) -> None:
        self._gradients, self._recorder = gradients, recorder
        self._without = functools.lru_cache(None)(lambda: Averager(gradients, ranks, plan, seed))  # made at first use
        self._measured: Any = None

    def before(self, buffers: List[List[torch.Tensor]]) -> None:
        """Takes the ranks' own gradients in a step of _POINTS. Computes their exact mean, and the error of the plan's mean without
        the residuals of earlier steps."""
        exact = [torch.stack([one.double() for one in of_ranks]).mean(dim=0) for of_ranks in zip(*buffers)]
        copies = [[one.clone() for one in of_rank] for of_rank in buffers]
        self._without().average(copies)
        self._without().discard()
        self._measured = exact, [_distance(one, mean) for one, mean in zip(copies[0], exact)]

    def after(self, applied: List[torch.Tensor], engine: Engine, step: int) -> None:
        """Takes the gradients that are applied in that step, and records their errors and the residuals of rank 0's engine."""
        exact, without = self._measured
        for gradient, mean, one, error, held in zip(self._gradients, exact, applied, without, engine.squared_residuals()):
            norm, distance, norm_applied = float(mean.norm()), _distance(one, mean), float(one.double().norm())
            if norm > 0 and all(map(math.isfinite, (norm, error, distance))):
                row = {"gradient": gradient.name, "step": step, "error": error / norm, "error_with_residual": distance / norm,
                       "norm": norm}
                residual = {"residual": math.sqrt(held) / norm_applied} if held >= 0 and norm_applied > 0 else {}
                self._recorder.errors.append({**row, **residual})


def _distance(one: torch.Tensor, mean: torch.Tensor) -> float:
    return float((one.double().reshape(-1) - mean.reshape(-1)).norm())


def _squared(tensors: List[torch.Tensor]) -> float:
    return math.fsum(float(one.double().pow(2).sum()) for one in tensors)


class _Training:
    """Common base of training in turns and in processes: the losses of a step, and the optimizers that step together."""

    def __init__(self, job: Dict[str, Any], recorder: Recorder) -> None:
        self.job, self.recorder = job, recorder
        self.plan, self.ranks = job["plan"], job["ranks"]
        self.step_losses: List[float] = []
        self.stepping: List[Any] = []  #: optimizers that have stepped since the last backward
        self._together: Optional[set] = None

    def before_backward(self, loss: Optional[float]) -> None:
        if self.stepping:
            together = {id(optimizer) for optimizer in self.stepping}
            if self._together not in (None, together):
                raise Refusal("optimizers take their steps in turn, as those of a GAN do, so there is no loss that DDP's and a "
                              "plan's steps can be compared by: pilot the training of one of them")
            self._together = together
            self.stepping = []
            self.begin()
        if loss is not None:
            self.step_losses.append(loss)

    def begin(self) -> None:
        """Begins a pass of the loop."""
        raise NotImplementedError

    def mean_loss(self) -> Optional[float]:
        return math.fsum(self.step_losses) / len(self.step_losses) if self.step_losses else None

    @property
    def at_point(self) -> bool:
        """True if errors are measured in this step."""
        return self.plan != "none" and self.recorder.taken + 1 in self.recorder.points


class Turns(_Training):
    """Ranks that take turns in this process."""

    def __init__(self, job: Dict[str, Any], recorder: Recorder, watch: "_Watch") -> None:
        super().__init__(job, recorder)
        self._watch = watch
        self._turn = self._passes = self._passes_per_turn = 0
        self.ended = 0  #: number of turns so far, in all steps
        self._averaged = self._applied = False
        self._parameters: Optional[List[torch.nn.Parameter]] = None
        self._present: set = set()

    def begin(self) -> None:
        self._passes_per_turn = max(self._passes_per_turn, self._passes)
        self._turn, self._passes = (self._turn + 1) % self.ranks, 0
        if self._turn == 0:
            self.recorder.close()
            self.step_losses, self._present = [], set()
            self._averaged = self._applied = False

    @property
    def is_last(self) -> bool:
        """True in the turn of the last rank."""
        return self._turn == self.ranks - 1

    def after_backward(self) -> None:
        if self._averaged:
            raise Refusal("steps have different numbers of backward passes, so the last of a step is not known: accumulate as "
                          "many batches in every step, or train with DistributedDataParallel under torchrun")
        if self._parameters is None:
            self._prepare()
        self._passes += 1
        for number, (parameter, buffer) in enumerate(zip(self._parameters, self._buffers[self._turn])):
            if parameter.grad is None:
                buffer.zero_()
            elif parameter.grad.layout != torch.strided:
                raise Refusal("the model has sparse gradients, which hipress does not synchronise: make embeddings with "
                              "sparse=False")
            else:
                buffer.copy_(parameter.grad)
                self._present.add(number)
        if self.is_last and self._passes >= self._passes_per_turn:
            self._average()

    def _prepare(self) -> None:
        named = self._watch.named_parameters()
        gradients = [Gradient(name, tuple(one.shape), _ddp._TYPES[one.dtype]) for name, one in named]
        self._parameters = [one for _, one in named]
        self._ids = {id(one) for one in self._parameters}
        self._buffers = [[torch.empty(one.shape, dtype=one.dtype) for one in self._parameters] for _ in range(self.ranks)]
        self._averager = Averager(gradients, self.ranks, self.plan, self.job["seed"])
        if self._averager.notes:
            print(f"hipress.pilot: {self._averager.notes}", file=sys.stderr)
        self._sampler = Sampler(gradients, self.ranks, self.plan, self.job["seed"], self.recorder)

    def _average(self) -> None:
        """Averages the ranks' gradients, and writes the means to the parameters' gradients."""
        if {id(one) for one in _trained.held_by(self._watch.alive())} != self._ids:
            raise Refusal("the optimizers' parameters are not those of the first step: pilot each phase of the training by "
                          "itself")
        self._averaged, sampled = True, self.at_point
        small = math.fsum(map(_squared, self._buffers)) / self.ranks if self.plan == "none" else 0.0
        if sampled:
            self._sampler.before(self._buffers)
        self._averager.average(self._buffers)
        self._averager.discard_infinite()
        applied = self._buffers[0]
        if sampled:
            self._sampler.after(applied, self._averager.first, self.recorder.taken + 1)
        if self.plan == "none":
            self.recorder.norms.append([small, _squared(applied)])
        with torch.no_grad():
            for number in self._present:
                parameter = self._parameters[number]
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter)
                parameter.grad.copy_(applied[number])

    def on_step(self, optimizer: Any, step: Any, closure: Any, arguments: Any, options: Any) -> Any:
        """Replaces an optimizer's step(): only the last turn's is executed."""
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        self.ended += not self.stepping
        self.stepping.append(optimizer)
        if self._parameters is None or not self.is_last:
            return result
        if not self._averaged:
            self._average()
        if not self._applied:
            self._applied = True
            self.recorder.take(self.mean_loss())
        stepped = step(*arguments, **options)
        return result if closure is not None else stepped


class Processes(_Training):
    """Ranks that are separate processes, of which this is one, and train with DistributedDataParallel."""

    def __init__(self, job: Dict[str, Any], recorder: Recorder) -> None:
        super().__init__(job, recorder)
        self.hook: Optional["PilotedHook"] = None
        self._own = self._mean = 0.0  #: squared norms of this rank's gradients and of the applied mean

    def begin(self) -> None:
        self.recorder.close()
        self.step_losses = []

    @property
    def is_last(self) -> bool:
        return True

    def after_backward(self) -> None:
        if self.hook is None or not self.hook.noted:
            return
        noted, self.hook.noted = self.hook.noted, {}
        applied = [parameter.grad for parameter in self.hook.parameters]
        own = [noted.get(id(parameter)) for parameter in self.hook.parameters]
        if any(one is None for one in own + applied):
            return
        if self.plan == "none":
            self._own, self._mean = _squared(own), _squared(applied)
        if self.at_point:
            self._sample(own, applied)

    def _sample(self, own: List[torch.Tensor], applied: List[torch.Tensor]) -> None:
        gathered = []
        for tensor in own:
            places = [torch.empty_like(tensor) for _ in range(self.ranks)]
            dist.all_gather(places, tensor)
            gathered.append([place.cpu() for place in places])
        if dist.get_rank() == 0:
            sampler = self.hook.sampler(self.ranks, self.plan, self.job["seed"], self.recorder)
            sampler.before([list(of_rank) for of_rank in zip(*gathered)])
            sampler.after([one.detach().cpu() for one in applied], self.hook.engine, self.recorder.taken + 1)

    def on_step(self, optimizer: Any, step: Any, closure: Any, arguments: Any, options: Any) -> Any:
        """Executes an optimizer's step(); then the ranks average their losses."""
        result = step(*arguments, **options) if closure is None else step(closure, *arguments, **options)
        first, loss = not self.stepping, self.mean_loss()
        self.stepping.append(optimizer)
        if first:
            device = next(iter(self.hook.parameters)).device if self.hook is not None else torch.device("cpu")
            shared = torch.tensor([loss if loss is not None else math.nan, self._own], dtype=torch.float64, device=device)
            dist.all_reduce(shared)
            mean, small = (shared / self.ranks).tolist()
            if self.plan == "none":
                self.recorder.norms.append([small, self._mean])
            self.recorder.take(mean if loss is not None else None)
        return result


class PilotedHook(_ddp.Hook):
    """Hook of a DistributedDataParallel that records this rank's own gradients before they are averaged."""

    def begin_notes(self, training: Processes, ddp: torch.nn.Module) -> None:
        """Begins to record gradients for the training."""
        named = _ddp._parameters_of(_ddp.unwrapped(ddp))
        self.parameters = [named[one.name] for one in self.engine.gradients]
        self.noted: Dict[int, torch.Tensor] = {}
        self._training = training
        self.sampler = functools.lru_cache(None)(functools.partial(Sampler, self.engine.gradients))

    def synchronise(self, bucket: Any) -> Any:
        if self._training.plan == "none" or self._training.at_point:
            for parameter, view in zip(bucket.parameters(), bucket.gradients()):
                self.noted[id(parameter)] = view.detach().clone()
        return super().synchronise(bucket)


class _Watch:
    """Optimizers that the script makes, and modules that it calls."""

    def __init__(self) -> None:
        self.optimizers: List[Any] = []
        self.called: List[torch.nn.Module] = []
        self._seen: Any = weakref.WeakSet()
        self._handle = torch.nn.modules.module.register_module_forward_pre_hook(self._on_call)

    def alive(self) -> List[Any]:
        return [optimizer for reference in self.optimizers if (optimizer := reference()) is not None]

    def _on_call(self, module: torch.nn.Module, _inputs: Any) -> None:
        if module in self._seen or not torch.is_grad_enabled() or not any(one.requires_grad for one in module.parameters()):
            return
        self._seen.update(module.modules())
        self.called.append(module)

    def named_parameters(self) -> List[Any]:
        """Parameters that optimizers train, with the names that attach() gives them, from the last to the first. Ends the search
        for modules."""
        self._handle.remove()
        held = _trained.held_by(self.alive())
        if not held:
            raise Refusal("backward() was called before there was an optimizer of torch.optim: make it first")
        for one in held:
            if one.dtype not in _ddp._TYPES:
                raise Refusal(f"a parameter is of {one.dtype}; hipress synchronises float32, float16 and bfloat16: convert "
                              "the model")
        ids = {id(one) for one in held}
        named: Dict[str, torch.nn.Parameter] = {}
        if self.called:
            best = max(self.called, key=lambda module: sum(one.numel() for one in module.parameters() if id(one) in ids))
            whole = unwrapped(_trained.holder(best, held, _script._variable_of))
            named = {name: one for name, one in whole.named_parameters() if id(one) in ids}
        known = {id(one) for one in named.values()}
        named.update((f"parameter{number}", one) for number, one in enumerate(held) if id(one) not in known)
        return list(reversed(list(named.items())))


class Run:
    """Run of a script under a plan: its job, and the hooks that watch the script."""

    def __init__(self, job: Dict[str, Any]) -> None:
        self.job, self.folder = job, pathlib.Path(job["folder"])
        self.rank = int(os.environ.get("RANK", "0"))
        self.watch = _Watch()
        self.training: Any = None
        self.recorder: Any = None
        self.ddp = False
        self._inside = False
        self._unscaled: Any = (None, None)

    def report(self, value: float, held_out: bool) -> None:
        self._require_recorder().report(value, held_out)

    def _require_recorder(self) -> Recorder:
        if self.recorder is None:
            per_step = 1 if dist.is_initialized() else self.job["ranks"]
            self.recorder = Recorder(self.job["steps"], per_step, self.rank, self.folder)
        return self.recorder

    def _require_training(self) -> Any:
        if self.training is None:
            recorder = self._require_recorder()
            if not dist.is_initialized() or dist.get_world_size() == 1:
                self.training = Turns(self.job, recorder, self.watch)
            elif self.ddp:
                self.training = Processes(self.job, recorder)
            else:
                raise Refusal("ranks train in a process group without DistributedDataParallel, so how they average is not "
                              "seen: wrap the model in DistributedDataParallel, or leave the process group out")
        return self.training

    def install(self) -> None:
        """Watches backward passes, optimizers, schedules of learning rates, and DistributedDataParallel."""
        _pilot_report.receiver = self.report
        self._watch_backward()
        self._watch_optimizers()
        self._watch_schedules()
        self._watch_ranks()
        self._seed()

    def _watch_backward(self) -> None:
        backward = torch.autograd.backward

        @functools.wraps(backward)
        def watched(tensors: Any, *arguments: Any, **options: Any) -> Any:
            if self._inside:  # a nested call, such as that of a checkpointed module
                return backward(tensors, *arguments, **options)
            training, one = self._require_training(), tensors if isinstance(tensors, torch.Tensor) else None
            if one is not None and one is self._unscaled[0]:
                one = self._unscaled[1]
            found = one is not None and one.numel() == 1
            if not found:
                what = f"a tensor of shape {list(one.shape)}" if one is not None else f"{len(tensors)} tensors"
                self.recorder.why_none = f"backward() was called for {what}, and a loss is one number"
            training.before_backward(float(one.detach()) if found else None)
            self._inside = True
            try:
                result = backward(tensors, *arguments, **options)
            finally:
                self._inside = False
            training.after_backward()
            return result

        def watch_scaler(kind: Any) -> None:
            scale = kind.scale

            def scaled(scaler: Any, outputs: Any) -> Any:
                result = scale(scaler, outputs)
                self._unscaled = result, outputs
                return result

            kind.scale = scaled

        torch.autograd.backward = watched
        watch_scaler(getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler))

    def _watch_optimizers(self) -> None:
        created = torch.optim.Optimizer.__init__

        def create(optimizer: Any, *arguments: Any, **options: Any) -> None:
            created(optimizer, *arguments, **options)
            if isinstance(optimizer, torch.optim.LBFGS):
                raise Refusal("L-BFGS searches a line by losses and gradients, and compressed ones mislead it: train with SGD "
                              "or Adam")
            self.watch.optimizers.append(weakref.ref(optimizer))
            original = optimizer.step

            @functools.wraps(original)
            def step(_optimizer: Any, closure: Any = None, *rest: Any, **named: Any) -> Any:
                if self.training is None:
                    return original(*(() if closure is None else (closure,)), *rest, **named)
                return self.training.on_step(_optimizer, original, closure, rest, named)

            optimizer.step = types.MethodType(step, optimizer)

        torch.optim.Optimizer.__init__ = create

    def _watch_schedules(self) -> None:
        """Makes a schedule that advances in every turn advance only in the last turn of a step. A schedule that advances after
        several turns, for example after an epoch, is left alone."""
        seen: Any = weakref.WeakKeyDictionary()  # turns that had ended at a schedule's last call
        inside = [False]

        def watched(original: Any) -> Any:
            @functools.wraps(original)
            def step(schedule: Any, *arguments: Any, **options: Any) -> Any:
                turns = self.training if isinstance(self.training, Turns) else None
                ended = turns.ended if turns is not None else 0
                since, seen[schedule] = ended - seen.get(schedule, ended - 2), ended
                if turns is not None and since <= 1 and not turns.is_last and not inside[0]:
                    return None
                before, inside[0] = inside[0], True
                try:
                    return original(schedule, *arguments, **options)
                finally:
                    inside[0] = before
            return step

        for kind in list(vars(torch.optim.lr_scheduler).values()):
            if isinstance(kind, type) and "step" in vars(kind):
                kind.step = watched(vars(kind)["step"])

    def _watch_ranks(self) -> None:
        made, joined = DistributedDataParallel.__init__, dist.init_process_group

        def make(ddp: Any, *arguments: Any, **options: Any) -> None:
            made(ddp, *arguments, **options)
            self.ddp = True
            ddp.register_forward_pre_hook(before)

        def before(ddp: Any, _inputs: Any) -> None:
            if torch.is_grad_enabled():
                self._attach(ddp)

        @functools.wraps(joined)
        def join(*arguments: Any, **options: Any) -> Any:
            (self.folder / "ranks").touch()  # the launcher starts the others
            return joined(*arguments, **options)

        DistributedDataParallel.__init__ = make
        dist.init_process_group = dist.distributed_c10d.init_process_group = join
        _ddp.attach_ddp = lambda ddp, **_: self._attach(_ddp.unwrapped(ddp))

    def _attach(self, ddp: Any) -> Any:
        """Attaches the hook of the run's plan, even if the script attaches another plan itself."""
        training = self._require_training()
        if not isinstance(training, Processes) or training.hook is not None and training.hook._ddp() is ddp:
            return getattr(training, "hook", None)
        if training.hook is not None:
            raise Refusal("the script trains several DistributedDataParallel: pilot one of them, or make one module of them")
        try:
            hook = PilotedHook(ddp, plan=self.job["plan"], seed=self.job["seed"])
        except _ddp.InvalidRequest as error:
            raise Refusal(str(error)) from None
        hook.begin_notes(training, ddp)
        ddp.register_comm_hook(hook, _ddp.synchronise)
        hook.registered = True
        training.hook = hook
        return hook

    def _seed(self) -> None:
        """Seeds all generators. Unless the script's arguments have the seed, shifts the script's own seeds, too."""
        shift = 0 if self.job["seed_in_arguments"] else (self.job["seed"] - 1) * _SEED_SHIFT
        first = self.job["seed"] + _RANK_SHIFT * self.rank

        class Generator(torch.Generator):  # type: ignore[misc]
            def manual_seed(self, seed: int) -> Any:
                return super().manual_seed(seed + shift)

        def shifted(original: Any, most: int) -> Any:
            @functools.wraps(original)
            def seeded(seed: Any = None, *arguments: Any, **options: Any) -> Any:
                return original((seed + shift) % most if isinstance(seed, int) else seed, *arguments, **options)
            return seeded

        random.seed(first)
        torch.manual_seed(first)
        generators = [(random, "seed", 1 << 64), (torch, "manual_seed", 1 << 63), (torch.random, "manual_seed", 1 << 63)]
        with contextlib.suppress(ImportError):
            import numpy
            numpy.random.seed(first)
            generators.append((numpy.random, "seed", 1 << 32))
        if shift:
            for module, name, most in generators:
                setattr(module, name, shifted(getattr(module, name), most))
            torch.Generator = Generator

    def finish(self) -> Dict[str, Any]:
        """Result of the run. Raises Refusal if the script ended before all steps."""
        training, recorder = self.training, self.recorder
        if training is None:
            raise Refusal("no loss was found: backward() was not called in the script's own process. Processes that it starts "
                          "itself are not seen: let it run under torchrun, which sets RANK and WORLD_SIZE and starts a "
                          "process for each rank")
        with contextlib.suppress(Ended):
            recorder.close()
        wanted = self.job["steps"]
        if len(recorder.losses) < wanted and not recorder.diverged:
            in_turns = isinstance(training, Turns)
            each = f", each of {self.job['ranks']} passes of its loop, as ranks take turns in one process" if in_turns else ""
            raise Refusal(f"the script ended after {len(recorder.losses)} steps of the {wanted} that were asked for{each}: "
                          f"let it train longer, or pilot --steps {max(1, len(recorder.losses))}")
        return {"loss": recorder.losses, "held_out": [{"step": step, "loss": loss} for step, loss in recorder.held_out],
                "diverged": recorder.diverged, "errors": recorder.errors,
                "noise_scale": recorder.noise(self.job["ranks"]), "processes": not isinstance(training, Turns)}


def _die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def main() -> int:
    """Runs the job of the first argument, and writes its result to the job's folder."""
    _die_with_parent()
    job = json.loads(sys.argv[1])
    _library.library()
    run = Run(job)
    run.install()
    name, *arguments = job["script"]
    try:
        try:
            _script.execute(name, arguments, job["is_module"])
        except Ended:
            pass
        result = run.finish()
    except Refusal as refusal:
        result = {"refusal": str(refusal)}
    if run.rank == 0:
        unfinished = run.folder / "result.tmp"
        unfinished.write_text(json.dumps(result))
        unfinished.rename(run.folder / "result.json")
    sys.stdout.flush()
    sys.stderr.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
