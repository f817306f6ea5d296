"""Measures when gradients are ready."""

import collections.abc
import contextlib
import dataclasses
import functools
import inspect
import itertools
import os
import statistics
import sys
import types
import warnings
import weakref
from typing import Callable, Iterable, List, Optional, Type, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hipress import _arguments, _memory, _model_file, _output, _own_time, _trained
from hipress._clocks import CudaClock, HostClock
from hipress._passes import Pass, Updates, steps_of

_Path = Union[str, "os.PathLike[str]"]
_DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class _Beginning:
    """Hook of a tensor that notes the beginning of backward."""

    def __init__(self, capture: "Capture"):
        self.capture = capture

    def __call__(self, _gradient) -> None:
        self.capture._on_backward()


class _ModuleHook:
    """Hook of a module. Copies of the module do not have it."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return self.function(*arguments)

    def __reduce__(self):
        return _no_hook, ()


def _show_to_dynamo() -> None:
    """Makes torch.compile run hooks of modules in Python. Resets the compiler, because functions that were compiled before would
    skip the hooks."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is None:
        return
    dynamo.reset()
    if not hasattr(_ModuleHook.__call__, "_torchdynamo_disable"):
        _ModuleHook.__call__ = dynamo.disable(_ModuleHook.__call__)


def _no_hook():
    return _nothing


def _nothing(*_: object) -> None:
    return None


class Capture:
    """Context manager that captures the training inside it as a model YAML. It writes the file once `steps` steps are measured,
    or else at its end. The file appears at once and complete.

        with hipress.capture(model, "model.yaml", optimizer=optimizer):
            for _ in range(20):
                train_one_step()

    On the host, times are those of computation alone. They exclude the time in which this thread waited for a core that other
    processes had, if Linux reports it. The file also has the number of computing threads (torch.get_num_threads()) and the core
    time of all of them, with which a simulator can divide the cores among tasks anew. The overhead of DistributedDataParallel and
    of hipress's own hook, for gradients of these sizes, is measured at the end in a process group of one, unless this process is in
    a group with others.

    Forward lasts from the call of the model until backward reaches its output, so it includes the loss. A gradient's ready time is
    the time from there until it is added to the parameter's gradient. A step ends when each optimizer that has parameters of the
    model has taken a step. If no optimizer is seen, it ends when parameters change, or else when gradients are dropped. Backward
    passes of a step are its micro-steps. Times are those of one micro-step: forward is the time from the step's first forward to
    its last backward, less its earlier backward passes, divided by the number of micro-steps. The optimizer time lasts from the
    last gradient to the next forward: the optimizer's step(), zero_grad(), the next batch. Times are medians over the steps. The
    file has their 10th and 90th percentiles in comments.

    A DistributedDataParallel of several ranks does not average while it is captured. Each rank trains alone, so parameters differ
    afterwards. Do not go on training the model.

    model      the trained module that is called. Gradients have their names in the module without DistributedDataParallel and
               torch.compile
    output     file to write; None: no file, only text()
    optimizer  optimizer or list of optimizers whose step() is also timed by itself
    batch      size of a batch; default: the most frequent first dimension of the model's first tensor
    bucket_mb  bucket_cap_mb, in MiB, of the DistributedDataParallel that will train with the plan: it hands over the gradients of a
               bucket together
    warmup     number of steps at the beginning that are left out
    steps      largest number of steps that are measured after the warm-up; None: all, and the file is written at the end
    name       name of the model in the file; default: that of its class
    called     modules that are called, if these are parts of `model` instead of `model` itself
    memory     True: also measure the memory traffic of computation, on the host only. During every second step, whose times do not
               count, another core copies memory
    say        function that takes warnings as texts; default: warnings.warn

    Raises TypeError for a model that is not a module, and ValueError for a training that cannot be captured or an output that
    cannot be written."""

    def __init__(self, model: torch.nn.Module, output: Optional[_Path] = "model.yaml", *,
                 optimizer: Union[None, torch.optim.Optimizer, List[torch.optim.Optimizer]] = None, batch: Optional[int] = None,
                 bucket_mb: float = 1, warmup: int = 2, steps: Optional[int] = None, name: Optional[str] = None,
                 called: Optional[Iterable[torch.nn.Module]] = None, memory: bool = False, say: Optional[Callable[[str], object]] = None) -> None:
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"capture needs the torch.nn.Module that is trained, got {type(model).__name__}")
        self.bucket_bytes = int(_arguments.number("bucket_mb", bucket_mb, above=0, most=_arguments.MOST_BUCKET_MB) * (1 << 20))
        _arguments.whole("warmup", warmup, least=0)
        for what, count in (("steps", steps), ("batch", batch)):
            if count is not None:
                _arguments.whole(what, count, least=1)
        if output is not None:
            _model_file.require_writable(output)
        self.model = unwrapped(model)
        self.called = [model] if called is None else list(called)
        self.output, self.batch, self.warmup, self.steps = output, batch, warmup, steps
        self.optimizers = [] if optimizer is None else list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        self.name = name or type(self.model).__name__
        self.parameters = _trained_parameters(self.model)
        if not self.parameters:
            raise ValueError("the model has no parameters that are trained")
        self._say = say or (lambda text: warnings.warn(text, stacklevel=6))
        cuda = any(parameter.is_cuda for parameter in self.parameters.values())
        self._clock = CudaClock() if cuda else HostClock()
        self._passes = []
        self._handles, self._kept, self._timed, self._unaveraged = [], [], [], []
        self._replicas = []  # each DistributedDataParallel, with its _Unaveraged or None
        self._started = False
        self._pending = None  # pass whose forward has begun and whose backward has not ended
        self._running = False  # true during backward
        self._stepped, self._before = set(), set()  # ids of parameters stepped since the last backward began, and before that
        self._sets = {}  # sets of such ids, each kept once
        self._updates, self._events = Updates(), 0
        self._cleared = False  # true if gradients were dropped since the last pass
        self._version = self._next_version = None  # parameters' version when the last backward began, and when this one began
        self._gradients = None  # the gradients' version at the end of the last pass; None with an optimizer
        self._moved_at_end = False
        self._in_backward = False  # true if optimizers step within backward
        self._unseen = _Unseen()
        self._probe = _memory.MemoryProbe(torch.get_num_threads()) if memory and not cuda else None
        self._own = []  # overhead of DDP and the hook, once measured
        self.when_complete = self._write_output  # called once, between two steps
        self.when_passed = lambda: None  # called at the end of each backward pass
        self._told = self._written = False
        self._said = set()
        if optimizer is not None:
            self._require_all_held()

    def __enter__(self) -> "Capture":
        self.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.stop()
        if kind is not None and kind.__module__ == "torch._dynamo.exc":
            self._say(f"{kind.__name__} of torch.compile ended a capture, whose hooks of the model break the graph of what calls it: "
                      "compile that with fullgraph=False while the model is captured")
        if kind is None and self.output is not None and not self._written:
            self.write(self.output)

    def _write_output(self) -> None:
        if self.output is not None:
            with contextlib.suppress(ValueError):  # raised at the end, unless later steps mend it
                self.write(self.output)
                self._written = True

    def start(self) -> None:
        """Registers the hooks."""
        self._started = True
        _show_to_dynamo()
        for module in self.called:
            self._watch_calls(module)
        for parameter in self.parameters.values():
            self._handles.append(self._watch(parameter))
        for optimizer in self.optimizers:
            self.time_optimizer(optimizer)
        register = getattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook", None)
        if register is not None:
            self._handles.append(register(lambda optimizer, *_: self._on_update(optimizer)))

    def stop(self) -> None:
        """Removes the hooks."""
        if self._started:
            self._moved_at_end = self._has_moved()
        self._started = False
        for handle in self._handles:
            handle.remove()
        self._handles, self._kept = [], []
        for timed in self._timed:
            timed.undo()
        for unaveraged in self._unaveraged:
            unaveraged.undo()
        self._timed, self._unaveraged = [], []
        if self._probe is not None:
            self._probe.close()

    def also_called(self, module: torch.nn.Module) -> None:
        """Counts calls of another part of the model as calls of the model."""
        self.called.append(module)
        if self._started:
            self._watch_calls(module)

    def widen(self, model: torch.nn.Module) -> None:
        """Replaces the model by a module that has all of its parameters and more."""
        parameters, known = _trained_parameters(model), self._ids()
        if self._started:
            self._handles += [self._watch(parameter) for parameter in parameters.values() if id(parameter) not in known]
        self.model, self.parameters, self.name = model, parameters, getattr(model, "label", type(model).__name__)

    @property
    def backward_passes(self) -> int:
        """Number of backward passes so far, including all micro-steps."""
        return len(self._passes)

    @property
    def is_in_backward(self) -> bool:
        """True if a pass has begun and not ended."""
        return self._running

    @property
    def seen_steps(self) -> int:
        """Number of the optimizers' steps between or after backward passes; without optimizers, of changes of the parameters."""
        return self._updates.count + bool(self._stepped or self._moved_at_end or self._has_moved())

    @property
    def is_complete(self) -> bool:
        """True if all requested steps are measured, and hooks are registered."""
        return self._started and self._is_done()

    @property
    def sees_nothing(self) -> str:
        """Reason why no backward pass was seen; empty if one was."""
        return "" if self._passes else self._unseen.reason()

    def _watch_calls(self, module) -> None:
        for part in module.modules():
            if isinstance(part, DistributedDataParallel):
                apart = self._keep_apart(part)
                self._unaveraged += [apart] if apart is not None else []
                self._replicas.append((part, apart))
        named = {"with_kwargs": True} if "with_kwargs" in inspect.signature(module.register_forward_pre_hook).parameters else {}
        if getattr(module, "_compiled_call_impl", None) is not None:
            self._handles.append(_CompiledCall(module, self._on_call, self._on_output))
            return
        self._handles.append(module.register_forward_pre_hook(_ModuleHook(self._on_call), **named))
        self._handles.append(module.register_forward_hook(_ModuleHook(self._on_output)))

    def _keep_apart(self, part: DistributedDataParallel) -> "Optional[_Unaveraged]":
        """Keeps the ranks of a DistributedDataParallel from averaging during the capture. Returns None if there is one rank."""
        return _Unaveraged(part, self._say, self._on_meeting) if part.process_group.size() > 1 else None

    def _watch(self, parameter):
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            return parameter.register_post_accumulate_grad_hook(lambda one: self._on_ready(id(one)))
        number = id(parameter)
        with torch.enable_grad():
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._kept.append(node)  # keeps the node's hook alive
        return node.register_hook(lambda *_: self._on_ready(number))

    def _has_moved(self) -> bool:
        """True if parameters have changed since the last backward began."""
        return self._started and self._version not in (None, self._parameters_version())

    def _ids(self) -> set:
        return {id(parameter) for parameter in self.parameters.values()}

    def _parameters_version(self) -> int:
        return sum(parameter._version for parameter in self.parameters.values())

    def _gradients_version(self) -> Optional[int]:
        """Sum of the gradients' versions; None if an optimizer marks the ends of steps."""
        if self._updates.has_optimizer:
            return None
        return sum(parameter.grad._version + 1 for parameter in self.parameters.values() if parameter.grad is not None)

    def _is_done(self) -> bool:
        if not self._started or self.steps is None:
            return not self._started
        most, ended = self.warmup + self.steps, self._updates.count
        return ended > most or ended == 0 and len(self._passes) > _MOST_MICRO_STEPS * most

    def _on_call(self, _module, inputs, named=None) -> None:
        if self._running and not _is_in_backward():  # ended by an exception
            self._running, self._pending = False, None
        if self._running or not torch.is_grad_enabled():
            return
        if self._is_done():
            self._tell()
            return
        self._unseen.called = True
        version = self._parameters_version()
        pending = self._pending
        if pending is not None and pending.version == version and pending.updates == self._events:
            if not pending.watches or any(watch() is not None for watch in pending.watches):
                return  # one backward follows several calls
        batch = next((tensor.shape[0] for tensor in _tensors_of((inputs, named)) if tensor.dim() > 0), 0)
        self._open(version, batch)

    def _open(self, version: int, batch: int) -> None:
        if self._probe is not None and self._updates.ends(self._before | self._stepped, version != self._version):
            self._probe.next_step()
        self._pending = Pass(self._clock.mark(), batch, version, self._events)
        self._pending.beside_copy = self._probe is not None and self._probe.is_on
        for ddp, apart in self._replicas:
            sync = ddp.require_backward_grad_sync if apart is None or apart.sync is None else apart.sync
            self._pending.averaged = bool(self._pending.averaged or sync)

    def _on_output(self, _module, _inputs, output) -> None:
        if self._running or self._pending is None or not torch.is_grad_enabled() or self._is_done():
            return
        found = list(_tensors_of(output))
        self._unseen.returned(output, found)
        beginning = _Beginning(self)
        hooked = [tensor.register_hook(beginning) for tensor in found if tensor.requires_grad]
        if hooked:
            self._pending.watches.append(weakref.ref(beginning))

    def _on_backward(self) -> None:
        """Notes that backward has reached the output of the model."""
        if self._is_done():
            return
        if not self._running:
            if self._pending is None:  # another backward of the same call
                self._open(self._parameters_version(), self._passes[-1].batch if self._passes else 0)
            self._begin()
        self._unseen.reached = self._pending.reached = True

    def _begin(self) -> None:
        one = self._pending
        one.cleared = self._cleared or all(parameter.grad is None for parameter in self.parameters.values())
        one.touched = self._gradients is not None and self._gradients != self._gradients_version()
        self._before, self._stepped = self._before | self._stepped, set()
        self._next_version = self._parameters_version()
        one.moved = self._version not in (None, self._next_version)
        self._running = True
        torch.autograd.Variable._execution_engine.queue_callback(self._on_end)
        one.backward = self._clock.mark()

    def _on_ready(self, parameter: int) -> None:
        if not self._running and self._pending is not None and not self._is_done():  # the loss uses a parameter directly
            self._begin()
        if self._running:
            self._pending.ready[parameter] = self._clock.mark()
            self._pending.waits_before[parameter] = len(self._pending.waits)

    def _on_meeting(self, meet) -> None:
        """Makes ranks meet wherever an average would synchronise them, and records the wait. Without this, the ranks would wait in
        the script's next collective, such as a gather of losses, and the wait would count as optimizer time."""
        began = self._clock.mark()
        meet()
        if self._running:
            self._pending.waits.append((began, self._clock.mark()))

    def _on_end(self) -> None:
        self._running = False
        done = self._pending
        if done is None or not done.reached:  # gradients of another model
            if done is not None:
                done.ready = {}
            return
        if not done.ready:  # gradients of inputs only: a later backward may complete the pass
            done.watches, done.reached = [], False
            return
        self._pending = None
        stepped = frozenset(self._before)
        done.stepped = self._sets.setdefault(stepped, stepped)
        if self._passes:
            self._updates.add(done.stepped, done.moved)
        self._passes.append(done)
        self._version, self._gradients = self._next_version, self._gradients_version()
        self._before, self._cleared = set(), False
        self.when_passed()

    def _on_update(self, optimizer) -> None:
        """Notes the parameters that an optimizer has stepped. A given optimizer that has none of the model's parameters is assumed
        to have copies of all of them."""
        held = {id(parameter) for parameter in _trained.held_by([optimizer])} & self._ids()
        if not held and any(optimizer is given for given in self.optimizers):
            held = self._ids()
        if held and not self._is_done():
            self._stepped |= held
            self._events += 1
            self._in_backward |= self._running

    def time_optimizer(self, optimizer) -> None:
        """Times an optimizer's step(), and notes its zero_grad()."""
        self._timed.append(_TimedOptimizer(self, optimizer))

    def _on_step(self, optimizer, began, passes: int) -> None:
        self._on_update(optimizer)
        if self._passes and not self._running and not self._is_done():
            if len(self._passes) > passes:  # the closure ran backward
                began = list(self._passes[-1].ready.values())[-1]
            self._passes[-1].steps.append((began, self._clock.mark()))
        self._tell()

    def _tell(self) -> None:
        """Calls when_complete once all steps are measured. Within backward, it waits for the end of the pass, because when_complete
        measures by backward passes of its own."""
        if self.is_complete and not (self._told or self._running or _is_in_backward()):
            self._told = True
            self.when_complete()

    def _on_clearing(self) -> None:
        self._cleared = True

    def text(self) -> str:
        """Returns the model YAML. Raises ValueError if no step was complete after the warm-up."""
        groups = steps_of(self._passes, frozenset(self._before | self._stepped), self._moved_at_end or self._has_moved())
        measured = groups[self.warmup:]
        if self.steps is not None:
            measured = measured[:self.steps + 1]
        if not measured:
            raise ValueError(self._unseen.reason() if not groups else
                             f"no step after the {self.warmup} of the warm-up called the model and backward ({len(groups)} did in "
                             "all): run more steps, or give a smaller warmup")
        counts = [len(group) for group in (measured[:-1] or measured)]
        micro_steps = max(statistics.multimode(counts))
        seconds = self._clock.seconds
        complete = [(group, after[0] if after else None)
                    for group, after in itertools.zip_longest(measured, measured[1:]) if len(group) == micro_steps][:self.steps]
        beside = [part for part in complete if any(one.beside_copy for one in part[0])]
        parts = [part for part in complete if part not in beside]
        if self._probe is not None and not (beside and parts):
            raise ValueError("memory=True compares steps beside a copy with others, and there was but one: run more steps")
        steps = [_Step(group, after, seconds) for group, after in parts]
        cores = _Cores(parts, self._clock) if self._clock.on_cores else None
        left_out = sum(count != micro_steps for count in counts)
        ready = {name: sorted(times) for name, parameter in self.parameters.items()
                 if (times := [step.ready[id(parameter)] for step in steps if id(parameter) in step.ready])}
        unused = [name for name in self.parameters if name not in ready]
        last = max(times[-1] for times in ready.values())
        # Parameters without a gradient come last: DDP synchronises them, too.
        order = sorted(self.parameters, key=lambda name: statistics.median(ready.get(name, [last])))
        forward = [step.forward for step in steps]
        batches = [one.batch for group in measured if len(group) == micro_steps for one in group]
        batch = self.batch if self.batch is not None else statistics.mode(batches)
        averages = max(statistics.multimode(_averages(group) for group, _ in complete))
        self._warn(micro_steps, averages)
        kinds = {_DTYPES[parameter.dtype] for parameter in self.parameters.values()}
        kind = "float32" if "float32" in kinds or len(kinds) > 1 else kinds.pop()
        lines = ["# Written by hipress.capture.", f"schema: {_model_file.SCHEMA}", f"name: {_model_file.quoted(self.name)}",
                 f"source: Captured from {len(steps)} steps of PyTorch {torch.__version__} on {self._hardware()}.",
                 *([f"batch: {batch}"] if batch else []), f"dtype: {kind}",
                 f"forward: {_model_file.microseconds(statistics.median(forward))}  # {_spread(forward)}"]
        lines += _optimizer_line(steps)
        lines += cores.lines() if cores else []
        if self._probe is not None:
            lines += _memory.lines(self._probe, cores.of_steps, _Cores(beside, self._clock).of_steps)
        lines.append(f"micro_steps: {micro_steps}")
        notes = [*([f"{left_out} of {len(counts)} steps had another number"] if left_out else []),
                 *([f"gradients are used after {averages} of them, and averaged here once"] if averages > 1 else [])]
        if notes:
            lines[-1] += f"  # {'; '.join(notes)}"
        lines += [f"# without a gradient in these steps: {name}" for name in unused]
        buckets = self._buckets(order)
        core_times = cores.of_gradients({name: id(self.parameters[name]) for name in order}) if cores else {}
        own = self._time_of_hook() if cores else None
        lines += own.lines() if own else []
        lines.append("gradients:  # in backward order, ready since backward began; then the 10th to 90th percentile")
        for name in order:
            parameter = self.parameters[name]
            times = ready.get(name, [last])
            shape = f", shape: [{', '.join(map(str, parameter.shape))}]" if parameter.dim() else ""
            own_kind = _DTYPES[parameter.dtype]
            lines.append(f"- {{name: {_model_file.quoted(name)}, elements: {parameter.numel()}, "
                         f"ready: {_model_file.microseconds(statistics.median(times))}{shape}"
                         f"{'' if own_kind == kind else f', dtype: {own_kind}'}"
                         f"{f', core_time: {_model_file.microseconds(core_times[name])}' if name in core_times else ''}"
                         f", bucket: {buckets[name]}}}  # {_spread(times)}")
        return "\n".join(lines) + "\n"

    def _warn(self, micro_steps: int, averages: int) -> None:
        """Warns once of each property of the job that the file cannot express."""
        said = []
        if averages > 1:
            said.append(f"a step has {micro_steps} backward passes, and uses gradients after {averages} of them, as "
                        "sharpness-aware minimisation and L-BFGS do, or accumulation without no_sync(): the file has micro_steps: "
                        f"{micro_steps}, which average once. With DistributedDataParallel, run all passes but the last in "
                        f"no_sync(); without, a step communicates {averages} times what is predicted")
        if self._in_backward:
            said.append("optimizers step within backward, in hooks of parameters: ready times include their steps. "
                        f"{_trained.STEPS_IN_HOOKS}")
        for text in said:
            if text not in self._said:
                self._said.add(text)
                self._say(text)

    def _require_all_held(self) -> None:
        """Warns of parameters that the optimizers have and the model lacks."""
        others = [one for one in _trained.held_by(self.optimizers) if id(one) not in self._ids()]
        if others and len(others) < len(_trained.held_by(self.optimizers)):
            self._say(f"the optimizer also trains {_trained.described(others)} that the model does not have: capture the module "
                      "that has them all, with called= the parts of it that are called")

    def _time_of_hook(self) -> Optional[_own_time.OwnTime]:
        """Overhead of DDP and the hook, measured at the first call; None if it is unknown."""
        if not self._own:
            within_ddp = any(isinstance(part, DistributedDataParallel) for module in self.called for part in module.modules())
            self._own.append(_own_time.measure(list(self.parameters.values()), self.bucket_bytes, within_ddp))
        return self._own[0]

    def _buckets(self, order: list) -> dict:
        """Number of each gradient's bucket, by name. `order` lists the names by ready time. In this order, DDP fills one bucket of
        each dtype at a time, until the bucket has its size."""
        numbers, filling, count = {}, {}, 0
        for name in order:
            parameter = self.parameters[name]
            type = parameter.dtype
            number, left_bytes = filling.get(type, (None, 0))
            if left_bytes <= 0:
                left_bytes = self.bucket_bytes if type in filling else _first_bucket_bytes(self.bucket_bytes)
                number, count = count, count + 1
            numbers[name] = number
            filling[type] = (number, left_bytes - parameter.numel() * parameter.element_size())
        return numbers

    def _hardware(self) -> str:
        for parameter in self.parameters.values():
            if parameter.is_cuda:
                return torch.cuda.get_device_name(parameter.device)
        return f"{os.cpu_count()} cores, {torch.get_num_threads()} of them computing"

    def write(self, path: _Path) -> None:
        """Writes text() to a file, which appears at once and complete. Raises ValueError as text() does, and OSError if the file
        cannot be written."""
        _output.write_whole(path, self.text())


class _Step:
    """Times of a step in seconds. Forward and ready times are those of one micro-step."""

    def __init__(self, passes: list, after, seconds):
        first, last = passes[0], passes[-1]
        self.ready = last.ready_times(seconds)
        backward = max(self.ready.values())
        # Time before the last backward. Below, each earlier backward is assumed to take as long as the last, and is subtracted.
        before = seconds(first.called, last.backward) - sum(one.waited(seconds) for one in passes[:-1])
        self.forward = max(0.0, before - (len(passes) - 1) * backward) / len(passes)
        self.between = None if after is None else last.until(after, seconds)
        self.optimizer = sum(seconds(*step) for step in last.steps) if last.steps else None


class _Cores:
    """Core times of steps. `parts` has the passes of each step, and the first pass after it or None."""

    def __init__(self, parts: list, clock: HostClock):
        self.steps = [_Step(group, after, clock.core_seconds) for group, after in parts]
        spans = [(group[0].called, after.called if after else list(group[-1].ready.values())[-1]) for group, after in parts]
        self.of_steps = [step.forward + max(step.ready.values()) + (step.between or 0.0) for step in self.steps]
        self.waited_s = sum(clock.waited(first, second) for first, second in spans)
        self.whole_s = sum(clock.seconds(first, second) for first, second in spans) + self.waited_s

    def lines(self) -> list:
        lines = [f"threads: {torch.get_num_threads()}",
                 f"forward_core_time: {_model_file.microseconds(statistics.median(step.forward for step in self.steps))}"]
        optimizer = ([step.between for step in self.steps if step.between is not None]
                     or [step.optimizer for step in self.steps if step.optimizer is not None])
        if optimizer:
            lines.append(f"optimizer_core_time: {_model_file.microseconds(statistics.median(optimizer))}")
        if self.waited_s > 0.01 * self.whole_s:
            lines[0] += f"  # for {100 * self.waited_s / self.whole_s:.0f} % of these steps it waited for a core, which is left out"
        return lines

    def of_gradients(self, order: dict) -> dict:
        """Core time of backward for each gradient, by name, in seconds. `order` maps names to the parameters' ids, by ready
        time."""
        reached, parts = 0.0, {}
        for name, one in order.items():
            times = [step.ready[one] for step in self.steps if one in step.ready]
            until = max(reached, statistics.median(times)) if times else reached
            parts[name], reached = until - reached, until
        return parts


class _TimedOptimizer:
    """Optimizer whose step() and zero_grad() notify a capture."""

    def __init__(self, capture: Capture, optimizer):
        self.optimizer = optimizer
        self.before, self.ours = {}, {}

        def timed(original, *arguments, **options):
            passes, began = capture.backward_passes, capture._clock.mark()
            result = original(*arguments, **options)
            capture._on_step(optimizer, began, passes)
            return result

        def seen(original, *arguments, **options):
            capture._on_clearing()
            return original(*arguments, **options)

        for name, call in (("step", timed), ("zero_grad", seen)):
            if hasattr(optimizer, name):
                self._replace(name, call)

    def _replace(self, name: str, call) -> None:
        original = getattr(self.optimizer, name)

        @functools.wraps(original)
        def method(_optimizer, *arguments, **options):
            return call(original, *arguments, **options)

        if name in vars(self.optimizer):  # replaced by a learning-rate scheduler
            self.before[name] = vars(self.optimizer)[name]
        self.ours[name] = types.MethodType(method, self.optimizer)  # learning-rate schedulers read its __func__
        setattr(self.optimizer, name, self.ours[name])

    def undo(self) -> None:
        for name, ours in self.ours.items():
            if vars(self.optimizer).get(name) is not ours:
                continue  # other code has wrapped the method since
            if name in self.before:
                setattr(self.optimizer, name, self.before[name])
            else:
                delattr(self.optimizer, name)


class _CompiledCall:
    """Wrapper around calls of a module that Module.compile() has compiled together with its hooks."""

    def __init__(self, module, before, after=None):
        self.module, self.compiled = module, module._compiled_call_impl

        def call(*arguments, **options):
            before(module, arguments, options)
            output = self.compiled(*arguments, **options)
            if after is not None:
                after(module, arguments, output)
            return output

        self.call = module._compiled_call_impl = call

    def remove(self) -> None:
        if self.module._compiled_call_impl is self.call:
            self.module._compiled_call_impl = self.compiled


class _Unaveraged:
    """DistributedDataParallel whose ranks compute separately. They meet at the end of each backward that would average."""

    def __init__(self, ddp: DistributedDataParallel, say, met):
        self.ddp, self.active, self.handles, self.met = ddp, True, [], met
        self.sync = None  # saved require_backward_grad_sync during a forward pass, else None
        self.broadcast_buffers, ddp.broadcast_buffers = ddp.broadcast_buffers, False
        how = ""
        try:
            ddp.register_comm_hook(None, self._hook)
        except RuntimeError:  # another hook is registered: steps run as in no_sync()
            how = "; it has a communication hook, so what DDP itself does to gradients is not measured either"
            self.handles = [ddp.register_forward_pre_hook(_ModuleHook(self._before)),
                            ddp.register_forward_hook(_ModuleHook(self._after))]
        say(f"the {ddp.process_group.size()} ranks of this DistributedDataParallel do not average their gradients while "
            f"computation is measured: they train apart, and what they train is not to be used{how}")

    def _hook(self, _state, bucket):
        if self.active:
            if bucket.is_last():
                one = bucket.buffer().new_zeros(1)
                self.met(lambda: dist.all_reduce(one, group=self.ddp.process_group))
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future
        group = self.ddp.process_group
        return (dist.all_reduce(bucket.buffer().div_(group.size()), group=group, async_op=True).get_future()
                .then(lambda done: done.value()[0]))

    def _before(self, ddp, _inputs) -> None:
        if ddp is self.ddp:
            self.sync, ddp.require_backward_grad_sync = ddp.require_backward_grad_sync, False

    def _after(self, ddp, _inputs, _output) -> None:
        if ddp is self.ddp and self.sync is not None:
            ddp.require_backward_grad_sync = ddp.require_forward_param_sync = self.sync
            self.sync = None

    def undo(self) -> None:
        self.active = False
        self.ddp.broadcast_buffers = self.broadcast_buffers
        for handle in self.handles:
            handle.remove()


class _Unseen:
    """Observations of a capture, which explain why it has seen no backward pass."""

    def __init__(self):
        self.called = self.tensors = self.differentiable = self.reached = False
        self.type = None

    def returned(self, output, found: list) -> None:
        self.type = type(output).__name__
        self.tensors = self.tensors or bool(found)
        self.differentiable = self.differentiable or any(tensor.requires_grad for tensor in found)

    def reason(self) -> str:
        if not self.called:
            return ("the model was not called while gradients are recorded: what is captured must be the module that the training "
                    "loop calls, as model(inputs), outside torch.no_grad()")
        if not self.tensors:
            return (f"no tensor was found in the output of type {self.type} of the model, so the beginning of backward is not "
                    "seen: return tensors, or lists, tuples, dicts, dataclasses or plain objects of them")
        if not self.differentiable:
            return (f"no tensor in the output of type {self.type} of the model requires a gradient, so nothing trains it through "
                    "them")
        if not self.reached:
            return (f"backward did not reach the model's output of type {self.type}: no backward() was called, or its loss is made "
                    "of other tensors than those of the output")
        return "backward reached the model's output, but made no gradient of its parameters"


def unwrapped(model):
    """Returns the module whose parameters have the names that attach() uses: the one inside of a DistributedDataParallel, or else
    inside of DataParallel and torch.compile."""
    while True:
        if isinstance(model, DistributedDataParallel):
            return model.module
        if isinstance(model, DataParallel):
            model = model.module
        elif hasattr(model, "_orig_mod") and isinstance(model._orig_mod, torch.nn.Module):
            model = model._orig_mod
        else:
            return model


def _is_in_backward() -> bool:
    try:
        torch.autograd.Variable._execution_engine.queue_callback(_nothing)
    except RuntimeError:
        return False
    return True


def _trained_parameters(model: torch.nn.Module) -> dict:
    parameters = {name: parameter for name, parameter in model.named_parameters()
                  if parameter.requires_grad and parameter.numel() > 0}
    for name, parameter in parameters.items():
        if parameter.dtype not in _DTYPES:
            raise ValueError(f"parameter '{name}' is of {parameter.dtype}; models have float32, float16 and bfloat16")
    return parameters


def _averages(group: list) -> int:
    """Number of averages of gradients in a step: one at its end, and one after each earlier pass that a DistributedDataParallel
    averages. Without DDP, each earlier pass after which parameters change counts."""
    return 1 + sum(one.moved or bool(one.stepped) if before.averaged is None else before.averaged
                   for before, one in zip(group, group[1:]))


def _optimizer_line(steps: list) -> list:
    """Line with the time from the last gradient to the next forward, or of the optimizer alone if there is only one step. Empty if
    both are unknown."""
    own = [step.optimizer for step in steps if step.optimizer is not None]
    between = [step.between for step in steps if step.between is not None]
    times = between or own
    if not times:
        return []
    part = f"; step() alone {_model_file.microseconds(statistics.median(own))}" if between and own else ""
    return [f"optimizer: {_model_file.microseconds(statistics.median(times))}  # {_spread(times)}{part}"]


def _first_bucket_bytes(bucket_bytes: int) -> int:
    """Size of DDP's first bucket. It is 1 MiB, whatever bucket_cap_mb is, in versions of PyTorch where the default of bucket_cap_mb
    is 25. In later versions the default is None."""
    default = inspect.signature(DistributedDataParallel.__init__).parameters["bucket_cap_mb"].default
    return bucket_bytes if default is None else dist._DEFAULT_FIRST_BUCKET_BYTES


#: Number of backward passes, per step to measure, after which a capture ends if parameters have not changed.
_MOST_MICRO_STEPS = 64
#: Depth to which objects are searched for tensors.
_DEPTH = 6


def _tensors_of(value, depth: int = _DEPTH, seen=None):
    """Yields the tensors in a value, also those in attributes of objects other than modules."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    seen = set() if seen is None else seen
    if depth == 0 or id(value) in seen or value is None or isinstance(value, (str, bytes, int, float, type, torch.nn.Module)):
        return
    seen.add(id(value))
    if isinstance(value, collections.abc.Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    else:
        slots = [slot for kind in type(value).__mro__ for slot in _slots(kind)]
        parts = [*getattr(value, "__dict__", {}).values(), *(getattr(value, slot, None) for slot in slots)]
    for part in parts:
        yield from _tensors_of(part, depth - 1, seen)


def _slots(kind: type):
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _spread(seconds: list) -> str:
    ordered = sorted(seconds)
    at = lambda share: ordered[round(share * (len(ordered) - 1))]  # noqa: E731
    return f"{_model_file.microseconds(at(0.1))} to {_model_file.microseconds(at(0.9))}"
