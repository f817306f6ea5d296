"""A model of fully_shard() that measures itself, plans, and switches to a plan that is faster."""

import collections.abc
import dataclasses
import functools
import json
import logging
import os
import pathlib
import statistics
import tempfile
import time
import weakref
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from hipress import _arguments, _ddp, _fsdp, _model_file, _states
from hipress._clocks import CudaClock, HostClock
from hipress._control import PLAIN, Candidate, Control, Pace
from hipress._engine import Error, InvalidRequest
from hipress._fsdp import Plan, ShardedHook
from hipress._library import Gradient
from hipress._self_planning import SelfPlanning
from hipress._shards import Gather, Reduction, Unit

_Path = Union[str, "os.PathLike[str]"]
_log = logging.getLogger("hipress")
#: Name of the states' owner in messages.
_OWNER = "hipress.attach(model)"
#: Layer, in the model file, of the parameters that belong to the root.
_ROOT = "root"
#: Methods of a parameter group in which it waits for messages.
_WAITING = ("unshard", "wait_for_unshard", "post_backward")


class _Part(NamedTuple):
    """Parameter group of a model, with its module, its name, and its own collectives."""

    name: str
    module: Any
    group: Any
    gather: Any
    reduction: Any


class _Pass:
    """Marks of one forward and backward pass on the clock: its beginning, the beginning of backward, the end of backward, waits for
    messages, and when each group's gradients were ready."""

    def __init__(self, called: Any) -> None:
        self.called = called
        self.backward: Any = None
        self.ended: Any = None
        self.waits: List[Tuple[Any, Any]] = []
        self.ready: Dict[int, Tuple[Any, int]] = {}  #: mark, and number of waits before it, by the group's number
        self.waits_before = 0  #: number of waits before backward
        self.reduces = False

    def forward_s(self, clock: Any) -> float:
        return float(clock.seconds(self.called, self.backward)) - _sum(clock, self.waits[:self.waits_before])

    def ready_s(self, clock: Any, number: int) -> float:
        mark, waits = self.ready[number]
        return float(clock.seconds(self.backward, mark)) - _sum(clock, self.waits[self.waits_before:waits])


def _sum(clock: Any, waits: Sequence[Tuple[Any, Any]]) -> float:
    return sum((float(clock.seconds(*wait)) for wait in waits), 0.0)


class _Times:
    """Times of a model's computation, measured in the methods of its parameter groups while ranks go on training. It always knows
    how long a step has waited for messages, and records passes between start() and stop()."""

    def __init__(self, parts: Sequence[_Part], undone_by: Any) -> None:
        self._parts = list(parts)
        cuda = any(one.sharded_param.is_cuda for part in parts for one in part.group.fsdp_params)
        self.clock: Any = CudaClock() if cuda else HostClock()
        self.waited_s = 0.0
        self.reduced = True  #: true if gradients were reduced since this was last set to false
        self._records = False
        self._inner = 0  #: number of measured methods that run within each other
        self._passes: List[_Pass] = []
        for number, part in enumerate(parts):
            for name in _WAITING:
                undone_by(functools.partial(part.group.__dict__.pop, name, None))
                setattr(part.group, name, functools.partial(self._wait, number, name, getattr(part.group, name)))
            undone_by(functools.partial(part.group.__dict__.pop, "pre_backward", None))
            part.group.pre_backward = functools.partial(self._begin_backward, part.group.pre_backward)

    def start(self) -> None:
        self._records, self._passes = True, []

    def stop(self) -> None:
        self._records = False

    def call(self) -> None:
        """Notes the beginning of a forward pass."""
        if self._records:
            self._passes.append(_Pass(self.clock.mark()))

    @property
    def _now(self) -> Optional[_Pass]:
        return self._passes[-1] if self._records and self._passes and self._passes[-1].ended is None else None

    def _wait(self, number: int, name: str, method: Any, *arguments: Any, **named: Any) -> Any:
        now = self._now
        if name == "post_backward":
            self.reduced = self.reduced or self._parts[number].group.reduce_grads
            if now is not None and now.backward is not None:
                now.reduces = now.reduces or self._parts[number].group.reduce_grads
                now.ready.setdefault(number, (self.clock.mark(), len(now.waits)))
        if self._inner:
            return method(*arguments, **named)
        began, began_s = self.clock.mark() if now is not None else None, time.perf_counter()
        self._inner += 1
        try:
            return method(*arguments, **named)
        finally:
            self._inner -= 1
            self.waited_s += time.perf_counter() - began_s
            if now is not None:
                now.waits.append((began, self.clock.mark()))

    def _begin_backward(self, method: Any, *arguments: Any, **named: Any) -> Any:
        now = self._now
        if now is not None and now.backward is None:
            now.backward, now.waits_before = self.clock.mark(), len(now.waits)
            # Runs after FSDP2's own callback, which waits for the last reductions.
            _ddp._queue_callback(functools.partial(self._end, now))
        return method(*arguments, **named)

    def _end(self, one: _Pass) -> None:
        one.ended = self.clock.mark()

    def text(self, name: str, layers: Sequence[Tuple[str, List[Tuple[str, Tuple[int, ...], bool]]]], warmup: int) -> str:
        """Returns the YAML of a model. `layers` has each group's layer and parameters. Raises ValueError if no pass was
        complete after the first `warmup`."""
        passes = self._passes[warmup:]
        following = dict(zip(map(id, passes), passes[1:]))
        whole = [one for one in passes if one.ended is not None and id(one) in following]
        if not whole:
            raise ValueError("no pass through the model was complete: it has to be called, and its backward to reach its parameters")
        seconds = self.clock.seconds
        forward_s = statistics.median(one.forward_s(self.clock) for one in whole)
        reduced = [one for one in whole if one.reduces]
        optimizer_s = statistics.median(seconds(one.ended, following[id(one)].called) for one in reduced or whole)
        ready = {number: statistics.median(one.ready_s(self.clock, number) for one in whole if number in one.ready)
                 for number in {number for one in whole for number in one.ready}}
        last_s = max(ready.values(), default=0.0)
        lines = ["# Written by hipress.attach.", f"schema: {_model_file.SCHEMA}", f"name: {_model_file.quoted(name)}",
                 f"source: Captured from {len(whole)} passes of PyTorch {torch.__version__}.",
                 f"forward: {_model_file.microseconds(forward_s)}", f"optimizer: {_model_file.microseconds(optimizer_s)}",
                 *([f"threads: {torch.get_num_threads()}"] if self.clock.on_cores else []),
                 f"micro_steps: {max(1, round(len(whole) / max(1, len(reduced))))}",
                 "gradients:  # in backward order, ready since backward began"]
        for number in sorted(range(len(layers)), key=lambda one: ready.get(one, last_s)):
            layer, parameters = layers[number]
            for parameter, shape, is_trained in parameters:
                if is_trained and 0 not in shape:
                    lines.append(f"- {{name: {_model_file.quoted(parameter)}, elements: {torch.Size(shape).numel()}, "
                                 f"ready: {_model_file.microseconds(ready.get(number, last_s))}, layer: {_model_file.quoted(layer)}"
                                 f"{', shape: ' + str(list(shape)) if shape else ''}}}")
        return "\n".join(lines) + "\n"


@dataclasses.dataclass
class _Way:
    """Collectives of a plan by the group's number (None: FSDP2's own), and the hook with their state."""

    hook: ShardedHook
    gathers: List[Optional[Gather]]
    reductions: List[Optional[Reduction]]

    def close(self) -> None:
        self.hook.close()


class AutoShards(SelfPlanning, ShardedHook):
    """Hook that attach() returns for a model of fully_shard() if no plan is given. Groups are gathered and reduced by FSDP2's own
    collectives, or by those of the way that Control (_control.py) has chosen. Arguments are those of attach().

    A step begins with the first forward of the root after gradients were reduced. All ranks call the root together, because a
    forward gathers its parameters."""

    _plain, _baseline = "plain FSDP2", None

    def __init__(self, model: Any, *, seed: int = 1, algorithms: Optional[str] = None, profile: Optional[_Path] = None,
                 timeout: Optional[float] = None, silence: Optional[float] = None, network: Optional[str] = None,
                 pace: Pace = Pace()) -> None:
        _arguments.job(seed=seed, timeout=timeout, silence=silence, network=network, algorithms=algorithms)
        found = _fsdp.groups_of(model)
        mesh = found[0][2].mesh_info
        group = mesh.shard_process_group
        ShardedHook.__init__(self, _fsdp.units_of(model, found), seed, group, "auto", getattr(mesh, "replicate_process_group", None))
        self._seed = seed
        self._model_of = weakref.ref(model)
        self._parts = [_Part(name or _ROOT, module, one, one._all_gather_comm, one._reduce_scatter_comm) for name, module, one in found]
        self._layers = [(part.name, _fsdp.parameters_of(model, part.group)) for part in self._parts]
        self._trained = [Gradient(parameter, shape) for _, parameters in self._layers for parameter, shape, is_trained in parameters
                         if is_trained and 0 not in shape]
        self._name = type(model).__name__.replace("FSDP", "", 1)
        unfit = self._unfit_of(model)
        schedule = "" if unfit else _schedule_of(model, self._parts)
        patience = _ddp._patience(timeout, silence, group, -1)
        same = {"plan": "auto", "model": repr(self._layers), "algorithm": "onebit", "algorithms": algorithms, "topology": "ring",
                "seed": seed, "rendezvous": None, "schedule": schedule, **patience}
        self._meet(group, same, network, pace, unfit, {"schedule": schedule}, algorithms, profile, None, [])
        self._closed = False
        self._times = _Times(self._parts, self.undone_by)
        self.undone_by(model.register_forward_pre_hook(self._before_forward, prepend=True).remove)
        self.undone_by(functools.partial(self._use, PLAIN))
        self._in_use = PLAIN
        _fsdp.register(model, self)
        if self._control is not None:
            self._start_capture(self._control)

    def _unfit_of(self, model: Any) -> str:
        if len(self._groups) > 1:
            return "shards are replicated, and only a plan that is given treats both meshes"
        kept = {_fsdp.kept_among(part.group) for part in self._parts if part.module is not model}
        if len(kept) > 1 or kept - {1, self.shard}:
            return "modules are resharded after forward in different ways, or among a part of the ranks"
        try:
            _fsdp.require_setters(model)
        except InvalidRequest as error:
            return str(error)
        return "" if self._trained else "the model has no parameters that are trained"

    @property
    def failure(self) -> Optional[Error]:
        """Error of an open way; None if none has failed."""
        return next((way.hook.failure for way in self._open.values() if way.hook.failure is not None), None)

    def _before_forward(self, _module: Any, _arguments: Any) -> None:
        if self._closed or not torch.is_grad_enabled():
            return
        if self._times.reduced:
            self._times.reduced = False
            self._waited_s, self._times.waited_s = self._times.waited_s, 0.0
            self._begin_step()
            self._use(self._way)
        self._times.call()

    def _use(self, number: int) -> None:
        """Lets a way's collectives gather and reduce."""
        if number == self._in_use:
            return
        self._in_use, way = number, self._open.get(number)
        for place, part in enumerate(self._parts):
            gather, reduction = (None, None) if way is None else (way.gathers[place], way.reductions[place])
            part.module.set_custom_all_gather(gather if gather is not None else part.gather)
            part.module.set_custom_reduce_scatter(reduction if reduction is not None else part.reduction)

    def _start_capture(self, control: Control) -> None:
        self._warmup = control.pace.warmup
        if self._job.rank == 0:
            self._times.start()

    def _captured(self) -> str:
        return self._times.text(self._name, self._layers, self._warmup)

    def _stop_capture(self) -> None:
        self._times.stop()

    def _hook_of(self, way: Candidate) -> _Way:
        model = self._model_of()
        assert model is not None
        units = [Unit(one.number, one.name, one.parameters) for one in self.units]
        hook = ShardedHook(units, self._seed, self._group, way.what)

        def read() -> Plan:
            with tempfile.TemporaryDirectory(prefix="hipress-auto-") as folder:
                file = pathlib.Path(folder, "plan.yaml")
                file.write_text(way.text)
                return Plan(str(file), "none", self.shard, self._trained)

        try:
            hook.decide(read)
            keeping = [algorithm for algorithm, codec in hook.messages.codecs.items() if codec.keeps]
            if keeping:
                raise InvalidRequest(f"{keeping[0]} keeps residuals, which a change of plans would lose: leave it out of algorithms=")
        except BaseException:
            hook.close()
            raise
        return _Way(hook,
                    [None if unit.gather is None else Gather(hook.messages, unit, part.gather) for unit, part in zip(units, self._parts)],
                    [None if unit.reduction is None else Reduction(hook.messages, unit, part.reduction)
                     for unit, part in zip(units, self._parts)])

    def _close_way(self, way: _Way) -> None:
        way.close()

    def discard(self) -> None:
        """Declares that the gradients of the last step are not applied. Ways keep no residuals, so there is nothing to restore."""

    def state_dict(self) -> Dict[str, Any]:
        """Returns this rank's state between steps: the kept plan, its model, and the numbers of gathers and reductions, which select
        the random draws. Call it between steps. Raises the failure if the job has failed."""
        if self.failure is not None:
            raise self.failure
        kept = self._open.get(self._control.kept) if self._control is not None else None
        way, state = (), {}  # type: Any, Any
        if kept is not None and self._control is not None:
            way, state = dataclasses.astuple(self._control.ways[self._control.kept]), kept.hook.state_dict()
        return {"rank": self._job.rank, "ranks": self.shard, "state": state, "way": json.dumps(way), "model": self._model}

    def load_state_dict(self, state: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> None:
        """Restores state_dict(), under the same model and seed. Every rank calls it, between steps. With the same number of ranks,
        the job goes on with the plan; with another number, it plans anew. Raises InvalidRequest for an invalid state, which changes
        nothing, and the failure if the job has failed."""
        if self.failure is not None:
            raise self.failure
        states = [state] if isinstance(state, collections.abc.Mapping) else list(state)
        for one in states:
            _states.require(one, _OWNER, {"ranks": int, "rank": int, "state": dict, "way": str, "model": str})
        if len(states) != 1 or states[0]["ranks"] != self.shard or self._control is None:
            return
        way = json.loads(states[0]["way"])
        if not way:
            return
        opened = self._resume(Candidate(*way), states[0]["model"])
        try:
            opened.hook.load_state_dict(states[0]["state"])
        except BaseException:
            opened.close()
            raise
        self._open[self._control.resume(self._step, Candidate(*way))] = opened
        self._close_ways(self._control)

    def close(self) -> None:
        """Restores the model's own collectives, and ends all threads. Calls after the first do nothing."""
        if self._closed:
            return
        self._closed = True
        ShardedHook.close(self)
        self._close_planning()


def _schedule_of(model: Any, parts: Sequence[_Part]) -> str:
    """Schedule in the planner's words that the modules follow: FSDP2 gathers ahead of a backward pass, and a layer or more ahead."""
    below = [part for part in parts if part.module is not model]
    reshard = any(_fsdp.kept_among(part.group) > 1 for part in below)
    in_flight = max(_fsdp.gathered_ahead(part.module) for part in parts) + 1
    shared = all(getattr(part.group.mesh_info, "reduce_scatter_process_group", None) in (None, part.group.mesh_info.shard_process_group)
                 for part in parts)
    return (f"fsdp(reshard={'true' if reshard else 'false'}, prefetch=pre, in_flight={in_flight}, "
            f"communicators={'shared' if shared else 'separate'})")


__all__ = ["AutoShards"]
