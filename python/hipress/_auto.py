"""A DistributedDataParallel that measures itself, plans, and switches to a plan that is faster."""

import collections
import collections.abc
import dataclasses
import functools
import hashlib
import json
import logging
import math
import os
import pathlib
import secrets
import statistics
import sys
import tempfile
import time
import weakref
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import _arguments, _ddp, _job, _job_report, _output, _planning, _residuals, _states
from hipress._capture import Capture
from hipress._control import PLAIN, Act, Candidate, Control, Pace, Phase, Report
from hipress._ddp import GradBucket, Hook
from hipress._engine import Error, InvalidRequest, RankLost
from hipress._job import Wish
from hipress._links import LinkEngine

_Path = Union[str, "os.PathLike[str]"]
_log = logging.getLogger("hipress")
#: Name of the states' owner in messages.
_OWNER = "hipress.attach(model)"
#: Largest number of parameters of which ranks compare a value, and largest difference, as a share of rank 0's largest value.
_MOST_COMPARED, _ROUNDED = 64, 1e-3
#: Number of latest steps whose times are kept: more than a window has.
_MOST_SEEN = 256


class _Beside(Capture):
    """Capture during which ranks go on averaging."""

    def _keep_apart(self, part: DistributedDataParallel) -> None:
        return None

    def waited(self, began: Any, ended: Any) -> None:
        """Excludes a wait for the other ranks, between two marks of the clock, from the time between the last backward and the next
        step."""
        if self._started and self._passes:
            self._passes[-1].waits.append((began, ended))


class _Card(NamedTuple):
    """Data that a rank tells the others: its machine, a unique name for its entries in the store, the reason why only plain DDP can
    average (empty if a plan can), true if the rank measures kernels first, and the values of _content_of()."""

    machine: str
    token: str
    unfit: str
    profiles: bool
    content: List[float]


class AutoHook(Hook):
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
        self._unfit = _unfit(ddp)
        patience = _ddp._patience(timeout, silence, ddp.process_group, -1)
        same = {"plan": "auto", "model": _layout_of(ddp), "algorithm": algorithm, "algorithms": algorithms, "topology": "ring",
                "seed": seed, "rendezvous": rendezvous, **patience}
        self._profiling: Optional[_planning.Profiling] = None
        self._links = LinkEngine(ddp.process_group, lambda: Wish([], -1, same, network))
        self._job = self._links.job
        try:
            cards = self._job.group.exchange(functools.partial(self._prepare, ddp, topology, algorithms, profile, pilot))
            _require_same_content(self._job, [one.content for one in cards])
        except BaseException:
            self._links.close()
            if self._profiling is not None:
                self._profiling.close()
            raise
        if former is not None:
            former.close()
        self._store = dist.PrefixStore(f"hipress/auto/{cards[0].token}", dist.distributed_c10d._get_default_store())
        self._ddp = weakref.ref(ddp)
        self._before_forward = ddp.register_forward_pre_hook(self.before_forward)
        _ddp._hooks[ddp] = self
        ranks = self._job.ranks
        self._control: Optional[Control] = None
        self._planning: Optional[_planning.Planning] = None
        self._unfit = cards[0].unfit
        if not self._unfit:
            self._control = Control(pace, [self._job.group.numbers.of(place) for place in range(ranks)], cards[0].profiles)
            self._planning = self._planning_of([one.machine for one in cards]) if self._job.rank == 0 else None
        self._open: Dict[int, Hook] = {}  #: hooks by way
        self._model, self._uncaptured = "", ""  #: YAML of the captured model, or the reason of a failed capture
        self._way = PLAIN
        self._step, self._within = 0, False
        self._mark_s: Optional[float] = None
        self._handed_s = self._waited_s = 0.0
        #: Number, way, seconds, and seconds without waits of each step.
        self._seen: Deque[Tuple[int, int, float, float]] = collections.deque(maxlen=_MOST_SEEN)
        self._told = 0  #: number of the control's lines that were logged
        self._fetches = 0  #: number of times that rank 0 has passed something to all ranks
        #: Residuals of closed ways, by the gradient's name: held ones, and those that the current step has added to its gradients.
        self._held: Dict[str, torch.Tensor] = {}
        self._added: Dict[str, torch.Tensor] = {}
        self._names = {id(parameter): name for name, parameter in ddp.module.named_parameters()}
        self._capture: Optional[_Beside] = None
        if self._control is not None and self._planning is not None:
            _ddp._warn_of_hooked_parameters(_ddp._parameters_of(ddp))
            self._start_capture(self._control)

    def _prepare(self, ddp: DistributedDataParallel, topology: Optional[str], algorithms: Optional[str], profile: Optional[_Path],
                 pilot: Optional[_Path]) -> "_Card":
        """Returns this rank's card. Rank 0 prepares the request for plans."""
        if self._unfit or self._job.ranks == 1:
            self._unfit = self._unfit or "there is one rank"
        elif self._job.rank == 0:
            algorithms = algorithms if algorithms is not None or pilot is not None else _planning.ALGORITHMS
            try:
                if profile is None:
                    profiled = algorithms or _planning.ALGORITHMS, min(self._job.ranks, 4)
                    profile = _planning.profile_path(*profiled)
                    if not profile.is_file():
                        self._profiling = _planning.Profiling(profile, *profiled)
            except Error as error:
                self._unfit = str(error)
                _log.warning("plain DDP averages: %s", error)
                profile = ""
            self._request = {"nnodes": self._job.ranks, "profile": os.fspath(profile), "topology": topology or "BEST",
                             "pilot": None if pilot is None else os.fspath(pilot)}
            self._algorithms = algorithms
        return _Card(_job.machine(), secrets.token_hex(8), self._unfit, self._profiling is not None, _content_of(ddp))

    def _planning_of(self, hosts: List[str]) -> _planning.Planning:
        ranks, count = len(hosts), len(set(hosts))
        each = ranks // count
        regular = all(len(set(hosts[first:first + each])) == 1 for first in range(0, ranks, each))
        per_host = 0 if count == 1 else each if regular else 1
        return _planning.Planning({**self._request, "nodes_per_host": per_host}, self._algorithms, self._profiling)

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
        """Records the time of the previous step, and performs the control's acts, which are due on all ranks."""
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

        ready = False
        if control.phase is Phase.PROFILE and self._profiling is not None:
            ready = not self._profiling.is_alive()
        elif control.phase is Phase.PLAN and self._planning is not None:
            ready = self._planning.is_ready
        if ready:
            self._pass_on(control)
        return Report(median(control.kept, 2), median(control.tried, 2), median(control.kept, 3), float(ready))

    def _pass_on(self, control: Control) -> None:
        """Puts the result of rank 0's profiling or planning into the store. Other ranks are told later, and need not wait for
        it."""
        made: Any = self._profiling if control.phase is Phase.PROFILE else self._planning
        rows = [] if control.phase is Phase.PROFILE else [dataclasses.astuple(one) for one in made.candidates]
        self._store.set(f"passed {self._fetches}", json.dumps([self._model, rows, made.seconds, made.failure]))

    def _fetched(self) -> List[Any]:
        """Returns the list that rank 0's next _pass_on() has put, or will put, into the store."""
        self._fetches += 1
        fetched: List[Any] = json.loads(self._store.get(f"passed {self._fetches - 1}"))
        if fetched[3] and self._job.rank == 0:
            _log.warning("plain DDP averages on: %s", fetched[3])
        return fetched

    def _act(self, control: Control, step: int, acts: List[Act]) -> None:
        """Performs acts of the control, and the acts that these entail."""
        acts = list(acts)
        while acts:
            act = acts.pop(0)
            if act is Act.PROFILED:
                acts += control.profiled(step, *self._fetched()[2:])
            elif act is Act.CAPTURE:
                self._start_capture(control)
            elif act is Act.PROBE:
                acts += control.measured_links(step, self._links.burst())
            elif act is Act.FEEL:
                assert control.links is not None
                acts += control.felt(step, self._links.feel(control.links))
            elif act is Act.PLAN:
                self._start_planning(control)
            elif act is Act.FETCH:
                acts += self._fetch(control, step)
            elif act is Act.CLOSE:
                self._close_ways(control)
            else:
                acts += self._open_way(control, step)

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

    def _start_planning(self, control: Control) -> None:
        if self._planning is None or control.links is None:
            return
        try:
            if self._capture is not None:
                self._model = self._capture.text()
        except Exception as error:  # training goes on without a plan
            self._model, self._uncaptured = "", str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if self._model:
            self._planning.start(self._model, control.links, control.ways[control.kept].text, control.step_s)
        else:
            self._planning.give_up(self._uncaptured)
        self._stop_capture()

    def _stop_capture(self) -> None:
        if self._capture is not None:
            self._capture.stop()
            self._capture = None

    def _fetch(self, control: Control, step: int) -> List[Act]:
        """Takes over rank 0's candidates. Returns the ranks' next acts."""
        self._model, rows, seconds, failure = self._fetched()
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
        """Holds added residuals again if their means are not applied, because a loss scaler skips the step or no rank has used the
        parameter."""
        ddp = self._ddp()
        added, self._added = self._added, {}
        unused = {self._names.get(id(one), "") for one in self._untouched()}
        if ddp is None:
            return
        finite = all(bool(torch.isfinite(one.grad).all()) for one in ddp.module.parameters() if one.grad is not None)
        self._hold({name: residual for name, residual in added.items() if not finite or name in unused})

    def _tell(self, control: Control) -> None:
        """Logs the control's new lines."""
        if self._step == control.window[0] and control.phase is Phase.MEASURE:
            control.say(self._step, self._progress(control))
        for step, text in control.lines[self._told:] if self._job.rank == 0 else []:
            _log.info("step %d: %s", step, text)
        self._told = len(control.lines)

    def _progress(self, control: Control) -> str:
        first, end = control.window
        return f"measuring ({min(max(0, self._step - first), end - first)} of {end - first} steps)"

    def report(self, path: Optional[_Path] = None) -> str:
        """Text for users: a line for each measurement, prediction and decision, with its step. The last line has the current state.
        With a path, rank 0 also writes an HTML page: predictions beside measurements, these lines, and the planner's page of the
        plan that is kept, or else was tried last. Raises OSError if it cannot be written."""
        text = self._text()
        if path is not None and self._job.rank == 0:
            trials = [] if self._control is None else self._control.trials
            _output.write_whole(path, _job_report.page(self._page(), trials, text.splitlines()))
        return text

    def _page(self) -> str:
        """Returns the planner's page of the plan that is kept, or else was tried or planned last; an empty text without any."""
        if self._control is None or self._planning is None:
            return ""
        pages = self._planning.pages
        texts = [self._control.ways[self._control.kept].text, *(one.way.text for one in reversed(self._control.trials)),
                 *reversed(pages)]
        return next((pages[text] for text in texts if text in pages), "")

    def _text(self) -> str:
        control = self._control
        if control is None:
            return f"gradients are averaged as plain DDP does: {self._unfit}"
        now = f"{control.phase.value}; {control.ways[control.kept].what}"
        if control.phase is Phase.MEASURE:
            now = self._progress(control)
        return "\n".join([*(f"step {step}: {text}" for step, text in control.lines), f"step {self._step}: {now}"])

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


def _require_same_content(job: Any, contents: List[List[float]]) -> None:
    """Raises InvalidRequest, on all ranks, if a rank's values differ from rank 0's by more than rounding: that rank attaches
    another model with the same layout."""
    for place, values in enumerate(contents):
        if not all(math.isclose(one, other, rel_tol=_ROUNDED, abs_tol=_ROUNDED * max(map(abs, contents[0])))
                   for one, other in zip(values, contents[0]) if math.isfinite(one) and math.isfinite(other)):
            raise InvalidRequest(f"{job.group.numbers.name(place)} calls hipress.attach for a model of the same shape as "
                                 f"{job.group.numbers.name(0)}'s, with other values: attach models in the same order on all ranks, "
                                 "and let DistributedDataParallel make their parameters equal")


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
