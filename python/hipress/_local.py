"""Training by local updates: ranks train alone, and average the changes of their weights."""

import contextlib
import copy
import functools
import os
import types
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Type, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import _arguments, _ddp, _library, _residuals, _states
from hipress._engine import Error, InvalidRequest, RankLost
from hipress._errors import warn
from hipress._job import Job, Wish
from hipress._library import CTensor, Gradient
from hipress._schedule import LocalSchedule, parse_schedule

_Path = Union[str, "os.PathLike[str]"]
_Weights = List[torch.nn.Parameter]
_Optimizers = Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer]]
_CALLER = "hipress.LocalUpdates"
#: Largest number of steps of a training.
_MOST_STEPS = 1 << 62
#: Default alpha for schedules with an overlap, from the papers.
_OVERLAPPED_ALPHA = 0.5
#: Local updates by model.
_of_models: "weakref.WeakKeyDictionary[torch.nn.Module, LocalUpdates]" = weakref.WeakKeyDictionary()


def _outer_sgd(weights: _Weights) -> torch.optim.Optimizer:
    """Default outer optimizer, DiLoCo's."""
    return torch.optim.SGD(weights, lr=0.7, momentum=0.9, nesterov=True)


class _Fragment:
    """Part of the model. `local` are this rank's weights. `outer` are the weights that the outer optimizer made from the means that
    arrived last (at first, the initial weights), in fp32 and equal on all ranks. While ranks average the fragment, `means` holds
    this rank's differences, and then their means."""

    def __init__(self, first: int, names: List[str], local: _Weights) -> None:
        self.first, self.names, self.local = first, names, local
        self.outer = [torch.nn.Parameter(weight.detach().float().clone(memory_format=torch.contiguous_format)) for weight in local]
        self.begun = 0  #: step at whose end it was last sent
        self.means: Optional[List[torch.Tensor]] = None
        self.arrived = False  #: true once `means` holds the means
        self.event: Any = None  #: CUDA event that follows the differences, which the engine polls; None on the host

    def differences(self) -> List[torch.Tensor]:
        """Outer weights minus this rank's, in fp32: the outer optimizer's gradient before averaging."""
        return [(outer.detach() - local.detach().float()).contiguous() for outer, local in zip(self.outer, self.local)]

    def merge(self, alpha: float) -> None:
        """Sets this rank's weights to α times themselves plus 1 - α times the outer weights."""
        for outer, local in zip(self.outer, self.local):
            local.copy_(outer if alpha == 0 else alpha * local.float() + (1 - alpha) * outer)


class _StepHook:
    """Calls `then` after each step() of an optimizer, by PyTorch's own hook. For PyTorch before 2.0, which has none, wraps the
    optimizer's method; learning-rate schedulers may wrap it in turn."""

    def __init__(self, optimizer: torch.optim.Optimizer, then: Callable[[], None]) -> None:
        self._then: Optional[Callable[[], None]] = then
        register = getattr(optimizer, "register_step_post_hook", None)
        self._handle = register(lambda *_: self._call()) if register is not None else None
        if register is None:
            self._wrap(optimizer)

    def _wrap(self, optimizer: torch.optim.Optimizer) -> None:
        inner = optimizer.step

        @functools.wraps(inner)
        def step(_optimizer: torch.optim.Optimizer, *arguments: Any, **named: Any) -> Any:
            loss = inner(*arguments, **named)
            self._call()
            return loss

        optimizer.step = types.MethodType(step, optimizer)  # type: ignore[method-assign]

    def _call(self) -> None:
        if self._then is not None:
            self._then()

    def remove(self) -> None:
        """Ends the calls."""
        self._then = None
        if self._handle is not None:
            self._handle.remove()


class _Steps:
    """Calls `then` after each step. A step is over when every optimizer has taken one since the previous step."""

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], then: Callable[[], None]) -> None:
        self._count, self._then = len(optimizers), then
        self._stepped: Set[int] = set()
        self._hooks = [_StepHook(optimizer, functools.partial(self._note, number)) for number, optimizer in enumerate(optimizers)]

    def _note(self, number: int) -> None:
        self._stepped.add(number)
        if len(self._stepped) == self._count:
            self._stepped.clear()
            self._then()

    def remove(self) -> None:
        """Ends the calls."""
        for hook in self._hooks:
            hook.remove()


class LocalUpdates:
    """Trains by local updates (DiLoCo, Streaming DiLoCo). Every rank trains alone; after a number of steps of its optimizer, the
    ranks average the changes of their weights. An outer optimizer takes the mean of these changes as its gradient, and its weights
    become those of all ranks. Every rank makes this object before the first step, and then trains as if it were alone:

        with hipress.LocalUpdates(model, optimizer, schedule="local(steps=100, fragments=4, overlap=1)"):
            for batch in batches:
                ...
                optimizer.step()

    model            plain torch.nn.Module on one device, not a DistributedDataParallel. It gets rank 0's parameters and buffers
    optimizer        torch.optim.Optimizer of its parameters, or a list of optimizers that have all of them together. A step is over
                     when each optimizer has taken one step()
    outer_optimizer  function of a list of parameters, the outer weights, that returns their optimizer; None: that of the papers,
                     SGD(lr=0.7, momentum=0.9, nesterov=True)
    plan             compression of the differences: a file of hipress-plan, or none, all, or an algorithm such as int4block
    schedule         local(steps=H, fragments=P, every=E, pattern=strided, overlap=T): each of P fragments of the model is averaged
                     once in H steps, one every E steps (default H / P, rounded down), while training continues for T steps; None:
                     the plan file's, or local(steps=100). A plan for a different schedule is refused
    alpha            share, from 0 to 1, of its own weights that a rank keeps when a fragment's mean arrives; None: 0 without an
                     overlap, and 0.5 with one
    algorithm        codec for plan entries that are compressed but name none
    topology         ring, ps, allreduce or allgather; default: the plan file's, or ring
    timeout          seconds without progress after which the job fails; default: that of the process group. A rank that
                     reaches a fragment's turn this much later than others counts as lost
    silence          seconds without a heartbeat after which a rank counts as lost; default: as for hipress.attach
    seed             seed of random draws
    rendezvous       meeting point of the ranks: file:///shared/folder or redis://host:port; default: PyTorch's own key-value store
    network          network interface or address to use; default: as for hipress.attach
    process_group    process group of the ranks that train the model; None: all ranks
    log_every        steps between two lines of rank 0 in the logger hipress, at level INFO, with the ratios of residuals to
                     differences (statistics()). A line waits until no fragment is being averaged. 0: no lines

    Raises InvalidRequest for models, optimizers and arguments that local updates cannot train, RankLost if another rank fails, and
    Error for any other failure. step() raises the last two if a fragment is sent or awaited at its end. A `with` block ends with
    finish(); after an exception it ends the job of all ranks."""

    def __init__(self, model: torch.nn.Module, optimizer: _Optimizers,
                 outer_optimizer: Optional[Callable[[_Weights], torch.optim.Optimizer]] = None, plan: _Path = "none", *,
                 schedule: Optional[str] = None, alpha: Optional[float] = None, algorithm: str = "onebit",
                 topology: Optional[str] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
                 rendezvous: Optional[str] = None, network: Optional[str] = None,
                 process_group: Optional[dist.ProcessGroup] = None, log_every: int = _residuals.EVERY) -> None:
        _arguments.job(seed=seed, timeout=timeout, silence=silence, topology=topology, rendezvous=rendezvous, network=network,
                       schedule=schedule, plan=str(plan), algorithm=str(algorithm))
        self._log = _residuals.ResidualLog(self.statistics, log_every)
        model = _module_of(model)
        if not (dist.is_available() and dist.is_initialized()):
            raise InvalidRequest("the ranks do not know each other yet: call torch.distributed.init_process_group() first")
        group = process_group if process_group is not None else dist.group.WORLD
        plan = str(plan)
        outer_of = _outer_sgd if outer_optimizer is None else outer_optimizer
        optimizers: List[torch.optim.Optimizer] = []
        parameters: Dict[str, torch.nn.Parameter] = {}
        parts: List[List[str]] = []

        def wish() -> Wish:
            """Describes a job whose gradients are the differences, fragment after fragment."""
            optimizers.extend(_optimizers_of(optimizer))
            parameters.update(_trained_by(model, optimizers))
            self._schedule = _schedule_of(plan, schedule)
            self._alpha = _share(alpha, _OVERLAPPED_ALPHA if self._schedule.overlap else 0.0)
            parts.extend(self._schedule.fragments_of(list(parameters)))
            if not callable(outer_of):
                raise InvalidRequest(f"outer_optimizer is a {type(outer_of).__name__}, which has no outer weights: give a function "
                                     "that makes it of them, such as lambda weights: torch.optim.SGD(weights, lr=0.7, "
                                     "momentum=0.9, nesterov=True)")
            device = _ddp._device_of(parameters)
            gradients = [Gradient(name, tuple(parameters[name].shape)) for names in parts for name in names]
            return Wish(gradients, device, {
                "plan": plan, "algorithm": str(algorithm), "topology": topology or _ddp._said_by(plan, "topology", "ring"),
                "seed": seed, "rendezvous": rendezvous, "schedule": str(self._schedule), "alpha": self._alpha,
                **_ddp._patience(timeout, silence, group, device)}, network,
                fragments=[part for part, names in enumerate(parts) for _ in names])

        self._job, wished = Job.meet(group, wish, _CALLER)
        self.engine, self._device = self._job.engine, wished.device
        self._in_one_order = wished.same["topology"] == "allreduce" or _ddp._said_by(plan, "raw", "") == "allreduce"
        try:
            if self._job.rank == 0:
                for note in self.engine.notes.splitlines():
                    warn(note)
            self._begin(model, optimizers, outer_of, parameters, parts, group)
        except BaseException as error:
            self.engine.abort_for(error)
            self.engine.close()
            raise

    def _begin(self, model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer],
               outer_of: Callable[[_Weights], torch.optim.Optimizer], parameters: Dict[str, torch.nn.Parameter],
               parts: List[List[str]], group: Any) -> None:
        self._step = 0  #: number of steps so far
        self._failure: Optional[Error] = None
        self._norms: Dict[str, float] = {}  #: norms of the means that arrived last, by parameter
        self._group = group
        _broadcast([*model.parameters(), *model.buffers()], group)
        self._fragments: List[_Fragment] = []
        first = 0
        for names in parts:
            self._fragments.append(_Fragment(first, names, [parameters[name] for name in names]))
            first += len(names)
        self._outer_optimizer = outer_of(list(self.outer_weights().values()))
        _require_owned([self._outer_optimizer], self.outer_weights(), "outer_optimizer")
        self._steps = _Steps(optimizers, self._after_step)
        self._model = weakref.ref(model)
        _of_models[model] = self

    @property
    def failure(self) -> Optional[Error]:
        """Error with which local updates have failed, such as a RankLost; None if they have not failed."""
        return self._failure

    @property
    def outer_optimizer(self) -> torch.optim.Optimizer:
        """Optimizer of the outer weights, for example for a scheduler of its learning rate."""
        return self._outer_optimizer

    def outer_weights(self) -> Dict[str, torch.nn.Parameter]:
        """Outer weights by the names of the model's parameters: fp32, of the same shapes, equal on all ranks. Evaluate these. A
        fragment's turn overwrites its outer weights: copy them to keep them."""
        return {name: weight for fragment in self._fragments for name, weight in zip(fragment.names, fragment.outer)}

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """Wraps work that needs the other ranks: an exception in it ends the job of all ranks, and later calls raise an Error."""
        if self._failure is not None:
            raise self._failure
        try:
            with torch.no_grad():
                yield
        except RankLost as lost:
            explained = _explained(lost)
            self._end(explained)
            raise explained from None
        except InvalidRequest as error:
            self._abort(error)
            raise
        except Error as error:
            self._end(error)
            raise
        except BaseException as error:
            self._abort(error)
            raise

    def _abort(self, error: BaseException) -> None:
        self.engine.abort_for(error)
        self._end(Error(f"the job was ended by {type(error).__name__}"))

    def _end(self, error: Error) -> None:
        self._failure = error
        self.engine.close()

    def _after_step(self) -> None:
        with self._ending():
            self._step += 1
            for fragment in self._fragments:
                if fragment.means is not None and self._step - fragment.begun >= self._schedule.overlap:
                    self._take(fragment, self._alpha)
            due = self._schedule.due(self._step)
            if due is not None:
                self._send(self._fragments[due])
                if self._schedule.overlap == 0:
                    self._take(self._fragments[due], self._alpha)
            if self._job.rank == 0 and self._log.is_due() and all(fragment.means is None for fragment in self._fragments):
                self._log.tell()

    def _send(self, fragment: _Fragment) -> None:
        """Begins the averaging of a fragment."""
        self._require_known()
        fragment.means, fragment.arrived, fragment.begun = fragment.differences(), False, self._step
        if self._device >= 0:
            fragment.event = torch.cuda.Event()
            fragment.event.record()
        tensors = (CTensor * len(fragment.means))()
        for tensor, values in zip(tensors, fragment.means):
            tensor.data, tensor.elements, tensor.type = values.data_ptr(), values.numel(), _library.FLOAT32
            if fragment.event is not None:
                tensor.on_device, tensor.event = 1, fragment.event.cuda_event
        self.engine.begin(fragment.first, tensors)

    def _wait(self, fragment: _Fragment) -> List[torch.Tensor]:
        """Waits for a fragment that was sent, and returns its means."""
        assert fragment.means is not None
        if not fragment.arrived:
            self.engine.end(fragment.first, len(fragment.means))
        fragment.arrived = True
        return fragment.means

    def _take(self, fragment: _Fragment, alpha: float) -> None:
        """Waits for a fragment's means, and makes the outer optimizer take a step with them."""
        for name, weight, mean in zip(fragment.names, fragment.outer, self._wait(fragment)):
            weight.grad = mean
            self._norms[name] = float(mean.norm())
        self._outer_optimizer.step()
        for weight in fragment.outer:
            weight.grad = None
        fragment.means = None
        fragment.merge(alpha)

    def _require_known(self) -> None:
        """Raises InvalidRequest for a parameter that is trained now, but was not when this object was made: it is not averaged."""
        model = self._model()
        known = {id(weight) for fragment in self._fragments for weight in fragment.local}
        for name, weight in model.named_parameters() if model is not None else ():
            if weight.requires_grad and weight.numel() > 0 and id(weight) not in known:
                raise InvalidRequest(f"the model's '{name}' is trained now, and was not when local updates were made: finish() "
                                     "them before such a change, and make them anew after it")

    def _require_steps(self) -> None:
        """Raises InvalidRequest if weights have changed without a step() of the optimizer: the outer weights would undo the
        training."""
        if self._step == 0 and any(bool(part.any()) for fragment in self._fragments for part in fragment.differences()):
            raise InvalidRequest("the model's weights have changed, and the optimizer took no step: give local updates the "
                                 "optimizer whose step() the training calls; where it changes weights itself, take torch.optim.SGD "
                                 "for it")

    def finish(self) -> None:
        """Ends the training. It averages every fragment once more, gives every rank's model the outer weights and the buffers of
        rank 0, and calls close(). Every rank calls it after the same number of steps. Raises RankLost if another rank fails, and
        Error if the job has ended before."""
        with self._ending():
            self._require_steps()
            for fragment in self._fragments:
                if fragment.means is not None:
                    self._take(fragment, 0.0 if fragment.begun == self._step else self._alpha)
            turn = self._schedule.turns_before(self._step)
            rest = [fragment for fragment in (*self._fragments[turn:], *self._fragments[:turn]) if fragment.begun < self._step]
            for fragment in rest:
                self._send(fragment)
            for fragment in rest:
                self._take(fragment, 0.0)
            for fragment in self._fragments:
                fragment.merge(0.0)
            model = self._model()
            _broadcast(model.buffers() if model is not None else (), self._group)
        self.close()

    def statistics(self) -> Dict[str, float]:
        """Residuals of the differences that this rank has sent, by parameter: the norm of each over the norm of the mean that
        arrived last. Waits for fragments that are being averaged. Raises Error if the job has ended."""
        if self._failure is not None:
            raise self._failure
        self._drop_under_way()
        return _ddp.held_back(self.engine, self._norms)

    def state_dict(self) -> Dict[str, Any]:
        """State of this rank's training, besides the model and its optimizer: outer weights, the outer optimizer's state, the
        number of steps, residuals, and the means of fragments that are being averaged, for which it waits. It is a dictionary of
        tensors, numbers and texts. Each rank puts it, with its own model and optimizer, into its own checkpoint, all after the same
        step. A job that resumes from these computes the same bits as one without interruption. Raises RankLost if another rank
        fails, and Error if the job has ended."""
        with self._ending():
            means = {number: [mean.clone() for mean in self._wait(fragment)]
                     for number, fragment in enumerate(self._fragments) if fragment.means is not None}
            return {"rank": self._job.rank, "ranks": self._job.ranks, "schedule": str(self._schedule), "step": self._step,
                    "begun": [fragment.begun for fragment in self._fragments], "under_way": means,
                    "outer": {name: weight.detach().clone() for name, weight in self.outer_weights().items()},
                    "outer_optimizer": copy.deepcopy(self._outer_optimizer.state_dict()), "state": _ddp.saved_state(self.engine)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of this rank, under the same model, schedule, plan, seed and number of ranks. Load the rank's own
        model and optimizer, too, but after this object was made: making it gives all ranks the weights of rank 0.

        state  dictionary that state_dict() returned, on any device

        Raises InvalidRequest for the state of a different job, and changes nothing then."""
        if self._failure is not None:
            raise self._failure
        self._check(state)
        of_optimizer = _states.require_of_optimizer(self._outer_optimizer, state["outer_optimizer"])
        self._drop_under_way()
        _ddp.restore_state(self.engine, state["state"])
        self._step = state["step"]
        outer = self.outer_weights()
        with torch.no_grad():
            for name, weight in state["outer"].items():
                outer[name].copy_(weight)
        self._outer_optimizer.load_state_dict(of_optimizer)
        for number, (fragment, begun) in enumerate(zip(self._fragments, state["begun"])):
            means = state["under_way"].get(number)
            fragment.begun, fragment.arrived = begun, means is not None
            fragment.means = means and [mean.to(weight.device, copy=True) for mean, weight in zip(means, fragment.outer)]

    def _check(self, state: Mapping[str, Any]) -> None:
        """Raises InvalidRequest for a state that is not this rank's."""
        _ddp.require_own(state, self._job, _CALLER, schedule=str, step=int, begun=list, under_way=dict, outer=dict,
                         outer_optimizer=dict)
        if state["schedule"] != str(self._schedule):
            raise InvalidRequest(f"the state is of the schedule {state['schedule']}, and this is {self._schedule}: go on with that "
                                 "schedule, or load the outer weights into the model and begin anew")
        step, outer = state["step"], self.outer_weights()
        if step > _MOST_STEPS:
            _states.refuse(f"the state is of step {step}, and there are at most {_MOST_STEPS}")
        if state["outer"].keys() != outer.keys():
            raise InvalidRequest("the state is of another model: its parameters have other names")
        for name, weight in outer.items():
            _states.require_numbers(_CALLER, name, state["outer"][name], weight)
        self._check_turns(state)
        if self._in_one_order and self._schedule.turns_before(step):
            raise InvalidRequest(f"the state was saved after step {step}, within a period, and the topology allreduce "
                                 f"begins with the first fragment: save it after a multiple of {self._schedule.period} steps, or "
                                 "take another topology")

    def _check_turns(self, state: Mapping[str, Any]) -> None:
        """Raises InvalidRequest if the state's last turns, or its fragments that are being averaged, contradict its step and the
        schedule."""
        begun = [self._schedule.last_turn(number, state["step"]) for number in range(len(self._fragments))]
        if state["begun"] != begun:
            _states.refuse(f"fragments have had their last turns after the steps {begun}, by step {state['step']} of the schedule, "
                           f"and not after {str(state['begun'])[:100]}")
        under_way = [number for number, last in enumerate(begun) if last > 0 and state["step"] - last < self._schedule.overlap]
        if sorted(map(str, state["under_way"])) != sorted(map(str, under_way)) or not set(under_way) <= state["under_way"].keys():
            _states.refuse(f"after step {state['step']} of the schedule the fragments {under_way} are on their way, and not "
                           f"{str(list(state['under_way']))[:100]}")
        for number in under_way:
            fragment, means = self._fragments[number], state["under_way"][number]
            if not isinstance(means, list) or len(means) != len(fragment.names):
                _states.refuse(f"fragment {number}, which is on its way, has {len(fragment.names)} means in a list")
            for name, mean, weight in zip(fragment.names, means, fragment.outer):
                _states.require_numbers(_CALLER, name, mean, weight)

    def _drop_under_way(self) -> None:
        with self._ending():
            for fragment in self._fragments:
                if fragment.means is not None:
                    self._wait(fragment)

    def close(self) -> None:
        """Leaves the job and ends all threads. It waits for fragments that are being averaged, and does not apply them. Later steps
        of the optimizer train this rank alone. Calls after the first do nothing."""
        self._steps.remove()
        if self._failure is None:
            self._failure = Error("the local updates were closed")
        self.engine.close()

    def __enter__(self) -> "LocalUpdates":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], _: object) -> None:
        if self._failure is None:
            if error is None:
                return self.finish()
            self._abort(error)
        self.close()


def _module_of(model: Any) -> torch.nn.Module:
    """Returns the module itself, also if torch.compile wraps it. Raises InvalidRequest for a module that local updates cannot
    train."""
    while isinstance(model, torch.nn.Module) and "_orig_mod" in model._modules:
        model = model._modules["_orig_mod"]
    asked = f"{_CALLER} takes a plain torch.nn.Module, got {type(model).__name__}"
    if isinstance(model, DistributedDataParallel):
        raise InvalidRequest(f"{asked}: local updates average for themselves, and it would average every gradient: give the module "
                             "in it, as model.module")
    if not isinstance(model, torch.nn.Module):
        raise InvalidRequest(f"{asked}: give it the model itself")
    for parent in type(model).__mro__:
        if parent.__name__ in _ddp._OTHERS and parent.__module__.startswith("torch."):
            raise InvalidRequest(f"{asked}, which averages or divides the model itself: give the module before it was wrapped")
    if _ddp._is_replicated(model):
        raise InvalidRequest(f"{asked} that replicate() was called for, which averages gradients: give a model without it")
    if model in _of_models and not _of_models[model].engine.closed:
        raise InvalidRequest("this model has local updates already: close() them first")
    return model


def _optimizers_of(given: Any) -> List[torch.optim.Optimizer]:
    """Optimizers as a list. Raises InvalidRequest for an empty list, and for an optimizer that averages weights itself."""
    optimizers = list(given) if isinstance(given, (list, tuple)) else [given]
    for one in optimizers:
        if any(parent.__module__.startswith("torch.distributed.") for parent in type(one).__mro__):
            raise InvalidRequest(f"optimizer is a {type(one).__name__}, which makes the ranks' weights alike in every step: give "
                                 "local updates one that does not communicate, such as the one that it is made of")
    if not optimizers:
        raise InvalidRequest("the list of optimizers is empty: make one of model.parameters()")
    return optimizers


def _explained(lost: RankLost) -> RankLost:
    """Adds a likely reason to the message if the other rank has left without an error."""
    if not lost.left:
        return lost
    return RankLost(f"{lost}: where its training had ended, let all ranks take the same number of steps", lost.rank, lost.left)


def _trained_by(model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> Dict[str, torch.nn.Parameter]:
    """Parameters that local updates average, by name, in the order of the model. Raises InvalidRequest if there are none, or
    if any of them is in no optimizer."""
    parameters = {name: parameter for name, parameter in model.named_parameters()
                  if parameter.requires_grad and parameter.numel() > 0}
    if not parameters:
        raise InvalidRequest("the model has no parameters that are trained")
    _ddp.require_types(parameters)
    _require_owned(optimizers, parameters, "optimizer")
    return parameters


def _require_owned(optimizers: Sequence[Any], parameters: Mapping[str, torch.Tensor], what: str) -> None:
    weights = "the outer weights that its function is given" if what == "outer_optimizer" else "model.parameters()"
    for one in optimizers:
        if not isinstance(one, torch.optim.Optimizer):
            raise InvalidRequest(f"{what} is a {type(one).__name__}, and not a torch.optim.Optimizer: make one of {weights}")
    owned = {id(parameter) for one in optimizers for group in one.param_groups for parameter in group["params"]}
    missing = [name for name, parameter in parameters.items() if id(parameter) not in owned]
    if missing:
        several = ", or give the list of all optimizers that train it" if what == "optimizer" else ""
        raise InvalidRequest(f"the {what} does not have the model's '{missing[0]}'" +
                             (f" and {len(missing) - 1} more" if missing[1:] else "") + f": make it of {weights}{several}")


def _schedule_of(plan: str, asked: Optional[str]) -> LocalSchedule:
    planned = _ddp._said_by(plan, "schedule", "")
    schedule = parse_schedule(asked if asked is not None else planned or "local(steps=100)")
    if planned and parse_schedule(planned) != schedule:
        raise InvalidRequest(f"{plan} is for schedule {planned}, and {asked} was asked for: leave the schedule out, or plan for it "
                             f"with hipress-plan --schedule '{asked}'")
    return schedule


def _share(alpha: Optional[float], default: float) -> float:
    if alpha is None:
        return default
    return _arguments.number("alpha", alpha, least=0, most=1)


@torch.no_grad()
def _broadcast(tensors: Iterable[torch.Tensor], group: Any) -> None:
    """Gives every rank the values of rank 0. Tensors travel as bytes, since back ends lack some types."""
    if dist.get_world_size(group) == 1:
        return
    first = dist.get_global_rank(group, 0) if group is not dist.group.WORLD else 0
    for tensor in tensors:
        if tensor.numel() == 0:
            continue
        flat = tensor.detach().contiguous().reshape(-1)
        dist.broadcast(flat.view(torch.uint8), src=first, group=group)
        tensor.copy_(flat.view_as(tensor))
