"""capture(): a model's timings from training steps, as the model file that hipress-plan takes."""

import json
import os
import statistics
import time
import typing

import torch
from torch.nn.parallel import DistributedDataParallel

_DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class _HostClock:
    """Moments are seconds."""

    def now(self) -> float:
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        return end - begin


class _DeviceClock:
    """Moments are events on the current stream; seconds() waits for them."""

    def now(self) -> "torch.cuda.Event":
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: "torch.cuda.Event", end: "torch.cuda.Event") -> float:
        end.synchronize()
        return begin.elapsed_time(end) / 1e3


class _Step:
    """The moments of one step, as a clock has them."""

    def __init__(self, forward: object):
        self.forward = forward  #: it begins
        self.forward_end: object = None
        self.backward: object = None  #: it has reached the model's output
        self.ready: dict = {}  #: by parameter name


class capture:
    """Context manager: watches the training steps inside it, and writes the model file at its end.

        with hipress.capture(model, "model.yaml", optimizer=optimizer):
            for batch in itertools.islice(loader, 20): train(batch)

    `model`: a module, or a DistributedDataParallel (whose names are those of its module); run it without slowed-down
    communication, as on one machine. `path`: None writes nothing. Ready times count from the moment at which backward reaches the model's output; the forward
    time ends there too, and so includes the loss. Medians over steps, without the first `warmup`; the spread (half the distance
    between the 16th and the 84th percentile, relative, of the last gradient's) is in the file's source. On a GPU times are those
    of events on the current stream. `batch` and `unit` go into the file. `optimizer`: its step() is timed, too.

    ValueError at the end if there were not two steps after the warm-up, or if a step had no backward.
    """

    def __init__(self, model: torch.nn.Module, path: typing.Union[str, os.PathLike, None] = "model.yaml", *,
                 name: typing.Optional[str] = None, batch: int = 0, unit: str = "samples", warmup: int = 2,
                 optimizer: typing.Optional[torch.optim.Optimizer] = None):
        self._wrapper = model
        self._model = model.module if isinstance(model, DistributedDataParallel) else model
        self._path, self._name = path, name or type(self._model).__name__.lower()
        self._batch, self._unit, self._warmup, self._optimizer = batch, unit, warmup, optimizer
        self._named = [(name, weight) for name, weight in self._model.named_parameters() if weight.requires_grad]
        if not self._named:
            raise ValueError("the model has no parameters that need gradients")
        on_device = self._named[0][1].device.type == "cuda"
        self._clock = _DeviceClock() if on_device else _HostClock()
        self._on_device = on_device
        self._steps: list = []
        self._optimizer_s: list = []
        self._handles: list = []
        self._accumulators: list = []  # which hold the hooks

    # ----------------------------------------------------------------------------------------------------------- watching

    def __enter__(self) -> "capture":
        self._handles += [self._model.register_forward_pre_hook(self._forward_begins),
                          self._model.register_forward_hook(self._forward_ends)]
        for name, weight in self._named:
            self._watch(name, weight)
        if self._optimizer is not None:
            self._time_optimizer()
        return self

    def _watch(self, name: str, weight: torch.nn.Parameter) -> None:
        def ready(*_):
            if self._steps:
                self._steps[-1].ready[name] = self._clock.now()
        if hasattr(weight, "register_post_accumulate_grad_hook"):
            self._handles.append(weight.register_post_accumulate_grad_hook(ready))
            return
        accumulator = weight.expand_as(weight).grad_fn.next_functions[0][0]
        self._accumulators.append(accumulator)
        self._handles.append(accumulator.register_hook(ready))

    def _forward_begins(self, *_) -> None:
        if torch.is_grad_enabled():
            self._steps.append(_Step(self._clock.now()))

    def _forward_ends(self, _module, _inputs, output) -> None:
        if not torch.is_grad_enabled():
            return
        step = self._steps[-1]
        step.forward_end = self._clock.now()

        def backward(_):
            if step.backward is None:
                step.backward = self._clock.now()
        for tensor in _tensors(output):
            if tensor.requires_grad:
                tensor.register_hook(backward)

    def _time_optimizer(self) -> None:
        step = self._optimizer.step

        def timed(*arguments, **named):
            begin = self._clock.now()
            result = step(*arguments, **named)
            self._optimizer_s.append((begin, self._clock.now()))
            return result
        self._optimizer.step = timed

    def __exit__(self, kind, *_) -> None:
        for handle in self._handles:
            handle.remove()
        if self._optimizer is not None:
            del self._optimizer.step  # the class's shows again
        if kind is None and self._path is not None:
            self.write()

    # ------------------------------------------------------------------------------------------------------------ writing

    def write(self) -> None:
        """Writes the file of the steps so far."""
        steps = [step for step in self._steps if step.ready][self._warmup:]
        if len(steps) < 2:
            raise ValueError(f"capture() saw {len(steps)} steps with a backward after {self._warmup} for warm-up: run at least 2")
        if any(step.backward is None for step in steps):
            raise ValueError("a step's backward did not pass the model's output, so that it is not known when it began")
        forward = [self._clock.seconds(step.forward, step.backward) for step in steps]
        ready = {name: [self._clock.seconds(step.backward, step.ready[name]) for step in steps if name in step.ready]
                 for name, _ in self._named}
        shown = {name: times for name, times in ready.items() if times}
        last = max(shown, key=lambda name: statistics.median(shown[name]))
        lines = [f"name: {_quoted(self._name)}", f"source: {_quoted(self._source(len(steps), _spread(shown[last]), len(shown)))}"]
        if self._batch:
            lines += [f"batch: {self._batch}", f"unit: {_quoted(self._unit)}"]
        lines += [f"forward: {statistics.median(forward) * 1e6:.3f}us",
                  "gradients:  # in backward order, ready since backward began"]
        for name, weight in sorted(self._named, key=lambda one: statistics.median(shown.get(one[0], [0.0]))):
            if name in shown:
                lines.append(self._row(name, weight, statistics.median(shown[name])))
        temporary = f"{os.fspath(self._path)}.{os.getpid()}.part"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(temporary, self._path)

    def _source(self, steps: int, spread: float, seen: int) -> str:
        text = (f"Captured from {steps} training steps with PyTorch {torch.__version__} on "
                f"{'a GPU: ' + torch.cuda.get_device_name() if self._on_device else 'the CPU'}; the last ready time's spread is "
                f"{spread * 100:.1f} %.")
        if self._optimizer_s:
            spent = statistics.median(self._clock.seconds(*moments) for moments in self._optimizer_s)
            text += f" The optimizer's step takes {spent * 1e3:.3f} ms."
        if isinstance(self._wrapper, DistributedDataParallel):
            text += f" DDP has buckets of {self._wrapper.bucket_bytes_cap / 2**20:g} MiB, the first of 1."
        if seen < len(self._named):
            text += f" {len(self._named) - seen} parameters had no gradient."
        return text

    def _row(self, name: str, weight: torch.nn.Parameter, ready_s: float) -> str:
        if weight.dtype not in _DTYPES:
            raise ValueError(f"parameter '{name}' is of {weight.dtype}: gradients are float32, float16 or bfloat16")
        row = f"- {{name: {_quoted(name)}, elements: {weight.numel()}, ready: {max(ready_s, 0.0) * 1e6:.3f}us"
        if weight.dim() > 0:
            row += f", shape: [{', '.join(map(str, weight.shape))}]"
        if weight.dtype != torch.float32:
            row += f", dtype: {_DTYPES[weight.dtype]}"
        return row + "}"


def _tensors(output: object) -> typing.Iterator[torch.Tensor]:
    """All in a module's output, which may be nested."""
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, (list, tuple)):
        for value in output:
            yield from _tensors(value)


def _spread(times: typing.Sequence[float]) -> float:
    ordered = sorted(times)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.16, 0.84))
    return (high - low) / 2 / statistics.median(ordered)


def _quoted(text: str) -> str:
    """As a double-quoted YAML string, which is what JSON has."""
    return json.dumps(text, ensure_ascii=False)
