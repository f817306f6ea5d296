"""Measures when gradients are ready."""

import inspect
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress import _model_file

_DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class _HostClock:
    """Marks are seconds."""

    def mark(self) -> float:
        return time.perf_counter()

    def seconds(self, first: float, second: float) -> float:
        return second - first


class _CudaClock:
    """Marks are events of the current stream, read once all of them are over."""

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, first, second) -> float:
        second.synchronize()
        return first.elapsed_time(second) * 1e-3


class _Step:
    """Marks of one forward and backward."""

    def __init__(self, forward, batch: int):
        self.forward, self.batch = forward, batch
        self.backward = None
        self.ready = {}
        self.optimizer = None


class Capture:
    """A context manager: trains as always inside it, and writes a model YAML at its end.

        with hipress.capture(model, "model.yaml", optimizer=optimizer):
            for _ in range(20):
                train_one_step()

    Forward lasts from the call of the model until backward reaches its output, so it includes the loss; a gradient's ready time is
    counted from there, until it is added to the parameter's. What a step does after its last gradient and before the next forward is
    its optimizer time: the optimizer's step(), zero_grad(), the next batch. Times are medians over the steps, their 10th and 90th
    percentiles are written beside them. Take a model that is not distributed, or one rank's: what a hook waits for would be in the times.

    output     file to write; None: `text()` alone
    optimizer  whose step() is timed by itself too
    batch      size of a batch; default: the first dimension of the model's first tensor
    bucket_mb  bucket_cap_mb of the DistributedDataParallel that will train with the plan: it hands the gradients of a bucket over
               together
    warmup     steps at the beginning that are left out
    steps      how many are measured after those, at most; None: all"""

    def __init__(self, model, output="model.yaml", *, optimizer=None, batch=None, bucket_mb=1, warmup=2, steps=None,
                 name=None):
        if not bucket_mb > 0:
            raise ValueError(f"bucket_mb must be above 0, got {bucket_mb}")
        self.bucket_bytes = int(bucket_mb * (1 << 20))
        self.model = model.module if isinstance(model, DistributedDataParallel) else model
        self.output, self.optimizer, self.batch, self.warmup, self.steps = output, optimizer, batch, warmup, steps
        self.name = name or type(self.model).__name__
        self.parameters = {name: parameter for name, parameter in self.model.named_parameters()
                           if parameter.requires_grad and parameter.numel() > 0}
        for parameter_name, parameter in self.parameters.items():
            if parameter.dtype not in _DTYPES:
                raise ValueError(f"parameter '{parameter_name}' is of {parameter.dtype}; models have float32, float16 and bfloat16")
        if not self.parameters:
            raise ValueError("the model has no parameters that are trained")
        cuda = any(parameter.is_cuda for parameter in self.parameters.values())
        self._clock = _CudaClock() if cuda else _HostClock()
        self._steps, self._handles, self._kept = [], [], []
        self._wrapped = None

    def __enter__(self) -> "Capture":
        self.start()
        return self

    def __exit__(self, kind, *_: object) -> None:
        self.stop()
        if kind is None and self.output is not None:
            self.write(self.output)

    def start(self) -> None:
        """Registers the hooks."""
        self._handles.append(self.model.register_forward_pre_hook(self._on_forward))
        self._handles.append(self.model.register_forward_hook(self._on_output))
        for name, parameter in self.parameters.items():
            self._handles.append(self._watch(name, parameter))
        if self.optimizer is not None:
            self.time_optimizer(self.optimizer)

    def stop(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._kept = [], []
        if self._wrapped is not None:
            del self._wrapped.step
            self._wrapped = None

    def _watch(self, name: str, parameter):
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            return parameter.register_post_accumulate_grad_hook(lambda _: self._on_ready(name))
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._kept.append(node)  # its hook lives as long as it
        return node.register_hook(lambda *_: self._on_ready(name))

    def _on_forward(self, _module, inputs) -> None:
        if not torch.is_grad_enabled():
            return
        if self.steps is not None and len(self._steps) > self.warmup + self.steps:
            self._steps.pop()  # what this one would replace: marks of all later steps go into one
        batch = next((tensor.shape[0] for tensor in inputs if isinstance(tensor, torch.Tensor) and tensor.dim() > 0), 0)
        self._steps.append(_Step(self._clock.mark(), batch))

    def _on_output(self, _module, _inputs, output) -> None:
        if not self._steps or not torch.is_grad_enabled():
            return
        step = self._steps[-1]

        def began(_gradient) -> None:
            if step.backward is None:
                step.backward = self._clock.mark()

        for tensor in _tensors_of(output):
            if tensor.requires_grad:
                tensor.register_hook(began)

    def _on_ready(self, name: str) -> None:
        if self._steps:
            self._steps[-1].ready[name] = self._clock.mark()

    def time_optimizer(self, optimizer) -> None:
        """Times its step() too."""
        original = optimizer.step

        def step(*arguments, **options):
            began = self._clock.mark()
            result = original(*arguments, **options)
            if self._steps:
                self._steps[-1].optimizer = (began, self._clock.mark())
            return result

        optimizer.step = step
        self._wrapped = optimizer

    def text(self) -> str:
        """The model YAML. ValueError if no step was complete after the warm-up."""
        whole = [step for step in self._steps if step.backward is not None and step.ready][self.warmup:]
        whole = whole[:self.steps]
        if not whole:
            raise ValueError(f"no step after the {self.warmup} of the warm-up called the model and backward: run more steps, or "
                             "give a smaller warmup")
        seconds = self._clock.seconds
        ready = {name: sorted(seconds(step.backward, step.ready[name]) for step in whole if name in step.ready)
                 for name in self.parameters}
        unused = [name for name, times in ready.items() if not times]
        last = max(times[-1] for times in ready.values() if times)
        # DDP synchronises those without a gradient too, at the end.
        order = sorted(self.parameters, key=lambda name: statistics.median(ready[name]) if ready[name] else last)
        forward = [seconds(step.forward, step.backward) for step in whole]
        batch = self.batch if self.batch is not None else whole[-1].batch
        kinds = {_DTYPES[parameter.dtype] for parameter in self.parameters.values()}
        kind = "float32" if "float32" in kinds or len(kinds) > 1 else kinds.pop()
        lines = ["# Written by hipress.capture.", f"name: {_model_file.quoted(self.name)}",
                 f"source: Captured from {len(whole)} steps of PyTorch {torch.__version__} on {self._hardware()}.",
                 *([f"batch: {batch}"] if batch else []), f"dtype: {kind}",
                 f"forward: {_model_file.microseconds(statistics.median(forward))}  # {_spread(forward)}"]
        lines += self._optimizer_line(whole)
        lines += [f"# without a gradient in these steps: {name}" for name in unused]
        buckets = self._buckets(order)
        lines.append("gradients:  # in backward order, ready since backward began; then the 10th to 90th percentile")
        for name in order:
            parameter = self.parameters[name]
            times = ready[name] or [last]
            shape = f", shape: [{', '.join(map(str, parameter.shape))}]" if parameter.dim() else ""
            own = _DTYPES[parameter.dtype]
            lines.append(f"- {{name: {_model_file.quoted(name)}, elements: {parameter.numel()}, "
                         f"ready: {_model_file.microseconds(statistics.median(times))}{shape}"
                         f"{'' if own == kind else f', dtype: {own}'}, bucket: {buckets[name]}}}  # {_spread(times)}")
        return "\n".join(lines) + "\n"

    def _optimizer_line(self, whole: list) -> list:
        """What lies between steps, from the last gradient to the next forward; without two steps, the optimizer alone."""
        seconds = self._clock.seconds
        own = [seconds(*step.optimizer) for step in whole if step.optimizer is not None]
        between = [min(seconds(ready, after.forward) for ready in step.ready.values()) for step, after in zip(whole, whole[1:])]
        times = between or own
        if not times:
            return []
        part = f"; step() alone {_model_file.microseconds(statistics.median(own))}" if between and own else ""
        return [f"optimizer: {_model_file.microseconds(statistics.median(times))}  # {_spread(times)}{part}"]

    def _buckets(self, order: list) -> dict:
        """The number of each gradient's bucket: DDP fills one of each type in the order in which gradients are ready, until it has its
        size."""
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

    def write(self, path) -> None:
        """Writes text() to a file, which appears at once and complete."""
        text = self.text()
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w") as file:
                file.write(text)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)


def _first_bucket_bytes(bucket_bytes: int) -> int:
    """PyTorch versions whose bucket_cap_mb is 25 by default, not None, have a first bucket of 1 MiB whatever it is."""
    default = inspect.signature(DistributedDataParallel.__init__).parameters["bucket_cap_mb"].default
    return bucket_bytes if default is None else dist._DEFAULT_FIRST_BUCKET_BYTES


def _tensors_of(output):
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors_of(value)
    elif isinstance(output, (list, tuple)):
        for value in output:
            yield from _tensors_of(value)


def _spread(seconds: list) -> str:
    ordered = sorted(seconds)
    at = lambda share: ordered[round(share * (len(ordered) - 1))]  # noqa: E731
    return f"{_model_file.microseconds(at(0.1))} to {_model_file.microseconds(at(0.9))}"
