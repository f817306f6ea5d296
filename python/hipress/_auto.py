"""DistributedDataParallel that measures itself, plans, and switches to a plan that is faster."""

import collections
import collections.abc
import dataclasses
import functools
import json
import logging
import os
import pathlib
import secrets
import statistics
import tempfile
import time
import weakref
from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import _arguments, _ddp, _planning, _residuals, _states
from hipress._capture import Capture
from hipress._control import PLAIN, Act, Candidate, Control, Pace, Phase, Report
from hipress._ddp import GradBucket, Hook, Wish
from hipress._engine import Error, InvalidRequest, RankLost
from hipress._links import LinkEngine

_Path = Union[str, "os.PathLike[str]"]
_log = logging.getLogger("hipress")
#: Owner of states in messages.
_OWNER = "hipress.attach(model)"
#: Number of latest steps whose times are kept; more than a window has.
_MOST_SEEN = 256


class _Beside(Capture):
    """Capture during which ranks average."""

    def _keep_apart(self, part: DistributedDataParallel) -> None:
        return None

    def waited(self, began: Any, ended: Any) -> None:
        """Excludes a wait for the other ranks after the last backward, between two marks of the clock, from the time between
        steps."""
        if self._started and self._passes:
            self._passes[-1].waits.append((began, ended))


class AutoHook(Hook):
    """Hook that attach() returns without a plan. A bucket is averaged by the process group's own all-reduce, as in plain DDP, or
    by the hook of the way that Control (_control.py) has chosen. Arguments are those of attach().

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
        self._unfit = _unfit(ddp)
        patience = _ddp._patience(timeout, silence, ddp.process_group, -1)
        same = {"plan": "auto", "algorithm": algorithm, "algorithms": algorithms, "topology": "ring", "seed": seed,
                "rendezvous": rendezvous, **patience}
        self._links = LinkEngine(ddp.process_group, lambda: Wish([], -1, same, network))
        self._job = self._links.job
        try:
            shared = self._job.group.exchange(functools.partial(self._prepare, topology, algorithms, profile, pilot))
        except BaseException:
            self._links.close()
            raise
        if former is not None:
            former.close()
        self._store = dist.PrefixStore(f"hipress/auto/{shared[0][1]}", dist.distributed_c10d._get_default_store())
        self._ddp = weakref.ref(ddp)
        self._before_forward = ddp.register_forward_pre_hook(self.before_forward)
        _ddp._hooks[ddp] = self
        ranks = self._job.ranks
        self._control: Optional[Control] = None
        self._planning: Optional[_planning.Planning] = None
        self._unfit = shared[0][2]
        if not self._unfit:
            self._control = Control(pace, [self._job.group.numbers.of(place) for place in range(ranks)])
            hosts = [host for host, _, _ in shared]
            self._planning = self._planning_of(hosts) if self._job.rank == 0 else None
        self._open: Dict[int, Hook] = {}  #: hooks by way
        self._model = ""  #: YAML of the captured model
        self._way = PLAIN
        self._step, self._within = 0, False
        self._mark_s: Optional[float] = None
        self._handed_s = self._waited_s = 0.0
        #: Number, way, seconds, and seconds without waits of each step.
        self._seen: Deque[Tuple[int, int, float, float]] = collections.deque(maxlen=_MOST_SEEN)
        self._told = 0  #: number of the control's lines that were logged
        #: Residuals of closed ways by the gradient's name, and those that were added to gradients of the current step.
        self._held: Dict[str, torch.Tensor] = {}
        self._added: Dict[str, torch.Tensor] = {}
        self._names = {id(parameter): name for name, parameter in ddp.module.named_parameters()}
        self._capture: Optional[_Beside] = None
        if self._control is not None and self._planning is not None:
            _ddp._warn_of_hooked_parameters(_ddp._parameters_of(ddp))
            self._capture = _Beside(ddp, None, warmup=pace.warmup, steps=pace.measured - 2, say=_log.debug,
                                    bucket_mb=getattr(ddp, "bucket_bytes_cap", 25 << 20) / (1 << 20))
            self._capture.start()

    def _prepare(self, topology: Optional[str], algorithms: Optional[str], profile: Optional[_Path],
                 pilot: Optional[_Path]) -> Tuple[str, str, str]:
        """Returns this rank's machine, a unique name for rank 0's entries in the store, and the reason why only plain DDP
        averages; empty if a plan can. Rank 0 prepares the request for plans."""
        if self._unfit or self._job.ranks == 1:
            self._unfit = self._unfit or "there is one rank"
        elif self._job.rank == 0:
            algorithms = algorithms if algorithms is not None or pilot is not None else _planning.ALGORITHMS
            try:
                if profile is None:
                    profile = _planning.profile_of(algorithms or _planning.ALGORITHMS, min(self._job.ranks, 4), _log.info)
            except (Error, OSError) as error:
                self._unfit = str(error)
                _log.warning("plain DDP averages: %s", error)
                profile = ""
            self._request = {"nnodes": self._job.ranks, "profile": os.fspath(profile), "topology": topology or "BEST",
                             "pilot": None if pilot is None else os.fspath(pilot)}
            self._algorithms = algorithms
        return _ddp._machine(), secrets.token_hex(8), self._unfit

    def _planning_of(self, hosts: List[str]) -> _planning.Planning:
        ranks, count = len(hosts), len(set(hosts))
        each = ranks // count
        regular = all(len(set(hosts[first:first + each])) == 1 for first in range(0, ranks, each))
        per_host = 0 if count == 1 else each if regular else 1
        return _planning.Planning({**self._request, "nodes_per_host": per_host}, self._algorithms)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._control, self._open, self._closed = None, {}, True

    @property
    def failure(self) -> Optional[Error]:
        """Error of this hook, or of the hook of an open way; None if nothing has failed."""
        failed = (hook.failure for hook in self._open.values())
        return self._failure or next((error for error in failed if error is not None), None)

    def synchronise(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Averages a bucket as plain DDP does, or by the plan of the step's way. Returns a Future of the mean, as
        Hook.synchronise() does, and raises the errors of that."""
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
        """Records the time of the previous step, and acts with the other ranks."""
        now_s = time.perf_counter()
        step = self._step
        if self._mark_s is not None:
            step_s = now_s - self._mark_s
            self._seen.append((step - 1, self._way, step_s, max(0.0, step_s - self._waited_s)))
        self._waited_s = 0.0
        self._added = {}
        control = self._control
        if control is not None:
            if self._links.is_posted:
                self._act(control, step, control.hear(step, self._links.collect()))
            if control.is_due(step):
                self._links.post(self._report(control))
            self._way = control.way_of(step)
            hook = self._open.get(self._way)
            self.engine = self._nothing if hook is None else hook.engine
            self._tell(control)
        self._step += 1
        self._mark_s = time.perf_counter()

    def _end_step(self, handed: Any) -> None:
        self._waited_s = time.perf_counter() - self._handed_s
        if self._added:
            self._keep_unapplied()
        if self._capture is not None and handed is not None:
            self._capture.waited(handed, self._capture._clock.mark())

    def _report(self, control: Control) -> Report:
        first, end = control.window
        seen = [one for one in self._seen if first <= one[0] < end]

        def median(way: Optional[int], what: int) -> float:
            return statistics.median([one[what] for one in seen if one[1] == way] or [0.0])

        ready = 0.0
        if control.phase is Phase.PLAN and self._planning is not None:
            ready = float(self._planning.is_ready)
        return Report(median(control.kept, 2), median(control.tried, 2), median(control.kept, 3), ready)

    def _act(self, control: Control, step: int, acts: List[Act]) -> None:
        """Performs acts of the control, and those that follow from them."""
        acts = list(acts)
        while acts:
            act = acts.pop(0)
            if act is Act.PROBE:
                acts += control.measured_links(step, self._links.burst())
            elif act is Act.PLAN:
                self._start_planning(control)
            elif act is Act.FETCH:
                acts += self._fetch(control, step)
            elif act is Act.CLOSE:
                self._close_ways(control)
            else:
                acts += self._open_way(control, step)

    def _start_planning(self, control: Control) -> None:
        if self._planning is None or control.links is None:
            return
        try:
            if self._capture is not None:
                self._model = self._capture.text()
        except Exception as error:  # training goes on without a plan
            self._planning.give_up(str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")
        else:
            self._planning.start(self._model, control.links, control.ways[control.kept].text)
        self._stop_capture()

    def _stop_capture(self) -> None:
        if self._capture is not None:
            self._capture.stop()
            self._capture = None

    def _fetch(self, control: Control, step: int) -> List[Act]:
        """Passes rank 0's candidates to all ranks, through the store. Returns the ranks' next acts."""
        if self._planning is not None:
            made = self._planning
            rows = [[one.text, one.what, one.predicted_s, one.ddp_s] for one in made.candidates]
            self._store.set(f"plans {step}", json.dumps([self._model, rows, made.seconds, made.failure]))
        self._model, rows, seconds, failure = json.loads(self._store.get(f"plans {step}"))
        if failure and self._planning is not None:
            _log.warning("plain DDP averages on: %s", failure)
        return control.planned(step, [Candidate(*row) for row in rows], seconds, failure)

    def _open_way(self, control: Control, step: int) -> List[Act]:
        assert control.tried is not None
        try:
            self._open[control.tried] = self._hook_of(control.ways[control.tried])
        except RankLost:
            raise
        except Error as error:  # raised on all ranks
            return control.refused(step, str(error))
        return []

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

    def _close_ways(self, control: Control) -> None:
        for way in [one for one in self._open if one not in (control.kept, control.tried)]:
            hook = self._open.pop(way)
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
        """Holds added residuals again if their means are not applied: a loss scaler skips the step, or no rank has used the
        parameter."""
        ddp = self._ddp()
        added, self._added = self._added, {}
        unused = {self._names.get(id(one), "") for one in self._untouched()}
        if ddp is None:
            return
        finite = all(bool(torch.isfinite(one.grad).all()) for one in ddp.module.parameters() if one.grad is not None)
        self._hold({name: residual for name, residual in added.items() if not finite or name in unused})

    def _tell(self, control: Control) -> None:
        """Logs new lines."""
        if self._step == control.pace.warmup and control.phase is Phase.MEASURE:
            control.say(self._step, self._progress(control))
        for step, text in control.lines[self._told:] if self._job.rank == 0 else []:
            _log.info("step %d: %s", step, text)
        self._told = len(control.lines)

    def _progress(self, control: Control) -> str:
        done = min(max(0, self._step - control.pace.warmup), control.pace.measured)
        return f"measuring ({done} of {control.pace.measured} steps)"

    def report(self) -> str:
        """Text for users: a line for each measurement, prediction and decision, with its step. The last line is the present
        state."""
        control = self._control
        if control is None:
            return f"gradients are averaged as plain DDP does: {self._unfit}"
        now = f"{control.phase.value}; {control.ways[control.kept].what}"
        if control.phase is Phase.MEASURE:
            now = self._progress(control)
        return "\n".join([*(f"step {step}: {text}" for step, text in control.lines), f"step {self._step}: {now}"])

    def discard(self) -> None:
        """Undoes the last step of the present way, as Hook.discard() does; without effect while plain DDP averages. Raises the
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
        gradient's name (fp32, in the gradient's shape), for a job with another number of ranks. Each rank saves its own. Call it
        between steps. Raises the failure if the job has failed."""
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
        job plans anew, and residuals of the former ranks go into the first step. A rank may then load a list of several states,
        or an empty list. A state that no rank loads is lost, and a line of report() says so.

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
            # Scales a mean over the former ranks to one over these. Each former rank counts once.
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
        """Opens the kept way of a state, with the state of its compression."""
        control, way = self._control, json.loads(state["way"])
        if control is None or not way:
            return
        if self._links.is_posted:
            self._links.collect()
        self._stop_capture()
        self._model = state["model"]
        hook = self._hook_of(Candidate(*way))
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
        self._stop_capture()
        if self._before_forward is not None and self._failure is None:
            self._before_forward.remove()
        for hook in self._open.values():
            hook.close()
        self._links.close()
        if self._control is not None and self._planning is not None:
            self._planning.close()


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


class _Nothing:
    """Stand-in for the engine while plain DDP averages. Its use raises InvalidRequest."""

    closed = False

    def close(self) -> None:
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        raise InvalidRequest("plain DDP averages this model's gradients now: attach with a plan to compare it")


__all__ = ["AutoHook"]
