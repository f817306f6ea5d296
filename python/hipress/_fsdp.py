"""FSDP: parameters are gathered and gradients reduced as a plan says, by the process group's own collectives on our messages."""

import contextlib
import ctypes
import functools
import json
import os
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work

from hipress import _ddp, _engine
from hipress._codec import TYPES, Codec, Draws, aligned
from hipress._engine import Error, InvalidRequest
from hipress._library import Gradient, library

_Path = Union[str, "os.PathLike[str]"]
#: Roles of encoders, as in task graphs: of a rank's own gradient, of a partial sum, of what is gathered.
_OWN, _PARTIAL, _GATHERED = range(3)
#: What wrappers put into the names of the parameters that they wrap.
_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_fpw_module")
#: Hooks by the model that they are attached to.
_hooks: "weakref.WeakKeyDictionary[torch.nn.Module, ShardedHook]" = weakref.WeakKeyDictionary()


def is_sharded(model: Any) -> bool:
    """Whether fully_shard() was called for the module."""
    return _ddp.is_of(model, "FSDPModule")


def plain_name(name: str) -> str:
    """A parameter's or module's name in the model as it was before it was wrapped."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


class Unit:
    """What travels as one: the parameters of a parameter group, and how they are gathered and reduced (None: as PyTorch does)."""

    def __init__(self, number: int, name: str, parameters: List[Tuple[str, int]]) -> None:
        self.number, self.name, self.parameters = number, name, parameters
        self.gather: Optional[str] = None
        self.reduction: Optional[str] = None
        self.gathers = self.reductions = 0  #: that were encoded so far

    def described(self) -> List[Any]:
        """What ranks, and states, must have in common."""
        return [self.name, [list(parameter) for parameter in self.parameters], self.gather, self.reduction]


class Messages:
    """What the collectives of a job's units share: codecs, draws, and the groups of an exchange in two steps."""

    def __init__(self, seed: int) -> None:
        self._seed, self._codecs = seed, {}  # type: int, Dict[str, Codec]
        self.node = dist.get_rank()
        self.within: Any = None  #: neighbours that exchange first; None: all ranks of a group exchange at once
        self.between: Any = None  #: those that exchange what these have added

    def codec(self, algorithm: str) -> Codec:
        """The codec of an algorithm, one for all units."""
        if algorithm not in self._codecs:
            self._codecs[algorithm] = Codec(algorithm, self._seed)
        return self._codecs[algorithm]

    @property
    def codecs(self) -> Dict[str, Codec]:
        """Those that are in use, by algorithm."""
        return self._codecs

    def encode(self, algorithm: str, values: torch.Tensor, parts: int, draws: Draws, keep: bool) -> Tuple[torch.Tensor, List[int]]:
        """Messages of equal parts of the values, as rows of bytes on the host, and the bytes that each takes."""
        _require_type(values)
        codec = self.codec(algorithm)
        slots = torch.empty((parts, aligned(codec.size(values.numel() // parts))), dtype=torch.uint8)
        return slots, codec.encode(values.detach().cpu().contiguous(), slots, draws, keep)


def _require_type(values: torch.Tensor) -> None:
    if values.dtype not in TYPES:
        raise InvalidRequest(f"a group has parameters of several types, or of one that is not compressed ({values.dtype}): give "
                             "fully_shard() modules of float32, float16 or bfloat16 alone, or plan these raw")


@contextlib.contextmanager
def _on_host(output: torch.Tensor) -> Iterator[torch.Tensor]:
    """Where the values are written that it shall have: itself, or memory of the host, from which it is copied."""
    if output.device.type == "cpu" and output.is_contiguous():
        yield output
        return
    values = torch.empty(output.shape, dtype=output.dtype)
    yield values
    output.copy_(values)


class DecodingWork(Work):
    """A collective under way, what it sends, and what is done when it has ended."""

    def __init__(self, work: Any, sent: torch.Tensor, then: Callable[[], None]) -> None:
        super().__init__()
        self._work, self._sent = work, sent
        self._then: Optional[Callable[[], None]] = then

    def wait(self, *timeout: Any) -> bool:
        """Returns when the output is there."""
        ended = bool(self._work.wait(*timeout))
        then, self._then = self._then, None
        if then is not None:
            then()
        return ended


class _Collective:
    """In place of a module's own collective, which is asked for memory, and for what goes raw."""

    def __init__(self, hook: "ShardedHook", unit: Unit, plain: Any) -> None:
        self._hook, self._unit, self.plain = hook, unit, plain

    def allocate(self, *size: Any, **named: Any) -> torch.Tensor:
        """As the module's own."""
        found: torch.Tensor = self.plain.allocate(*size, **named)
        return found


class Gather(_Collective):
    """All-gathers a unit's shards as encoded messages."""

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, async_op: bool = False) -> Any:
        algorithm = self._unit.gather
        # What neighbours keep between forward and backward was decoded before.
        again = group.size() != self._hook.shard
        half = self._hook.messages.codec(algorithm).half if algorithm is not None else None
        if algorithm is None or input_tensor.dtype == half or (again and half is None):
            return self.plain(output_tensor=output_tensor, input_tensor=input_tensor, group=group, async_op=async_op)
        with self._hook.ending():
            if half is not None:
                work = self._cast(output_tensor, input_tensor, group, half)
            else:
                work = self._encoded(algorithm, output_tensor, input_tensor, group)
            if async_op:
                return work
            work.wait()
            return None

    @staticmethod
    def _cast(output: torch.Tensor, shard: torch.Tensor, group: Any, half: torch.dtype) -> DecodingWork:
        sent = shard.to(half)
        arrived = torch.empty(output.shape, dtype=half, device=output.device)

        def widen() -> None:
            output.copy_(arrived)

        return DecodingWork(dist.all_gather_into_tensor(arrived, sent, group=group, async_op=True), sent, widen)

    def _encoded(self, algorithm: str, output: torch.Tensor, shard: torch.Tensor, group: Any) -> DecodingWork:
        unit, messages = self._unit, self._hook.messages
        slots, sizes = messages.encode(algorithm, shard, 1, Draws(unit.number, messages.node, _GATHERED, unit.gathers), False)
        unit.gathers += 1
        codec, ranks = messages.codec(algorithm), group.size()
        lengths = _all_lengths(sizes[0], output.device, group) if codec.varies else sizes * ranks
        room = aligned(max(lengths))
        sent = slots[0, :room].to(output.device)
        arrived = torch.empty(ranks * room, dtype=torch.uint8, device=output.device)

        def decode() -> None:
            with _on_host(output) as values:
                codec.decode(arrived.cpu().view(ranks, room), lengths, values)

        return DecodingWork(dist.all_gather_into_tensor(arrived, sent, group=group, async_op=True), sent, decode)


class Reduction(_Collective):
    """Reduces a unit's gradients to shards: an encoded message to each rank, which adds in fp32."""

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        algorithm = self._unit.reduction
        half = self._hook.messages.codec(algorithm).half if algorithm is not None else None
        if algorithm is None or input_tensor.dtype == half or group.size() == 1:
            return self.plain(output_tensor=output_tensor, input_tensor=input_tensor, group=group, op=op, async_op=async_op)
        with self._hook.ending():
            divisor = _divisor_of(op, group.size())
            if half is not None:
                self._cast(output_tensor, input_tensor, group, half, divisor)
            else:
                self._encoded(algorithm, output_tensor, input_tensor, group, divisor)
            return None

    @staticmethod
    def _cast(output: torch.Tensor, gradient: torch.Tensor, group: Any, half: torch.dtype, divisor: float) -> None:
        """Divided before it is added, so that sums stay in range."""
        mean = torch.empty(output.shape, dtype=half, device=output.device)
        dist.reduce_scatter_tensor(mean, gradient.div(divisor).to(half), op=dist.ReduceOp.SUM, group=group)
        output.copy_(mean)

    def _encoded(self, algorithm: str, output: torch.Tensor, gradient: torch.Tensor, group: Any, divisor: float) -> None:
        messages, step = self._hook.messages, self._unit.reductions
        self._unit.reductions += 1
        if messages.within is None:
            return self._exchange(algorithm, output, gradient, group, divisor, _OWN, step)
        # A neighbour adds what is for its namesakes of all other neighbourhoods, and then sends each of these its own.
        size, shard = messages.within.size(), output.numel()
        ordered = gradient.view(-1, size, shard).transpose(0, 1).reshape(-1)
        partial = torch.empty(gradient.numel() // size, dtype=torch.float32, device=output.device)
        self._exchange(algorithm, partial, ordered, messages.within, 1, _OWN, step)
        return self._exchange(algorithm, output, partial, messages.between, divisor, _PARTIAL, step)

    def _exchange(self, algorithm: str, output: torch.Tensor, gradient: torch.Tensor, group: Any, divisor: float, role: int,
                  step: int) -> None:
        """Sends each rank of the group its part of the gradient, and leaves the sum of what arrives, divided."""
        messages, ranks = self._hook.messages, group.size()
        codec = messages.codec(algorithm)
        draws = Draws(self._unit.number, messages.node, role, step)
        slots, sizes = messages.encode(algorithm, gradient, ranks, draws, codec.keeps)
        arrived = _exchanged(slots, sizes, output.device, group, codec.varies)
        with _on_host(output) as values:
            codec.add(arrived, values, divisor)


def _all_lengths(length: int, device: torch.device, group: Any) -> List[int]:
    """Of every rank's message."""
    found = torch.empty(group.size(), dtype=torch.int64, device=device)
    dist.all_gather_into_tensor(found, torch.tensor([length], device=device), group=group)
    return [int(one) for one in found.tolist()]


def _exchanged(slots: torch.Tensor, sizes: List[int], device: torch.device, group: Any, varies: bool) -> List[torch.Tensor]:
    """Row r of bytes goes to rank r of the group; what arrives by rank."""
    if not varies:
        arrived = torch.empty(slots.shape, dtype=torch.uint8, device=device)
        dist.all_to_all_single(arrived, slots.to(device), group=group)
        return [row[:size] for row, size in zip(arrived.cpu(), sizes)]
    lengths = torch.empty(len(sizes), dtype=torch.int64, device=device)
    dist.all_to_all_single(lengths, torch.tensor(sizes, device=device), group=group)
    theirs = [int(one) for one in lengths.tolist()]
    sent, rooms = [aligned(size) for size in sizes], [aligned(size) for size in theirs]
    packed = torch.cat([row[:size] for row, size in zip(slots, sent)]).to(device)
    flat = torch.empty(sum(rooms), dtype=torch.uint8, device=device)
    dist.all_to_all_single(flat, packed, rooms, sent, group=group)
    return [part[:size] for part, size in zip(torch.split(flat.cpu(), rooms), theirs)]


def _divisor_of(op: Any, ranks: int) -> float:
    """By what a sum is divided: FSDP asks for means, sums, and sums of products with a factor (set_gradient_divide_factor)."""
    if op == dist.ReduceOp.AVG:
        return float(ranks)
    if op == dist.ReduceOp.SUM:
        return 1.0
    state = op.__getstate__() if isinstance(op, dist.ReduceOp) else None  # of a sum of products: that, and the factor
    if isinstance(state, tuple) and state[0] == dist.ReduceOp.PREMUL_SUM and state[1] is not None:
        return 1.0 / float(state[1])
    raise InvalidRequest(f"gradients are reduced by {op}, and a plan averages or sums: leave it to fully_shard()")


# ------------------------------------------------------------------------------------------------------------------ plans


class Plan:
    """What a plan decides of the parameters of a job."""

    def __init__(self, plan: str, algorithm: str, ranks: int, gradients: Sequence[Gradient]) -> None:
        planned = _ddp._said_by(plan, "nodes", "")
        if planned.isdigit() and int(planned) != ranks:
            raise InvalidRequest(f"{plan} is for {planned} ranks, and the model is over {ranks}: start {planned}, or plan for "
                                 f"{ranks} (--nnodes {ranks})")
        array, _shapes = _engine._described(gradients)
        text = ctypes.c_void_p()
        _engine.check(library().hipress_read_sharded_plan(plan.encode(), algorithm.encode(), ranks, array, len(gradients),
                                                          ctypes.byref(text)))
        try:
            said = json.loads(ctypes.string_at(text.value or 0))
        finally:
            library().hipress_free_result(text)
        self.file, self.schedule = plan, said["schedule"]
        self.shard, self.reshard = int(said["shard"]), int(said["reshard"])
        self.prefetch, self.in_flight = said["prefetch"], int(said["in_flight"])
        self.separate = bool(said["separate_communicators"])
        self.within = int(said["exchange_within"])
        self._of = {gradient.name: (one["gather"], one["algorithm"]) for gradient, one in zip(gradients, said["gradients"])}

    def decide(self, unit: Unit) -> None:
        """Gives a unit what its parameters have in common. InvalidRequest that names two that differ."""
        found = [(name, self._of[name]) for name, _ in unit.parameters if name in self._of]
        for name, decided in found[1:]:
            if decided != found[0][1]:
                raise InvalidRequest(
                    f"{self.file} decides parameters of one group differently, which travel as one: {_said(*found[0])}, "
                    f"{_said(name, decided)} "
                    f"(group {unit.name or 'of the root'}); give both one decision, or have fully_shard() wrap them apart")
        if found:
            unit.gather, unit.reduction = found[0][1]


def _said(name: str, decided: Tuple[Optional[str], Optional[str]]) -> str:
    gather, reduction = (one or "none" for one in decided)
    return f"'{name}' with gather {gather} and algorithm {reduction}"


# ---------------------------------------------------------------------------------------------------------------- modules


def _state_of(module: Any) -> Any:
    return module._get_fsdp_state()


def _groups_of(module: Any) -> List[Any]:
    """A module's parameter groups, in any version of torch."""
    state = _state_of(module)
    several = getattr(state, "_fsdp_param_groups", None)
    if several is not None:
        return list(several)
    one = getattr(state, "_fsdp_param_group", None)
    return [] if one is None else [one]


def _sharded_modules(model: torch.nn.Module) -> Iterator[Tuple[str, Any, Any]]:
    """Name, module and parameter group of all that fully_shard() was called for; a group of several modules once."""
    seen = set()
    for name, module in model.named_modules():
        if not is_sharded(module) or id(_state_of(module)) in seen:
            continue
        seen.add(id(_state_of(module)))
        groups = _groups_of(module)
        if len(groups) > 1:
            raise InvalidRequest(f"module '{plain_name(name)}' has {len(groups)} parameter groups, of which FSDP2 takes no other "
                                 "collectives: "
                                 "call fully_shard() without a shard_placement_fn of several meshes")
        for group in groups:
            yield plain_name(name), module, group


def _parameters_of(model: torch.nn.Module, group: Any) -> List[Tuple[str, int, bool]]:
    """Names, elements and whether they are trained."""
    names = {id(module): plain_name(name) for name, module in model.named_modules()}
    found = []
    for one in group.fsdp_params:
        info = one._module_info
        prefix = names.get(id(info.module), "")
        parameter = one.sharded_param
        found.append((f"{prefix}.{info.param_name}" if prefix else info.param_name, parameter.numel(), parameter.requires_grad))
    return found


def _sizes_of(group: Any) -> Tuple[int, int]:
    """Ranks that have all shards between them, and all ranks of the mesh."""
    info = group.mesh_info
    shard = getattr(info, "shard_mesh_size", 1)
    return shard, shard * getattr(info, "replicate_mesh_size", 1)


def _require_setters(module: Any) -> None:
    missing = [name for name in ("set_custom_all_gather", "set_custom_reduce_scatter") if not hasattr(module, name)]
    if missing:
        raise InvalidRequest(f"this torch ({torch.__version__}) has no FSDPModule.{missing[0]}, by which a plan takes the "
                             "collectives over: "
                             "install a later one, or attach with plan=\"none\"")


# --------------------------------------------------------------------------------------------------------------- schedules


def _apply_schedule(plan: Plan, model: Any, units: Sequence[Tuple[Unit, Any, Any]]) -> None:
    """Checks the plan's schedule against the modules, and sets what FSDP2 has a setter for: resharding after forward as true or
    false (of all but the root, which FSDP2 leaves whole unless it was told otherwise), and communicators."""
    where = f"{plan.file} is for schedule {plan.schedule}"
    if plan.prefetch != "pre":
        raise InvalidRequest(f"{where}, and FSDP2 gathers ahead of a backward pass: plan with prefetch=pre")
    for unit, module, group in units:
        shard, ranks = _sizes_of(group)
        if shard != plan.shard:
            mesh = f"init_device_mesh(..., ({ranks // plan.shard}, {plan.shard}))" if ranks > plan.shard else f"a mesh of {ranks}"
            raise InvalidRequest(f"{where}, where {plan.shard} ranks have all shards, and the module '{unit.name}' is sharded "
                                 f"over {shard}: "
                                 f"give fully_shard() {mesh}, or plan for what it has")
        _require_neighbours(where, unit, group)
        _set_reshard(where, plan, unit, module, group, shard, is_root=module is model)
        _require_in_flight(where, plan, unit, module)
    setter = getattr(model, "set_separate_reduce_scatter_group", None)
    if setter is not None:
        setter(plan.separate)
    elif plan.separate:
        raise InvalidRequest(f"{where}, and this torch ({torch.__version__}) has no set_separate_reduce_scatter_group: plan with "
                             "communicators=shared, or install a later one")


def _require_neighbours(where: str, unit: Unit, group: Any) -> None:
    ranks = dist.get_process_group_ranks(group.mesh_info.shard_process_group)
    if ranks != list(range(ranks[0], ranks[0] + len(ranks))):
        raise InvalidRequest(f"{where}, whose groups are of neighbours, and the module '{unit.name}' is sharded over ranks "
                             f"{ranks}: give "
                             "fully_shard() a mesh whose last dimension is the sharded one")


def _set_reshard(where: str, plan: Plan, unit: Unit, module: Any, group: Any, shard: int, is_root: bool) -> None:
    after = group.post_forward_mesh_info
    among = 1 if after is None else after.shard_mesh_size
    if among == plan.reshard or (is_root and _state_of(module)._auto_reshard_after_forward):
        return
    if plan.reshard not in (1, shard):
        raise InvalidRequest(f"{where}, and the module '{unit.name}' keeps a {among}-th after forward: call fully_shard(..., "
                             f"reshard_after_forward={plan.reshard})")
    module.set_reshard_after_forward(plan.reshard == shard, recurse=False)


def _require_in_flight(where: str, plan: Plan, unit: Unit, module: Any) -> None:
    """FSDP2 gathers one ahead by itself, and more where it is told which."""
    state = _state_of(module)
    ahead = max(1, *(len(getattr(state, name, ())) for name in ("_states_to_forward_prefetch", "_states_to_backward_prefetch")))
    if plan.in_flight < 2:
        raise InvalidRequest(f"{where}, and FSDP2 gathers a layer beside the one in use: plan with in_flight=2")
    if plan.in_flight > ahead + 1 and plan.in_flight > 2:
        raise InvalidRequest(f"{where}, and the module '{unit.name}' gathers {ahead} ahead: call set_modules_to_forward_prefetch "
                             "and "
                             f"set_modules_to_backward_prefetch with {plan.in_flight - 1} modules, or plan with in_flight=2")


# -------------------------------------------------------------------------------------------------------------------- hooks


class _Ending:
    """Around what a hook does: it keeps what is raised."""

    def __init__(self, hook: "ShardedHook") -> None:
        self._hook = hook

    def __enter__(self) -> None:
        if self._hook.failure is not None:
            raise self._hook.failure

    def __exit__(self, kind: Any, error: Optional[BaseException], _traceback: Any) -> None:
        if error is not None:
            self._hook.fail(error)


class ShardedHook:
    """What gathers and reduces the shards of one model: what hipress.attach() returns for it. It holds what a checkpoint needs
    (state_dict, load_state_dict), and ends with close()."""

    def __init__(self, units: Sequence[Unit], seed: int, group: Any, plan: str) -> None:
        self.units, self.messages, self.plan = list(units), Messages(seed), plan
        self._group = group
        self.shard = dist.get_world_size(group)
        self._failure: Optional[Error] = None
        self._undo: List[Callable[[], object]] = []

    def __getstate__(self) -> Dict[str, Any]:
        raise InvalidRequest("a hook is a part of its job and is not copied: save its state_dict(), and attach the model that was "
                             "copied")

    @property
    def failure(self) -> Optional[Error]:
        """What the hook has failed with; None: it has not. Every later step raises it again."""
        return self._failure

    def ending(self) -> _Ending:
        """A context that keeps what is raised in it as the failure."""
        return _Ending(self)

    def fail(self, error: BaseException) -> None:
        """Keeps the first that was raised."""
        if self._failure is None:
            self._failure = error if isinstance(error, Error) else Error(f"the job was ended by {type(error).__name__}: {error}")

    def decide(self, plan: Plan) -> None:
        """Gives the units what the plan decides, and agrees with the other ranks on it. InvalidRequest where they differ."""
        for unit in self.units:
            plan.decide(unit)
            for algorithm in (unit.gather, unit.reduction):
                if algorithm is not None:
                    self.messages.codec(algorithm)
        if plan.within > 1 and plan.within < self.shard:
            self._split(plan)

    def agree(self, seed: int) -> None:
        """InvalidRequest unless all ranks were given the same plan and seed for the same units."""
        mine = {"seed": seed, "plan": self.plan, "within": self.messages.within is not None,
                "units": [unit.described() for unit in self.units]}
        everyone: List[Any] = [None] * self.shard
        dist.all_gather_object(everyone, mine, group=self._group)
        for rank, theirs in enumerate(everyone):
            differing = [key for key in mine if theirs[key] != everyone[0][key]]
            if differing:
                raise InvalidRequest(f"rank {rank} called hipress.attach with another {differing[0]} than rank 0: "
                                     f"{_short(theirs[differing[0]])} and {_short(everyone[0][differing[0]])}; give all the same")

    def _split(self, plan: Plan) -> None:
        """Makes the groups of an exchange in two steps."""
        if self.shard % plan.within != 0:
            raise InvalidRequest(f"{plan.file} exchanges within {plan.within} neighbours first, and {self.shard} ranks are no "
                                 "multiple")
        ranks, place = dist.get_process_group_ranks(self._group), dist.get_rank(self._group)
        first = place - place % plan.within
        near, far = ranks[first:first + plan.within], ranks[place % plan.within::plan.within]
        self.messages.within = dist.new_group(near, use_local_synchronization=True, backend=dist.get_backend(self._group))
        self.messages.between = dist.new_group(far, use_local_synchronization=True, backend=dist.get_backend(self._group))

    def undone_by(self, undo: Callable[[], object]) -> None:
        """close() calls it."""
        self._undo.append(undo)

    def discard(self) -> None:
        """Says that the gradients of the last step are not applied. Codecs that keep no residual, such as int8block and int4block,
        have nothing to take back; InvalidRequest for others, which cannot."""
        keeping = [algorithm for algorithm, codec in self.messages.codecs.items() if codec.keeps]
        if keeping:
            raise InvalidRequest(f"{keeping[0]} keeps residuals, which a sharded model does not take back: reduce by a block "
                                 "format for steps "
                                 "that may be skipped")

    def state_dict(self) -> Dict[str, Any]:
        """What this rank's compression keeps between steps: residuals, and counts of what was sent, by which random draws differ.
        A dictionary of numbers, lists and tensors. Each rank has its own, and puts it into its own checkpoint; a job that goes on
        with them has the bits of one that was never interrupted. Call it between steps. Error if the job has failed."""
        if self._failure is not None:
            raise self._failure
        return {"rank": dist.get_rank(self._group), "ranks": self.shard, "units": [unit.described() for unit in self.units],
                "counts": torch.tensor([[unit.gathers, unit.reductions] for unit in self.units], dtype=torch.int64).reshape(-1, 2),
                "state": {algorithm: codec.saved() for algorithm, codec in self.messages.codecs.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what state_dict() of this rank returned, under the same plan, model, seed and number of ranks.

        state  what state_dict() returned, on any device

        InvalidRequest in words for any other: do not load it then, and residuals begin with zeros."""
        for key, mine, noun in (("ranks", self.shard, "ranks"), ("rank", dist.get_rank(self._group), "rank")):
            if state[key] != mine:
                raise InvalidRequest(f"the state is of {noun} {state[key]}, and this is {noun} {mine}: residuals belong to one "
                                     "rank of one "
                                     "job; load each rank's own, or none, and begin with zeros")
        for unit, theirs in zip(self.units, state["units"]):
            if unit.described() != theirs:
                raise InvalidRequest(f"the state is of another plan or model: its group '{theirs[0]}' is {_short(theirs[1:])}, "
                                     "and here group "
                                     f"'{unit.name}' is {_short(unit.described()[1:])}")
        if len(self.units) != len(state["units"]):
            raise InvalidRequest(f"the state is of another model: it has {len(state['units'])} groups, and here are "
                                 f"{len(self.units)}")
        for algorithm, saved in state["state"].items():
            self.messages.codec(algorithm).restore(saved)
        for unit, (gathers, reductions) in zip(self.units, state["counts"].tolist()):
            unit.gathers, unit.reductions = int(gathers), int(reductions)

    def close(self) -> None:
        """Gives the model PyTorch's own collectives back. Calls after the first do nothing."""
        undo, self._undo = self._undo, []
        for one in undo:
            one()


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


def attach_sharded(model: Any, plan: str, algorithm: str, seed: int) -> ShardedHook:
    """Attaches a plan to what fully_shard() was called for. Every rank calls it, before the first step."""
    if model in _hooks:
        raise InvalidRequest("hipress.attach was called for this model before; close() that hook first")
    found = list(_sharded_modules(model))
    if not found:
        raise InvalidRequest("the model has no parameters that fully_shard() divides")
    _require_sharded_mesh(found)
    units = [Unit(number, name, [(one, elements) for one, elements, _ in _parameters_of(model, group)])
             for number, (name, _, group) in enumerate(found)]
    hook = ShardedHook(units, seed, found[0][2].mesh_info.shard_process_group, plan)
    if plan != "none":
        _take_over(hook, model, plan, algorithm, [(unit, module, group) for unit, (_, module, group) in zip(units, found)])
    else:
        hook.agree(seed)
    _hooks[model] = hook
    hook.undone_by(functools.partial(_hooks.pop, model, None))
    return hook


def _require_sharded_mesh(found: Sequence[Tuple[str, Any, Any]]) -> None:
    """All modules are over the same ranks, and divided between some."""
    sizes = {_sizes_of(group): name for name, _, group in found}
    if len(sizes) > 1:
        (first, one), (second, other) = list(sizes.items())[:2]
        raise InvalidRequest(f"module '{one}' is sharded over {first[0]} of {first[1]} ranks and '{other}' over {second[0]} of "
                             f"{second[1]}: give "
                             "fully_shard() one mesh for all")
    if not hasattr(found[0][2].mesh_info, "shard_process_group"):
        raise InvalidRequest("the model is replicated and not sharded: use DistributedDataParallel(model) for a plan of averages")


def _take_over(hook: ShardedHook, model: Any, plan: str, algorithm: str, units: Sequence[Tuple[Unit, Any, Any]]) -> None:
    """Decides the units, and gives their modules our collectives."""
    _require_setters(model)
    _, ranks = _sizes_of(units[0][2])
    trained = [Gradient(name, (elements,)) for _, _, group in units
               for name, elements, is_trained in _parameters_of(model, group) if is_trained and elements > 0]
    if not trained:
        raise InvalidRequest("the model has no parameters that are trained")
    read = Plan(plan, algorithm, ranks, trained)
    hook.decide(read)
    hook.agree(hook.messages._seed)
    if read.schedule is not None:
        _apply_schedule(read, model, units)
    for unit, module, group in units:
        gather, reduction = group._all_gather_comm, group._reduce_scatter_comm
        if unit.gather is not None:
            module.set_custom_all_gather(Gather(hook, unit, gather))
            hook.undone_by(functools.partial(module.set_custom_all_gather, gather))
        if unit.reduction is not None:
            module.set_custom_reduce_scatter(Reduction(hook, unit, reduction))
            hook.undone_by(functools.partial(module.set_custom_reduce_scatter, reduction))


__all__ = ["Gather", "Messages", "Plan", "Reduction", "ShardedHook", "Unit", "attach_sharded", "is_sharded", "plain_name"]
