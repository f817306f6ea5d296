"""A DistributedDataParallel that measures itself, plans, and switches to a plan that is faster."""

import collections
import collections.abc
import dataclasses
import functools
import hashlib
import json
import logging
import os
import pathlib
import sys
import tempfile
import time
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import _arguments, _ddp, _residuals, _states
from hipress._capture import Capture
from hipress._control import Candidate, Control, Pace, Phase
from hipress._ddp import GradBucket, Hook
from hipress._engine import Error, InvalidRequest
from hipress._self_planning import SelfPlanning

_Path = Union[str, "os.PathLike[str]"]
_log = logging.getLogger("hipress")
#: Name of the states' owner in messages.
_OWNER = "hipress.attach(model)"
#: Largest number of parameters of which ranks compare a value.
_MOST_COMPARED = 64


class _Beside(Capture):
    """Capture during which ranks go on averaging."""

    def _keep_apart(self, part: DistributedDataParallel) -> None:
        return None

    def waited(self, began: Any, ended: Any) -> None:
        """Excludes a wait for the other ranks, between two marks of the clock, from the time between the last backward and the next
        step."""
        if self._started and self._passes:
            self._passes[-1].waits.append((began, ended))


class AutoHook(SelfPlanning, Hook):
    """Hook that attach() returns if no plan is given. A bucket is averaged by the process group's own all-reduce, as in plain DDP,
    or by the hook of the way that Control (_control.py) has chosen. Arguments are those of attach().

    A step begins with its first bucket, and ranks act together before it. They can, because every rank has the same number of
    steps with buckets, whatever its inputs, also in join()."""

    def __init__(self, ddp: torch.nn.Module, *, algorithm: str = "onebit", algorithms: Optional[str] = None,
                 topology: Optional[str] = None, profile: Optional[_Path] = None, pilot: Optional[_Path] = None,
                 timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1, rendezvous: Optional[str] = None,
                 network: Optional[str] = None, log_every: int = _residuals.EVERY, pace: Pace = Pace()) -> None:
        ddp = _ddp.unwrapped(ddp)
        _arguments.job(seed=seed, timeout=timeout, silence=silence, topology=topology, rendezvous=rendezvous, network=network,
                       algorithm=algorithm, algorithms=algorithms)
        former = _ddp.former_of(ddp)
        self.registered = former is not None and former.registered
        self._nothing = _Nothing()
        self._begin(self._nothing, {}, None, -1)
        self._options = (timeout, silence, seed, rendezvous, network, pilot, log_every)
        patience = _ddp._patience(timeout, silence, ddp.process_group, -1)
        same = {"plan": "auto", "model": _layout_of(ddp), "algorithm": algorithm, "algorithms": algorithms, "topology": "ring",
                "seed": seed, "rendezvous": rendezvous, **patience}
        self._meet(ddp.process_group, same, network, pace, _unfit(ddp), {"topology": topology or "BEST"}, algorithms, profile, pilot,
                   _content_of(ddp))
        if former is not None:
            former.close()
        self._ddp = weakref.ref(ddp)
        self._before_forward = ddp.register_forward_pre_hook(self.before_forward)
        _ddp._hooks[ddp] = self
        self._within = False
        self._handed_s = 0.0
        #: Residuals of closed ways, by the gradient's name: held ones, and those that the current step has added to its gradients.
        self._held: Dict[str, torch.Tensor] = {}
        self._added: Dict[str, torch.Tensor] = {}
        self._names = {id(parameter): name for name, parameter in ddp.module.named_parameters()}
        self._capture: Optional[_Beside] = None
        if self._control is not None and self._planning is not None:
            _ddp._warn_of_hooked_parameters(_ddp._parameters_of(ddp))
            self._start_capture(self._control)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._control, self._open, self._closed = None, {}, True

    @property
    def failure(self) -> Optional[Error]:
        """Error of this hook, or of the hook of an open way; None if nothing has failed."""
        failed = (hook.failure for hook in self._open.values())
        return self._failure or next((error for error in failed if error is not None), None)

    def synchronise(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Averages a bucket as plain DDP does, or by the plan of the step's way. Returns a Future of the mean, and raises the same
        errors, as Hook.synchronise()."""
        if self._closed and self._failure is None:
            return self._hand_on(bucket)
        if not self._within:
            with self._ending():
                self._begin_step()
        hook = self._open.get(self._way)
        if self._held:
            self._add_held(bucket)
        future = self._average(bucket) if hook is None else hook.synchronise(bucket)
        self._within = not bucket.is_last()
        if not self._within:
            self.registered = True
            self._handed_s = time.perf_counter()
            handed = self._capture._clock.mark() if self._capture is not None else None
            # Runs after DDP's own callback, which waits for all buckets.
            _ddp._queue_callback(lambda: _ddp._queue_callback(functools.partial(self._end_step, handed)) and None)
        return future

    def _average(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        tensor = bucket.buffer().div_(self._job.ranks)
        return dist.all_reduce(tensor, group=self._job.group.group, async_op=True).get_future().then(self._taken)

    def _taken(self, done: Any) -> Any:
        """Returns the mean. If the process group has failed, raises RankLost with the number of the rank that died, or else
        Error."""
        try:
            return done.value()[0]
        except RuntimeError as error:
            raise self._fail(error) from None

    def _fail(self, error: BaseException) -> BaseException:
        """Ends the job on all ranks. Returns the exception to raise: for a process group's RuntimeError, the RankLost that names
        the rank."""
        found = self._links.lost(error)
        if self._failure is None:
            self._end(found if isinstance(found, Error) else Error(f"the job was ended by {type(error).__name__}: {error}"))
        return self._failure if isinstance(error, RuntimeError) and self._failure is not None else error

    def _end(self, error: Error) -> None:
        self._failure = error
        for hook in self._open.values():
            hook.engine.close()
        self._links.close()
        self._stop_capture()

    def _begin_step(self) -> None:
        self._added = {}
        super()._begin_step()
        hook = self._open.get(self._way)
        self.engine = self._nothing if hook is None else hook.engine

    def _end_step(self, handed: Any) -> None:
        self._waited_s = time.perf_counter() - self._handed_s
        if self._added:
            self._keep_unapplied()
        if self._capture is not None and handed is not None:
            self._capture.waited(handed, self._capture._clock.mark())

    def _start_capture(self, control: Control) -> None:
        """Captures steps on rank 0. A job that has compiled functions keeps its first capture, since hooks of the model would cause
        another compilation."""
        ddp = self._ddp()
        if self._planning is None or ddp is None or ((self._model or self._capture is not None) and _has_compiled()):
            return
        self._stop_capture()
        first, end = control.window
        steps = end - first if control.phase is Phase.MEASURE else control.pace.measured
        self._capture = _Beside(ddp, None, warmup=control.pace.warmup, steps=steps - 2, say=_log.debug,
                                bucket_mb=getattr(ddp, "bucket_bytes_cap", 25 << 20) / (1 << 20))
        self._capture.start()

    def _captured(self) -> str:
        return "" if self._capture is None else self._capture.text()

    def _stop_capture(self) -> None:
        if self._capture is not None:
            self._capture.stop()
            self._capture = None

    def _hook_of(self, way: Candidate) -> Hook:
        """Makes a way's hook. All ranks call it together."""
        ddp = self._ddp()
        assert ddp is not None
        hook = Hook.__new__(Hook)
        hook.registered = True
        timeout, silence, seed, rendezvous, network, pilot, log_every = self._options
        with tempfile.TemporaryDirectory(prefix="hipress-auto-") as folder:
            plan, model = pathlib.Path(folder, "plan.yaml"), pathlib.Path(folder, "model.yaml")
            plan.write_text(way.text)
            model.write_text(self._model)
            hook._join(ddp, way.what, "onebit", None, model, timeout, silence, seed, rendezvous, network, None, log_every,
                       file=str(plan))
        return hook

    def _close_way(self, hook: Hook) -> None:
        self._hold(residuals_of(hook))
        hook.close()

    def _hold(self, residuals: Mapping[str, torch.Tensor]) -> None:
        """Holds residuals, by the gradient's name, for the next step's gradients."""
        for name, residual in residuals.items():
            self._held[name] = self._held[name] + residual if name in self._held else residual

    def _add_held(self, bucket: GradBucket) -> None:
        """Adds residuals of closed ways to this rank's gradients, so that the mean or the current way's residuals include
        them."""
        if not self._added:
            self._watched = []
        self._watch(bucket)
        for parameter, view in zip(bucket.parameters(), bucket.gradients()):
            name = self._names.get(id(parameter), "")
            residual = self._held.pop(name, None)
            if residual is not None:
                view.add_(residual.to(view))
                self._added[name] = residual

    def _keep_unapplied(self) -> None:
        """Holds added residuals again if their means are not applied, because a loss scaler skips the step or no rank has used the
        parameter."""
        ddp = self._ddp()
        added, self._added = self._added, {}
        unused = {self._names.get(id(one), "") for one in self._untouched()}
        if ddp is None:
            return
        finite = all(bool(torch.isfinite(one.grad).all()) for one in ddp.module.parameters() if one.grad is not None)
        self._hold({name: residual for name, residual in added.items() if not finite or name in unused})

    def discard(self) -> None:
        """Undoes the last step of the current way, as Hook.discard() does; without effect while plain DDP averages. Raises the
        failure if the job has failed."""
        if self.failure is not None:
            raise self.failure
        hook = self._open.get(self._way)
        if hook is not None:
            hook.discard()

    def statistics(self) -> Dict[str, float]:
        """Ratio of residual to gradient by the gradient's name, as in Hook.statistics(); empty while plain DDP averages. Raises
        the failure if the job has failed."""
        if self.failure is not None:
            raise self.failure
        hook = self._open.get(self._way)
        return hook.statistics() if hook is not None else {}

    def state_dict(self) -> Dict[str, Any]:
        """Returns this rank's state between steps: the kept plan, its model, the state of its compression, and residuals by the
        gradient's name (fp32, in the gradient's shape), which a job with another number of ranks needs. Each rank saves its own.
        Call it between steps. Raises the failure if the job has failed."""
        if self.failure is not None:
            raise self.failure
        control = self._control
        kept = self._open.get(control.kept) if control is not None else None
        for hook in self._open.values():
            if hook is not kept:
                self._hold(residuals_of(hook))
        state, residuals, way = torch.empty(0, dtype=torch.uint8), {}, ()  # type: Any, Any, Any
        if kept is not None and control is not None:
            state, way = _ddp.saved_state(kept.engine), dataclasses.astuple(control.ways[control.kept])
            residuals = residuals_of(kept)
            if residuals:
                _ddp.restore_state(kept.engine, state)
        return {"rank": self._job.rank, "ranks": self._job.ranks, "state": state, "way": json.dumps(way), "model": self._model,
                "held": dict(self._held), "residuals": residuals}

    def load_state_dict(self, state: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> None:
        """Restores state_dict(), under the same model and seed. Every rank calls it, between steps.

        With the same number of ranks, each rank loads its own state, and the job goes on with the plan. With another number, the
        job plans anew, and the first step includes the residuals of the former ranks. A rank may then load a list of several
        states, or an empty list. A state that no rank loads is lost, and a line of report() says so.

        Raises InvalidRequest for an invalid state, which changes nothing, and the failure if the job has failed."""
        if self.failure is not None:
            raise self.failure
        states = [state] if isinstance(state, collections.abc.Mapping) else list(state)
        loaded = self._job.group.exchange(functools.partial(self._numbers_of, states))
        if all(len(each) == 1 and each[0][0] == self._job.ranks for each in loaded):
            self._hold(states[0]["held"])
            return self._go_on(states[0])
        counts = collections.Counter(one for each in loaded for one in each)
        for one in states:
            # Scales residuals for a mean over the current ranks. Ranks that load the same state share its residuals.
            share = self._job.ranks / one["ranks"] / counts[one["ranks"], one["rank"]]
            for kind in ("held", "residuals"):
                self._hold({name: share * residual for name, residual in one[kind].items()})
        self._say_what_is_lost(sorted(counts))

    def _say_what_is_lost(self, loaded: List[Tuple[int, int]]) -> None:
        if self._control is None or not loaded:
            return
        former = loaded[0][0]
        missing = sorted(set(range(former)) - {rank for _, rank in loaded})
        lost = f"; what ranks {', '.join(map(str, missing))} held back was not loaded, and is lost" if missing else ""
        self._control.say(self._step, f"the checkpoint is of {former} ranks, and this job has {self._job.ranks}: plans anew{lost}")

    def _numbers_of(self, states: List[Any]) -> List[Tuple[int, int]]:
        """Returns number of ranks and rank of each state. Raises InvalidRequest for one that cannot be loaded."""
        for one in states:
            self._require(one)
        if len(states) == 1 and states[0]["ranks"] == self._job.ranks:
            _ddp.require_own(states[0], self._job, _OWNER)
        return [(one["ranks"], one["rank"]) for one in states]

    def _require(self, state: Any) -> None:
        """Raises InvalidRequest unless `state` is a state of this model."""
        _states.require(state, _OWNER, {"ranks": int, "rank": int, "state": torch.Tensor, "way": str, "model": str, "held": dict,
                                        "residuals": dict})
        _states.require_bytes(_OWNER, "state", state["state"])
        ddp = self._ddp()
        parameters = dict(ddp.module.named_parameters()) if ddp is not None else {}
        for kind in ("held", "residuals"):
            for name, values in state[kind].items():
                if name not in parameters:
                    _states.refuse(f"the state of {_OWNER} has '{name}', which this model lacks")
                _states.require_numbers(_OWNER, name, values, torch.empty(parameters[name].shape))

    def _go_on(self, state: Mapping[str, Any]) -> None:
        """Opens the way that the job of a saved state had kept, and restores the state of its compression."""
        control, way = self._control, json.loads(state["way"])
        if control is None or not way:
            return
        hook = self._resume(Candidate(*way), state["model"])
        try:
            _ddp.restore_state(hook.engine, state["state"])
        except BaseException:
            hook.close()
            raise
        self._open[control.resume(self._step, Candidate(*way))] = hook
        self._close_ways(control)

    def close(self) -> None:
        """Leaves the job and ends all threads, including those of ways and of planning. Later steps are averaged as after
        Hook.close()."""
        self._closed = True
        if self._before_forward is not None and self._failure is None:
            self._before_forward.remove()
        self._close_planning()


def residuals_of(hook: Hook) -> Dict[str, torch.Tensor]:
    """Moves this rank's residuals out of a hook's encoders. Returns them by the gradient's name, as fp32 tensors of the
    gradient's shape; those that are all zeros are left out."""
    residuals = {}
    for number, gradient in enumerate(hook.engine.gradients):
        values = torch.empty(gradient.shape)
        hook.engine.take_residual(number, values.data_ptr(), values.numel())
        if bool(values.any()):
            residuals[gradient.name] = values
    return residuals


def _unfit(ddp: DistributedDataParallel) -> str:
    """Reason why only plain DDP averages this model's gradients; empty if a plan can."""
    try:
        parameters = _ddp._parameters_of(ddp)
        _ddp._device_of(parameters)
        return "" if parameters else "the model has no parameters that DDP synchronises"
    except InvalidRequest as error:
        return str(error)


def _trained_by(ddp: DistributedDataParallel) -> Dict[str, torch.nn.Parameter]:
    ignored = getattr(ddp, "parameters_to_ignore", ())
    return {name: one for name, one in ddp.module.named_parameters()
            if one.requires_grad and name not in ignored and one.numel() > 0}


def _layout_of(ddp: DistributedDataParallel) -> str:
    """Text that identifies the model's parameters by their names, shapes and types."""
    found = _trained_by(ddp)
    digest = hashlib.sha256(repr([(name, tuple(one.shape), str(one.dtype)) for name, one in found.items()]).encode())
    return f"{type(ddp.module).__name__} of {sum(one.numel() for one in found.values())} elements, {digest.hexdigest()[:8]}"


def _content_of(ddp: DistributedDataParallel) -> List[float]:
    """Returns the first value of each of the first _MOST_COMPARED parameters. DDP keeps them equal on all ranks."""
    return [float(one.detach().reshape(-1)[0]) for one in list(_trained_by(ddp).values())[:_MOST_COMPARED]]


def _has_compiled() -> bool:
    """True if torch.compile has compiled a function of this process."""
    dynamo = sys.modules.get("torch._dynamo")
    return dynamo is not None and bool(dynamo.utils.counters["frames"]["ok"])


class _Nothing:
    """Stand-in for the engine while plain DDP averages. Its use raises InvalidRequest."""

    closed = False

    def close(self) -> None:
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        raise InvalidRequest("plain DDP averages this model's gradients now: attach with a plan to compare it")


__all__ = ["AutoHook"]
