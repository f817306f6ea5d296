"""Communication hook that averages the gradients of a DistributedDataParallel by a plan."""

import contextlib
import ctypes
import functools
import math
import os
import pathlib
import re
import sys
import weakref
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, Iterator, List, Mapping, Optional, Set, Type, Union

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

from hipress import _arguments, _library, _model_file, _residuals, _states, _trained
from hipress._engine import Engine, Error, InvalidRequest
from hipress._errors import warn
from hipress._job import Job, Wish
from hipress._library import CTensor, Gradient

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket
else:
    GradBucket = dist.GradBucket

_TYPES = {torch.float32: _library.FLOAT32, torch.float16: _library.FLOAT16, torch.bfloat16: _library.BFLOAT16}
_Path = Union[str, "os.PathLike[str]"]
_Parameters = Dict[str, torch.nn.Parameter]
#: Size of a bucket, in bytes, above which gradients wait noticeably for the rest of it.
_LARGE_BUCKET = 4 << 20
#: Seconds without a heartbeat after which a rank is lost: the default of hipress_options_init().
SILENCE_S = 300.0
#: Function that returns the autograd node being run; None if this torch lacks it.
_current_node: Optional[Callable[[], Any]] = getattr(torch._C, "_current_autograd_node", None)
#: Hooks by the model that they are attached to.
_hooks: "weakref.WeakKeyDictionary[torch.nn.Module, Hook]" = weakref.WeakKeyDictionary()


def hook_of(ddp: torch.nn.Module) -> "Hook":
    """Returns the hook of a DistributedDataParallel, also of one that torch.compile was given. Raises InvalidRequest if it has no
    open hook."""
    ddp = unwrapped(ddp, "hipress.verify")
    hook = _hooks.get(ddp)
    if hook is None or hook._closed:
        raise InvalidRequest("this model has no hipress hook: call hipress.attach(model) first")
    return hook


def former_of(ddp: DistributedDataParallel) -> Optional["Hook"]:
    """Returns the closed hook that a model had, or None. Raises InvalidRequest for a model that cannot have another hook."""
    former = _hooks.get(ddp)
    if former is not None and not former._closed and former.failure is None:
        raise InvalidRequest("hipress.attach was called for this model before; a model takes one hook: close() that one first")
    if former is not None and former.failure is not None:
        raise InvalidRequest(f"this model's hook has failed ({former.failure}), and DDP cannot go on from a step that was "
                             "broken off: start the ranks anew, from a checkpoint")
    if former is None or not former.registered:
        _refuse_other_hooks(ddp)
    return former


def attach_ddp(ddp: torch.nn.Module, plan: str, **options: Any) -> "Hook":
    """Makes a DistributedDataParallel's hook and registers it. `options` are the arguments of Hook, or of AutoHook for plan
    "auto"."""
    if plan == "auto":
        from hipress import _auto  # imported late: it needs this module

        hook: Hook = _auto.AutoHook(ddp, **options)
    else:
        hook = Hook(ddp, plan, **options)
    if hook.registered:
        return hook
    try:
        unwrapped(ddp).register_comm_hook(hook, synchronise)
    except BaseException:
        hook.close()
        raise
    hook.registered = True
    return hook


def synchronise(state: "Hook", bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Communication hook that averages a bucket, for DDP.register_comm_hook and for hooks that call other hooks. Returns a Future
    of the mean, with shape and dtype of the bucket's buffer. It completes after all buckets of the step were submitted.

    Raises RankLost if another rank fails, InvalidRequest for a bucket that cannot be averaged, and Error for other failures.
    (PyTorch finds `bucket` by its name, and checks these annotations.)"""
    return state.synchronise(bucket)


#: Other classes of parallel training by name, with the reason why they have no hook.
_OTHERS = {
    "ReplicateModule": "replicate() has no DistributedDataParallel to attach to: use DistributedDataParallel(model) instead of it",
    "FSDPModule": "fully_shard() leaves each rank a part of every gradient, and this is of whole ones: hipress.attach(model) "
                  "trains it "
                  "with a plan of schedule fsdp, or use DistributedDataParallel(model) instead of it",
    "FullyShardedDataParallel": "FSDP leaves each rank a part of every gradient, and this is of whole ones: hipress.attach(model) "
                                "reduces "
                                "them as a plan of schedule fsdp says, or use DistributedDataParallel(model) instead of it",
    "DataParallel": "DataParallel averages within one process: start a process for each device, and use "
                    "DistributedDataParallel(model) instead of it",
}


#: Name of the class that fully_shard() adds to a module's parents.
_SHARDED = "FSDPModule"


def is_of(model: Any, name: str) -> bool:
    """True if a module is of PyTorch's class with this name, which this torch may lack."""
    return any(parent.__name__ == name and parent.__module__.startswith("torch.") for parent in type(model).__mro__)


def uncompiled(model: Any) -> Any:
    """Returns the module that torch.compile was given, or else the model itself."""
    # Reads no attribute: other wrappers pass on those of the module that they wrap.
    while isinstance(model, torch.nn.Module) and "_orig_mod" in model._modules:
        model = model._modules["_orig_mod"]
    return model


def unwrapped(model: Any, caller: str = "hipress.attach") -> DistributedDataParallel:
    """Returns the DistributedDataParallel that a model is, or that torch.compile was given. Raises InvalidRequest for anything
    else; its message names `caller` and a remedy."""
    model = uncompiled(model)
    if isinstance(model, DistributedDataParallel):
        return model
    asked = f"{caller} takes a DistributedDataParallel, got {type(model).__name__}"
    if not isinstance(model, torch.nn.Module):
        raise InvalidRequest(f"{asked}, which is no torch.nn.Module: give it the model that DistributedDataParallel(...) returned")
    for name, why in _OTHERS.items():
        if is_of(model, name):
            raise InvalidRequest(f"{asked}: {why}")
    if _is_replicated(model):
        raise InvalidRequest(f"{asked}: {_OTHERS['ReplicateModule']}")
    if any(is_of(part, _SHARDED) for part in model.modules()):
        raise InvalidRequest(f"{asked}, parts of which are sharded: call fully_shard(model) for the whole, too, and give that")
    raise InvalidRequest(f"{asked}: wrap the model first, with DistributedDataParallel(model) or fully_shard(model)")


def _is_replicated(model: torch.nn.Module) -> bool:
    """True if replicate() of torch.distributed._composable was called for the model. It leaves a record, but no class of its
    own."""
    try:
        from torch.distributed._composable.contract import _get_registry
        return "replicate" in (_get_registry(model) or ())
    except (ImportError, AttributeError):  # missing in this torch, or in this model
        return False


def _refuse_other_hooks(ddp: DistributedDataParallel) -> None:
    """Raises InvalidRequest if DDP has another hook, or the Python reducer, which takes no hook of this kind."""
    other = ddp._get_ddp_logging_data().get("comm_hook")
    if other:
        raise InvalidRequest(f"this model has the communication hook {other}, and DDP takes one: wrap the model again, without it")
    if getattr(ddp, "_use_python_reducer", False):
        raise InvalidRequest("this model uses DDP's Python reducer, which has no buckets to hand over: set "
                             'torch._dynamo.config.optimize_ddp = "ddp_optimizer", and wrap the model again')


def _timeout_of(group: Any, device: torch.device) -> float:
    """Timeout of the process group's operations for a device, in seconds."""
    for owner in (lambda: group, lambda: group._get_backend(device)):  # torch 1, torch 2
        try:
            return float(owner().options._timeout.total_seconds())
        except (AttributeError, RuntimeError):  # unknown for this back end
            continue
    return float(dist.distributed_c10d.default_pg_timeout.total_seconds())


def _patience(timeout: Optional[float], silence: Optional[float], group: Any, device: int) -> Dict[str, float]:
    """Longest waits of a job in seconds: for a rank that is late, and for one that is silent. `device` is a CUDA ordinal, or -1
    for the host."""
    of_group = torch.device("cpu") if device < 0 else torch.device("cuda", device)
    return {"timeout": float(timeout) if timeout is not None else _timeout_of(group, of_group),
            "silence": float(silence) if silence is not None else SILENCE_S}


def _queue_callback(call: Callable[[], None]) -> bool:
    """Queues a call for the end of the current backward pass, after those already queued. Returns False if no such pass runs."""
    try:
        torch.autograd.Variable._execution_engine.queue_callback(call)
    except RuntimeError:
        return False
    return True


def _is_stepping(name: str) -> bool:
    """True if this thread is in step() of an optimizer whose class, or a parent of it, has `name` in its name."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code.co_name == "step":
            optimizer = frame.f_locals.get("self")
            if isinstance(optimizer, torch.optim.Optimizer) and any(name in parent.__name__ for parent in type(optimizer).__mro__):
                return True
        frame = frame.f_back
    return False


def _warn_of_large_buckets(ddp: DistributedDataParallel, parameters: _Parameters) -> None:
    """Warns of large buckets: DDP hands a bucket's gradients over together, once the last of them is ready."""
    size = getattr(ddp, "bucket_bytes_cap", 0)
    total = sum(parameter.numel() * parameter.element_size() for parameter in parameters.values())
    if min(size, total) > _LARGE_BUCKET:
        warn(f"DDP hands gradients over in buckets of up to {size >> 20} MiB, each when its last gradient is ready: with "
             "DistributedDataParallel(..., bucket_cap_mb=1) they wait less, and hipress.capture expects that")


def _warn_of_hooked_parameters(parameters: _Parameters) -> None:
    """Warns of parameters with hooks within backward: an optimizer that steps there uses this rank's own gradient, not the mean."""
    count = _trained.hooked(parameters.values())
    if count > 0:
        warn(f"{count} of {len(parameters)} parameters have hooks that run when their gradient is accumulated "
             "(register_post_accumulate_grad_hook), as optimizers within backward have, and these have gradients of this rank alone: "
             f"{_trained.STEPS_IN_HOOKS}")


def _parameters_of(ddp: DistributedDataParallel) -> _Parameters:
    """Parameters, by name, that DDP synchronises, in the order of the module. Raises InvalidRequest for a dtype or sparse gradients
    that are not supported."""
    ignored = getattr(ddp, "parameters_to_ignore", ())
    parameters = {name: parameter for name, parameter in ddp.module.named_parameters()
                  if parameter.requires_grad and name not in ignored and parameter.numel() > 0}
    require_types(parameters)
    for module_name, module in ddp.module.named_modules():
        if getattr(module, "sparse", False) is True and isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
            raise InvalidRequest(f"module '{module_name}' has sparse gradients, which hipress does not synchronise: make it with "
                                 "sparse=False")
    return parameters


def require_types(parameters: _Parameters) -> None:
    """Raises InvalidRequest for a parameter of a dtype that is not averaged."""
    for name, parameter in parameters.items():
        if parameter.dtype not in _TYPES:
            raise InvalidRequest(f"parameter '{name}' is of {str(parameter.dtype).removeprefix('torch.')}; hipress synchronises "
                                 "float32, float16 and bfloat16: convert the model")


def _gradients_of(parameters: _Parameters, ready_s: Dict[str, float]) -> List[Gradient]:
    """Gradients in the order in which they become ready: that of a captured model, or else from the last parameter to the first.
    Raises InvalidRequest if the captured model has other names."""
    unknown = sorted(set(ready_s) ^ set(parameters)) if ready_s else []
    if unknown:
        where = "the model file" if unknown[0] in ready_s else "the model"
        raise InvalidRequest(f"the model file is of another model: only {where} has '{unknown[0]}'")
    names = list(ready_s) if ready_s else list(reversed(parameters))
    return [Gradient(name, tuple(parameters[name].shape), _TYPES[parameters[name].dtype], ready_s.get(name, 0.0))
            for name in names]


def _device_of(parameters: _Parameters) -> int:
    """CUDA ordinal of the parameters' GPU; -1 for the host. Raises InvalidRequest for several devices, or another kind."""
    devices = {parameter.device for parameter in parameters.values()}
    if len(devices) > 1:
        raise InvalidRequest("the parameters are on several devices (" + ", ".join(sorted(map(str, devices))) +
                             "); hipress takes models on one")
    device = devices.pop() if devices else torch.device("cpu")
    if device.type == "cpu":
        return -1
    if device.type != "cuda":
        raise InvalidRequest(f"the parameters are on {device}; hipress takes the host and CUDA")
    return device.index if device.index is not None else torch.cuda.current_device()


def _said_by(plan: str, key: str, otherwise: str) -> str:
    """Value of a key at the top level of a plan file, if the value is on the key's line; `otherwise` if `plan` is not a file or
    lacks the key. Raises InvalidRequest if the file cannot be read."""
    if not plan.endswith((".yaml", ".yml")):
        return otherwise
    try:
        text = pathlib.Path(plan).read_text(errors="replace")
    except OSError as error:
        raise InvalidRequest(f"{plan}: cannot be read: {error.strerror}") from None
    found = re.search(rf"^{key}: *[\"']?([^\"'#\n]+)", text, re.MULTILINE)
    return found[1].strip() if found else otherwise


def _warn_of_missing_times(plan: str, has_times: bool) -> None:
    """Warns if a plan's rule for bulk groups depends on ready times, and there are none."""
    if has_times or not plan.endswith((".yaml", ".yml")) or not os.path.isfile(plan):
        return
    rule = re.search(r"^bulk:(.*(?:\n[ \t]+.*)*)", pathlib.Path(plan).read_text(errors="replace"), re.MULTILINE)
    threshold = re.search(r"\bthreshold: *[\"']?([\d.]+)", rule[1]) if rule else None
    if threshold and float(threshold[1]) > 0:
        warn(f"{plan} groups small gradients by when they are ready, and no ready times were given: gradients are then grouped as if "
             "all were ready at once, so groups differ from those that the plan's prediction is of, and early gradients may wait for "
             'late ones. Give the captured model that the plan was made of: hipress.attach(ddp, plan=..., model="model.yaml")')


class _Layout:
    """Gradients of a bucket as C arrays, for one call of submit()."""

    def __init__(self, bucket: GradBucket, numbers: Dict[int, int], on_device: bool) -> None:
        buffer = bucket.buffer()
        if buffer.layout != torch.strided:
            raise InvalidRequest("a bucket has sparse gradients, which hipress does not synchronise: make embeddings with "
                                 "sparse=False")
        self.base = buffer.data_ptr()
        type = _TYPES.get(buffer.dtype)
        if type is None:
            raise InvalidRequest(f"a bucket is of {buffer.dtype}; hipress synchronises float32, float16 and bfloat16")
        views = [(numbers[id(parameter)], view) for parameter, view in zip(bucket.parameters(), bucket.gradients())
                 if view.numel() > 0]
        self.count = len(views)
        self.numbers = (ctypes.c_uint32 * self.count)(*(number for number, _ in views))
        self.tensors = (CTensor * self.count)()
        for tensor, (_, view) in zip(self.tensors, views):
            tensor.data, tensor.elements, tensor.type = view.data_ptr(), view.numel(), type
            tensor.on_device = int(on_device)

    def move(self, base: int) -> None:
        """Adapts the addresses to the bucket's memory, which now begins at `base`."""
        if base == self.base:
            return
        for tensor in self.tensors:
            tensor.data += base - self.base
        self.base = base


#: Range without effect, made once.
_NO_RANGE = contextlib.nullcontext()


def _range(what: str, bucket: GradBucket, job: Job) -> ContextManager[object]:
    """Range of torch.profiler around an operation with a bucket; without effect if no profiler runs. hipress-import reads its
    name."""
    if not torch.autograd._profiler_enabled():
        return _NO_RANGE
    buffer = bucket.buffer()
    return record_function(f"hipress::{what}(bucket={bucket.index()}, bytes={buffer.numel() * buffer.element_size()}, "
                           f"dtype={str(buffer.dtype).removeprefix('torch.')}, ranks={job.ranks})")


def saved_state(engine: Engine) -> torch.Tensor:
    """Returns the state of a rank's encoders between iterations, as a tensor of bytes."""
    return _states.saved(engine.save_state)


def restore_state(engine: Engine, state: torch.Tensor) -> None:
    """Restores what saved_state() returned. Raises InvalidRequest for anything else, and changes nothing then."""
    _states.restore(state, engine.load_state)


def held_back(engine: Engine, norms: Mapping[str, float]) -> Dict[str, float]:
    """Ratio of a residual's norm to the given norm of its gradient, by name. Gradients without a residual of their own, or with a
    norm of 0, are left out."""
    return {gradient.name: math.sqrt(squared) / norms[gradient.name]
            for gradient, squared in zip(engine.gradients, engine.squared_residuals())
            if squared >= 0 and norms.get(gradient.name, 0.0) > 0}


def require_own(state: Any, job: Job, owner: str = "hipress.Hook", **kinds: Type[Any]) -> None:
    """Raises InvalidRequest unless `state` is one of `owner`, of this rank and of this number of ranks. `kinds` are the types of
    further keys."""
    _states.require(state, owner, {"ranks": int, "rank": int, "state": torch.Tensor, **kinds})
    _states.require_bytes(owner, "state", state["state"])
    for key, mine in (("ranks", job.ranks), ("rank", job.rank)):
        if state[key] != mine:
            what = f"a job of {state[key]} ranks" if key == "ranks" else job.group.numbers.name(state[key])
            here = f"{mine} ranks" if key == "ranks" else job.group.numbers.name(mine)
            raise InvalidRequest(f"the state is of {what}, and this is {here}: residuals belong to one rank of one job; load "
                                 "each rank's own, or, with another number of ranks, none, and begin with zeros")


class _Detached:
    """Stand-in for the engine of a copied hook. Its use raises InvalidRequest."""

    def __init__(self, refusal: InvalidRequest) -> None:
        self._refusal = refusal

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise self._refusal


class Hook:
    """Hook of one DistributedDataParallel, whose buckets it averages: the `state` of synchronise(). attach() makes and registers
    it. To register it otherwise, for example inside your own hook:

        state = hipress.Hook(ddp, plan="plan.yaml")
        ddp.register_comm_hook(state, hipress.synchronise)

    Arguments and errors are those of attach(). Every rank makes it before the first step, and ranks meet in the constructor. A
    hook that is made after the first was closed needs no registration: the registered one hands buckets on to it."""

    registered = False  #: true if DDP calls this hook, or a former one that hands buckets on to it

    def __init__(self, ddp: torch.nn.Module, plan: _Path = "none", *, algorithm: str = "onebit", topology: Optional[str] = None,
                 model: Optional[_Path] = None, timeout: Optional[float] = None, silence: Optional[float] = None, seed: int = 1,
                 rendezvous: Optional[str] = None, network: Optional[str] = None, pilot: Optional[_Path] = None,
                 log_every: int = _residuals.EVERY) -> None:
        ddp, plan, algorithm = unwrapped(ddp), str(plan), str(algorithm)
        _arguments.job(seed=seed, timeout=timeout, silence=silence, topology=topology, rendezvous=rendezvous, network=network,
                       plan=plan, algorithm=algorithm)
        former = former_of(ddp)
        self.registered = former is not None and former.registered
        parameters = self._join(ddp, plan, algorithm, topology, model, timeout, silence, seed, rendezvous, network, pilot,
                                log_every)
        if former is not None:
            former.close()
        _hooks[ddp] = self
        with self._ended_by_errors():  # warnings may be errors
            if self._job.rank == 0:
                _warn_of_large_buckets(ddp, parameters)
                _warn_of_hooked_parameters(parameters)

    def _join(self, ddp: DistributedDataParallel, plan: str, algorithm: str, topology: Optional[str], model: Optional[_Path],
              timeout: Optional[float], silence: Optional[float], seed: int, rendezvous: Optional[str], network: Optional[str],
              pilot: Optional[_Path], log_every: int, file: Optional[str] = None) -> _Parameters:
        """Meets the other ranks. Returns the parameters whose gradients are averaged. If given, `file` has the plan, and `plan`
        is only its name."""
        self._log = _residuals.ResidualLog(self.statistics, log_every)
        parameters: _Parameters = {}
        order: Dict[str, float] = {}

        def wish() -> Wish:
            parameters.update(_parameters_of(ddp))
            order.update(_model_file.ready_times(model) if model is not None else {})
            if pilot is not None:
                self._log = _residuals.ResidualLog(self.statistics, log_every, _residuals.ranges_of(pilot, plan))
            if not parameters:
                raise InvalidRequest("the model has no parameters that DDP synchronises")
            device = _device_of(parameters)
            same = {"plan": plan, "algorithm": algorithm, "topology": topology or _said_by(file or plan, "topology", "ring"),
                    "seed": seed, "rendezvous": rendezvous, **_patience(timeout, silence, ddp.process_group, device)}
            return Wish(_gradients_of(parameters, order), device, same, network, plan=file)

        job, wished = Job.meet(ddp.process_group, wish)
        numbers = {id(parameters[one.name]): number for number, one in enumerate(wished.gradients)}
        self._begin(job.engine, numbers, job, wished.device)
        self._plan = plan
        self._compresses = plan != "none"
        self._ddp = weakref.ref(ddp)
        self._before_forward = ddp.register_forward_pre_hook(self.before_forward)
        with self._ended_by_errors():
            if job.rank == 0:
                for note in self.engine.notes.splitlines():
                    warn(note)
                _warn_of_missing_times(plan, any(order.values()))
        return parameters

    @contextlib.contextmanager
    def _ended_by_errors(self) -> Iterator[None]:
        """Context whose exceptions end the job on all ranks."""
        try:
            yield
        except BaseException as error:
            self.engine.abort_for(error)
            self.close()
            raise

    def _begin(self, engine: Any, numbers: Dict[int, int], job: Any, device: int) -> None:
        self.engine = engine
        self._numbers = numbers  #: gradients' numbers by id() of their parameters, which DDP keeps alive
        self._job = job
        self._device = device
        self._layouts: Dict[Any, _Layout] = {}
        self._pending: List[Any] = []
        self._watched: List[Any] = []  #: parameters of the current step, each with its gradient before the step
        self._failure: Optional[Error] = None
        self._closed = self._compresses = False
        self._plan = ""
        self._advised: Set[str] = set()
        self._before_forward: Any = None
        self._ddp: Callable[[], Optional[DistributedDataParallel]] = lambda: None

    def __getstate__(self) -> Dict[str, Any]:
        """Returns the state of a copy, for example in a pickled or deep-copied model. A copy is part of no job and synchronises
        nothing: PyTorch averages the copied model's gradients until attach() is called for it."""
        return {"copied": True}

    def __setstate__(self, _state: Dict[str, Any]) -> None:
        detached = InvalidRequest("this hook is a copy, which is part of no job: call hipress.attach for the model that was copied")
        nothing = _Detached(detached)
        self._begin(nothing, {}, nothing, -1)

    @property
    def failure(self) -> Optional[Error]:
        """Error that the hook has failed with, such as a RankLost; None if it has not failed. (Under PyTorch 1.13, backward() may
        raise a RuntimeError with its name and text instead.)"""
        return self._failure

    def before_forward(self, _module: torch.nn.Module, inputs: Any) -> None:
        """Raises the hook's failure before a forward pass, in which DDP would complain of its own state."""
        if not torch.is_grad_enabled():
            return
        if self._failure is not None:
            raise self._failure
        if self._compresses:
            self._advise_of_exact_users(inputs)

    def _advise_of_exact_users(self, inputs: Any) -> None:
        """Warns once of each method that needs exact gradients, if a forward pass shows that it is used."""
        if "L-BFGS" not in self._advised and _is_stepping("LBFGS"):
            self._advise("L-BFGS", "L-BFGS compares losses and gradients along a line, and the plan's gradients are compressed: "
                         "its line search and its curvature are of those. Train with SGD or Adam, or attach with plan=\"none\"")
        if any(isinstance(one, torch.Tensor) and one.is_leaf and one.requires_grad for one in inputs):
            self._advise("penalty", "an input requires its gradient, as for a gradient penalty: that gradient is this rank's own, "
                         "and exact, but what a penalty adds to the parameters' gradients is compressed as the rest of them")

    def _advise(self, what: str, sentence: str) -> None:
        if what not in self._advised:
            self._advised.add(what)
            if self._job.rank == 0:
                warn(sentence)

    def synchronise(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Submits a bucket's gradients, and returns a Future of their mean. At the end of the backward pass, the hook waits for
        all gradients of the step and completes all Futures. If DDP waits for Futures as soon as its hooks have returned, the hook
        of the last bucket does so instead.

        Errors are those of synchronise(). Any exception ends the job on all ranks, and every later step raises it again."""
        if self._closed and self._failure is None:
            return self._hand_on(bucket)
        with self._ending():
            self.registered = True
            future = self._submit(bucket)
        if bucket.is_last():
            wait = functools.partial(self._complete, _range("wait", bucket, self._job))
            if not self._is_waited_for_later() or not _queue_callback(wait):
                wait()
        return future

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """Context for a part of a step. An exception in it ends the job on all ranks, and later parts raise it again."""
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except Error as error:
            self._end(error)
            raise
        except BaseException as error:
            raise self._fail(error)

    def _fail(self, error: BaseException) -> BaseException:
        """Ends the job on all ranks after an exception that is not an Error. Returns the exception to raise."""
        self.engine.abort_for(error)
        self._end(Error(f"the job was ended by {type(error).__name__}"))
        return error

    def _hand_on(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Averages a bucket after close(): by the hook that was attached since, or by the process group's own all-reduce."""
        ddp = self._ddp()
        present = _hooks.get(ddp) if ddp is not None else None
        if present is not None and not present._closed:
            return present.synchronise(bucket)
        return allreduce_hook(self._job.group.group, bucket)

    def _submit(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        if not hasattr(bucket, "parameters"):
            raise InvalidRequest("DDP's Python reducer calls the hook with a tensor instead of a bucket: set "
                                 'torch._dynamo.config.optimize_ddp = "ddp_optimizer", and wrap the model again')
        key = tuple(map(id, bucket.parameters()))
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = _Layout(bucket, self._numbers, self._device >= 0)
        buffer = bucket.buffer()
        layout.move(buffer.data_ptr())
        future = self._future()
        if self._device >= 0:
            event = torch.cuda.Event()
            event.record()
            for tensor in layout.tensors:
                tensor.event = event.cuda_event
            self._pending.append((future, buffer, event))
        else:
            self._pending.append((future, buffer, None))
        if self._may_leave_out():
            self._watch(bucket)
        with _range("submit", bucket, self._job):
            self.engine.submit(layout.count, layout.numbers, layout.tensors)
        return future

    def _is_waited_for_later(self) -> bool:
        """True if DDP waits for the Futures at the end of the backward pass. False in join(), which has no such pass, and in the
        first step of static_graph: DDP then calls the hooks at the end, and waits right after them."""
        if _current_node is not None:
            return _current_node() is not None
        ddp = self._ddp()  # PyTorch 1.13 does not tell
        return ddp is not None and not getattr(ddp, "static_graph", False)

    def _complete(self, waiting: ContextManager[object]) -> None:
        """Waits for all gradients of the step, and completes its Futures."""
        with self._ending():
            with waiting:
                self.engine.wait()
            if not self.engine.all_finite():
                self.engine.discard()  # a loss scaler skips this step
            # Runs after DDP's own callback, which hands out the means.
            if self._watched and not _queue_callback(self._discard_unused):
                self._watched = []
            if self._job.rank == 0 and self._log.is_due():
                _queue_callback(self._log.tell)
            pending, self._pending = self._pending, []
        for done, mean, _ in pending:
            done.set_result(mean)

    def _may_leave_out(self) -> bool:
        """True if a step may leave parameters unused on all ranks; otherwise DDP raises an error for these. False in join(),
        where a rank without further inputs does not learn which they are."""
        ddp = self._ddp()
        if ddp is None or ddp._join_config.enable:
            return False
        return bool(ddp.find_unused_parameters or getattr(ddp, "static_graph", False))

    def _watch(self, bucket: GradBucket) -> None:
        """Notes the present gradients of the bucket's parameters, so that _untouched() sees whether DDP replaces them by the
        means."""
        for parameter, view in zip(bucket.parameters(), bucket.gradients()):
            grad = parameter.grad
            before = None if grad is None else (grad.data_ptr(), grad._version)
            self._watched.append((parameter, before, view.data_ptr()))

    def _untouched(self) -> List[torch.nn.Parameter]:
        """Returns parameters that no rank has used. DDP leaves their gradients alone, so their means are not applied."""
        watched, self._watched = self._watched, []
        unused = []
        for parameter, before, mean in watched:
            grad = parameter.grad
            if grad is None or (before == (grad.data_ptr(), grad._version) and grad.data_ptr() != mean):
                unused.append(parameter)
        return unused

    def _discard_unused(self) -> None:
        unused = [self._numbers[id(one)] for one in self._untouched() if id(one) in self._numbers]
        if unused and self._failure is None:
            self.engine.discard(unused)

    def discard(self) -> None:
        """Undoes the last step, whose gradients are not applied: restores the residuals and factors from before it, so that
        nothing is lost. Every rank calls it, before the next backward. Call it for steps that are skipped. The hook itself undoes
        a step with non-finite means, which loss scalers skip, and the means of parameters that no rank has used. Raises the
        failure if the job has failed."""
        if self._failure is not None:
            raise self._failure
        self.engine.discard()

    def statistics(self) -> Dict[str, float]:
        """Ratio of residual to gradient by the gradient's name, for gradients with a residual of their own on this rank: the norm
        of the residual over the norm of the gradient that was applied last. Call it between steps, and not at each one: it reads
        all residuals and gradients. A ratio that grows through training, or is far above that of a pilot (docs/learning.md),
        means that steps send too little. Raises the failure if the job has failed."""
        if self._failure is not None:
            raise self._failure
        ddp = self._ddp()
        parameters = _parameters_of(ddp) if ddp is not None else {}
        return held_back(self.engine, {name: float(one.grad.detach().float().norm()) for name, one in parameters.items()
                                       if one.grad is not None})

    def report(self, path: Optional[_Path] = None) -> str:
        """Text for users that says how gradients are averaged. Raises InvalidRequest for a path: only the hook that attach()
        returns without a plan writes a page."""
        if path is not None:
            raise InvalidRequest("there is a page of jobs that plan themselves: leave the path out, or attach without a plan")
        return f"gradients are averaged between {self._job.ranks} ranks by the plan {self._plan}"

    def _future(self) -> torch.futures.Future[torch.Tensor]:
        if self._device < 0:
            return torch.futures.Future()
        return torch.futures.Future(devices=[torch.device("cuda", self._device)])

    def _end(self, error: Error) -> None:
        """Closes the engine after a failure, which every later step raises again."""
        self._failure = error
        self._pending, self._watched = [], []
        self.engine.close()

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state of this rank's compression between steps: residuals, factors, and counts of steps, on which random
        draws depend. It is a dictionary: rank, ranks (integers) and state (a tensor of bytes with one dimension). Each rank puts
        its own into its own checkpoint. A job that goes on from these is bit-identical to one that was never interrupted. Call it
        between steps. Raises Error if the job has failed."""
        return {"rank": self._job.rank, "ranks": self._job.ranks, "state": saved_state(self.engine)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the state of this rank, under the same plan, model, seed and number of ranks. Call it between steps.

        state  result of state_dict(), with tensors on any device

        Raises InvalidRequest for any other state, which changes nothing. After a change of the number of ranks, load none:
        residuals then begin with zeros. Raises the failure if the job has failed."""
        if self._failure is not None:
            raise self._failure
        require_own(state, self._job)
        restore_state(self.engine, state["state"])

    def close(self) -> None:
        """Leaves the job and ends all threads. Later steps are averaged by the hook that a further attach() makes, or else by the
        process group, as without a hook. After a failure, they still raise it. Calls after the first have no effect."""
        self._closed = True
        self._pending, self._watched = [], []
        if self._before_forward is not None and self._failure is None:
            self._before_forward.remove()
        self.engine.close()
