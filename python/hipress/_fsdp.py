"""FSDP2: gathers of parameters and reductions of gradients by a plan, in models that fully_shard() has divided."""

import ctypes
import functools
import json
import math
import os
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from hipress import _ddp, _engine, _states
from hipress._engine import Error, InvalidRequest
from hipress._errors import short
from hipress._group import Group, raise_said, said_by
from hipress._library import Gradient, library
from hipress._shards import Gather, Messages, Reduction, Unit

_Path = Union[str, "os.PathLike[str]"]
#: Parts that wrappers add to parameters' names.
_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_fpw_module")
#: Largest number of gathers or reductions in a state.
_MOST_COUNT = (1 << 63) - 1
#: Hooks by the model that they are attached to.
_hooks: "weakref.WeakKeyDictionary[torch.nn.Module, ShardedHook]" = weakref.WeakKeyDictionary()


def is_sharded(model: Any) -> bool:
    """True if fully_shard() was called for the module."""
    return _ddp.is_of(model, "FSDPModule")


def plain_name(name: str) -> str:
    """Name of a parameter or module in the model before it was wrapped."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


# ------------------------------------------------------------------------------------------------------------------ plans


class Plan:
    """Decisions of a plan for the parameters of a job."""

    def __init__(self, plan: str, algorithm: str, ranks: int, gradients: Sequence[Gradient]) -> None:
        planned = _ddp._said_by(plan, "nodes", "")
        if planned.isdigit() and int(planned) != ranks:
            raise InvalidRequest(f"{plan} is for {planned} ranks, and the model is over {ranks}: "
                                 f"start {planned}, or plan for {ranks} (--nnodes {ranks})")
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

    def decide(self, unit: Unit, units: Sequence[Unit] = ()) -> None:
        """Gives a unit the decision that its parameters share. Raises InvalidRequest if the decisions of two parameters differ;
        the message names them, and says how to plan for all `units`."""
        found = [(name, self._of[name]) for name, _ in unit.parameters if name in self._of]
        for name, decided in found[1:]:
            if decided != found[0][1]:
                raise InvalidRequest(
                    f"{self.file} decides parameters of group '{unit.name}' differently, which travel as one: "
                    f"{_said(*found[0])}, {_said(name, decided)}; {_planned_anew(units)}, or have fully_shard() wrap them apart")
        if found:
            unit.gather, unit.reduction = found[0][1]


def _said(name: str, decided: Tuple[Optional[str], Optional[str]]) -> str:
    gather, reduction = (one or "none" for one in decided)
    return f"'{name}' with gather {gather} and algorithm {reduction}"


def _planned_anew(units: Sequence[Unit]) -> str:
    """Remedy for messages: how to plan with one decision for each of these groups."""
    patterns = dict.fromkeys(".".join("*" if part.isdigit() else part for part in unit.name.split("."))
                             for unit in units if unit.name)
    if not patterns:
        return "give them one layer in the model file and plan anew"
    return f"plan anew with --wrap '{', '.join(patterns)}', which makes a layer of each wrapped module, and one of all else"


# ---------------------------------------------------------------------------------------------------------------- modules


def _state_of(module: Any) -> Any:
    return module._get_fsdp_state()


def _groups_of(module: Any) -> List[Any]:
    """Parameter groups of a module, in any version of torch."""
    state = _state_of(module)
    several = getattr(state, "_fsdp_param_groups", None)
    if several is not None:
        return list(several)
    one = getattr(state, "_fsdp_param_group", None)
    return [] if one is None else [one]


def _sharded_modules(model: torch.nn.Module) -> Iterator[Tuple[str, Any, Any]]:
    """Yields name, module and parameter group of each module that fully_shard() was called for; a group that several modules
    share comes once."""
    seen = set()
    for name, module in model.named_modules():
        if not is_sharded(module) or id(_state_of(module)) in seen:
            continue
        seen.add(id(_state_of(module)))
        groups = _groups_of(module)
        if len(groups) > 1:
            raise InvalidRequest(f"module '{plain_name(name)}' has {len(groups)} parameter groups, of which FSDP2 takes no other "
                                 "collectives: call fully_shard() without a shard_placement_fn of several meshes")
        for group in groups:
            yield plain_name(name), module, group


def parameters_of(model: torch.nn.Module, group: Any) -> List[Tuple[str, Tuple[int, ...], bool]]:
    """Name, unsharded shape, and True if trained, of each parameter of a group."""
    names = {id(module): plain_name(name) for name, module in model.named_modules()}
    found = []
    for one in group.fsdp_params:
        info = one._module_info
        prefix = names.get(id(info.module), "")
        parameter = one.sharded_param
        found.append((f"{prefix}.{info.param_name}" if prefix else info.param_name, tuple(parameter.shape), parameter.requires_grad))
    return found


def _sizes_of(group: Any) -> Tuple[int, int]:
    """Number of ranks that hold all shards together, and number of all ranks of the mesh."""
    info = group.mesh_info
    shard = getattr(info, "shard_mesh_size", 1)
    return shard, shard * getattr(info, "replicate_mesh_size", 1)


def require_setters(module: Any) -> None:
    missing = [name for name in ("set_custom_all_gather", "set_custom_reduce_scatter") if not hasattr(module, name)]
    if missing:
        raise InvalidRequest(f"this torch ({torch.__version__}) has no FSDPModule.{missing[0]}, by which a plan takes the "
                             "collectives over: install a later one, or attach with plan=\"none\"")


# --------------------------------------------------------------------------------------------------------------- schedules


def _check_schedule(plan: Plan, model: Any, units: Sequence[Tuple[Unit, Any, Any]]) -> None:
    """Raises InvalidRequest if the modules cannot follow the plan's schedule."""
    where = f"{plan.file} is for schedule {plan.schedule}"
    if plan.prefetch != "pre":
        raise InvalidRequest(f"{where}, and FSDP2 gathers ahead of a backward pass: plan with prefetch=pre")
    for unit, module, group in units:
        shard, ranks = _sizes_of(group)
        if shard != plan.shard:
            mesh = f"init_device_mesh(..., ({ranks // plan.shard}, {plan.shard}))" if ranks > plan.shard else f"a mesh of {ranks}"
            raise InvalidRequest(f"{where}, where {plan.shard} ranks have all shards, and the module '{unit.name}' is sharded "
                                 f"over {shard}: give fully_shard() {mesh}, or plan for what it has")
        _require_neighbours(where, unit, group)
        if _is_resharded_otherwise(plan, module, group, is_root=module is model) and plan.reshard not in (1, shard):
            raise InvalidRequest(f"{where}, and the module '{unit.name}' keeps a {kept_among(group)}-th after forward: "
                                 f"call fully_shard(..., reshard_after_forward={plan.reshard})")
        _require_in_flight(where, plan, unit, module)
    if plan.separate and not hasattr(model, "set_separate_reduce_scatter_group"):
        raise InvalidRequest(f"{where}, and this torch ({torch.__version__}) has no set_separate_reduce_scatter_group: "
                             "plan with communicators=shared, or install a later one")


def _apply_schedule(hook: "ShardedHook", plan: Plan, model: Any, units: Sequence[Tuple[Unit, Any, Any]]) -> None:
    """Applies the settings of the plan's schedule for which FSDP2 has a setter: resharding after forward, true or false, and
    communicators. FSDP2 does not reshard the root by default."""
    for _, module, group in units:
        if _is_resharded_otherwise(plan, module, group, is_root=module is model):
            state = _state_of(module)
            hook.restores(state, "_auto_reshard_after_forward")
            hook.restores(group, "post_forward_mesh_info")
            module.set_reshard_after_forward(plan.reshard == _sizes_of(group)[0], recurse=False)
    if hasattr(model, "set_separate_reduce_scatter_group"):
        _set_communicators(hook, plan, model, [group.mesh_info for _, _, group in units])


def _require_neighbours(where: str, unit: Unit, group: Any) -> None:
    ranks = dist.get_process_group_ranks(group.mesh_info.shard_process_group)
    if ranks != list(range(ranks[0], ranks[0] + len(ranks))):
        raise InvalidRequest(f"{where}, whose groups are of neighbours, and the module '{unit.name}' is sharded over ranks "
                             f"{ranks}: give fully_shard() a mesh whose last dimension is the sharded one")


def kept_among(group: Any) -> int:
    """Number of ranks among which a group's parameters stay divided after forward; 1 if each has all."""
    after = group.post_forward_mesh_info
    return 1 if after is None else int(after.shard_mesh_size)


def _is_resharded_otherwise(plan: Plan, module: Any, group: Any, is_root: bool) -> bool:
    """True if the part that a module keeps after forward differs from the plan's. False for a root whose
    resharding FSDP2 chooses itself."""
    return kept_among(group) != plan.reshard and not (is_root and _state_of(module)._auto_reshard_after_forward)


def _set_communicators(hook: "ShardedHook", plan: Plan, model: Any, meshes: Sequence[Any]) -> None:
    """Makes reductions share the gathers' process groups, or have their own. close() restores each mesh, and ends groups that
    were made for the plan."""
    before = {id(mesh.reduce_scatter_process_group) for mesh in meshes}
    for mesh in {id(mesh): mesh for mesh in meshes}.values():
        hook.restores(mesh, "reduce_scatter_process_group")
    model.set_separate_reduce_scatter_group(plan.separate)
    after = {id(mesh.reduce_scatter_process_group): mesh.reduce_scatter_process_group for mesh in meshes}
    for made in (group for number, group in after.items() if number not in before and group is not None):
        hook.ends(made)


def gathered_ahead(module: Any) -> int:
    """Number of layers that a module gathers ahead."""
    state = _state_of(module)
    return max(1, *(len(getattr(state, name, ())) for name in ("_states_to_forward_prefetch", "_states_to_backward_prefetch")))


def _require_in_flight(where: str, plan: Plan, unit: Unit, module: Any) -> None:
    """Raises InvalidRequest unless FSDP2 gathers as many layers ahead as planned. By default FSDP2 gathers one layer ahead; it
    gathers more only if it was told which ones."""
    ahead = gathered_ahead(module)
    if plan.in_flight < 2:
        raise InvalidRequest(f"{where}, and FSDP2 gathers a layer beside the one in use: plan with in_flight=2")
    if plan.in_flight > ahead + 1 and plan.in_flight > 2:
        raise InvalidRequest(f"{where}, and the module '{unit.name}' gathers {ahead} ahead: "
                             "call set_modules_to_forward_prefetch and set_modules_to_backward_prefetch "
                             f"with {plan.in_flight - 1} modules, or plan with in_flight=2")


# -------------------------------------------------------------------------------------------------------------------- hooks


class ShardedHook:
    """Hook that gathers and reduces the shards of one model; hipress.attach() returns it. state_dict() and load_state_dict() save
    and restore its state for checkpoints, and close() ends it."""

    def __init__(self, units: Sequence[Unit], seed: int, group: Any, plan: str, replicas: Any = None) -> None:
        self.units, self.plan = list(units), plan
        self._group = group
        self._groups = [group] if replicas is None else [group, replicas]
        self.shard = dist.get_world_size(group)
        self.messages = Messages(seed, self.shard)
        self._undo: List[Callable[[], object]] = []

    def __getstate__(self) -> Dict[str, Any]:
        raise InvalidRequest("a hook is a part of its job and is not copied: "
                             "save its state_dict(), and attach the model that was copied")

    @property
    def failure(self) -> Optional[Error]:
        """Error that the hook has failed with; None if it has not. Every later step raises it again."""
        return self.messages.failure

    def decide(self, read: Callable[[], Optional[Plan]]) -> Optional[Plan]:
        """Takes over the plan's decision for each unit, and makes the process groups that it needs. `read` reads the plan (None:
        nothing to decide) and checks it against the model. An error on one rank is raised on all ranks that have a shard or a copy
        of the model. Raises InvalidRequest if these ranks have different plans, seeds or units."""
        plan: Optional[Plan] = None
        failure: Optional[Exception] = None
        try:
            plan = read()
            if plan is not None:
                self._take(plan)
        except Exception as error:
            failure = error
        self._agree(1 if plan is None else plan.within, failure)
        if plan is not None and 1 < plan.within < self.shard:
            self._split(plan)
        return plan

    def _take(self, plan: Plan) -> None:
        for unit in self.units:
            plan.decide(unit, self.units)
            for algorithm in (unit.gather, unit.reduction):
                if algorithm is not None:
                    self.messages.codec(algorithm)
        if 1 < plan.within < self.shard and self.shard % plan.within != 0:
            raise InvalidRequest(f"{plan.file} exchanges within {plan.within} neighbours first, "
                                 f"and {self.shard} ranks are no multiple: plan with exchange_within 1, or with a divisor")

    def _agree(self, within: int, failure: Optional[Exception]) -> None:
        mine = {"seed": self.messages.seed, "plan": self.plan, "exchange_within": within,
                "units": [unit.described() for unit in self.units]}
        told = [{**mine, "rank": dist.get_rank(), "said": said_by(failure)}]
        for group in self._groups:
            everyone: List[Any] = [None] * dist.get_world_size(group)
            dist.all_gather_object(everyone, told, group=group)
            told = [one for theirs in everyone for one in theirs]
        if failure is not None:
            raise failure
        for theirs in told:
            raise_said(f"rank {theirs['rank']}", theirs["said"])
        for theirs in told:
            differing = [key for key in mine if theirs[key] != told[0][key]]
            if differing:
                what, first = differing[0], told[0]
                raise InvalidRequest(f"rank {theirs['rank']} called hipress.attach with another {what} than rank {first['rank']}: "
                                     f"{short(theirs[what])} and {short(first[what])}; give all the same")

    def _split(self, plan: Plan) -> None:
        """Makes the process groups of an exchange in two steps."""
        ranks, place = dist.get_process_group_ranks(self._group), dist.get_rank(self._group)
        first = place - place % plan.within
        near, far = ranks[first:first + plan.within], ranks[place % plan.within::plan.within]
        self.messages.within = dist.new_group(near, use_local_synchronization=True, backend=dist.get_backend(self._group))
        self.messages.between = dist.new_group(far, use_local_synchronization=True, backend=dist.get_backend(self._group))
        for made in (self.messages.within, self.messages.between):
            self.ends(made)

    def undone_by(self, undo: Callable[[], object]) -> None:
        """Makes close() call a function."""
        self._undo.append(undo)

    def ends(self, group: Any) -> None:
        """Makes close() end a process group that was made for the plan. Waits until all its ranks are connected: if one closed
        earlier, the others would wait for it."""
        self.undone_by(functools.partial(_end_group, group))
        dist.barrier(group=group)

    def restores(self, owner: Any, attribute: str) -> None:
        """Makes close() restore an attribute of the owner to its current value."""
        self.undone_by(functools.partial(setattr, owner, attribute, getattr(owner, attribute)))

    def discard(self) -> None:
        """Declares that the gradients of the last step are not applied. Codecs without residuals, such as int8block and int4block,
        have nothing to restore. Raises InvalidRequest for codecs with residuals, which a sharded model cannot restore."""
        keeping = [algorithm for algorithm, codec in self.messages.codecs.items() if codec.keeps]
        if keeping:
            raise InvalidRequest(f"{keeping[0]} keeps residuals, which a sharded model does not take back: "
                                 "reduce by a block format for steps that may be skipped")

    def state_dict(self) -> Dict[str, Any]:
        """State of this rank's compression between steps: residuals, and the numbers of gathers and reductions, which select the
        random draws. It is a dictionary of numbers, lists and tensors, and each rank puts its own into its own checkpoint. A job
        that resumes from them computes the same bits as one without interruption. Call it between steps. Raises Error if the job
        has failed."""
        if self.failure is not None:
            raise self.failure
        return {"rank": dist.get_rank(self._group), "ranks": self.shard, "units": [unit.described() for unit in self.units],
                "counts": torch.tensor([[unit.gathers, unit.reductions] for unit in self.units], dtype=torch.int64).reshape(-1, 2),
                "state": {algorithm: codec.saved() for algorithm, codec in self.messages.codecs.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of this rank, under the same plan, model, seed and number of ranks.

        state  dictionary that state_dict() returned, on any device

        Raises InvalidRequest for any other state, and changes nothing then. Without a state, residuals begin with zeros."""
        owner = "hipress.ShardedHook"
        _states.require(state, owner, {"ranks": int, "rank": int, "units": list, "counts": torch.Tensor, "state": dict})
        group = Group(self._group)
        for key, mine, said in (("ranks", self.shard, "ranks {}".format), ("rank", group.place, group.numbers.name)):
            if state[key] != mine:
                raise InvalidRequest(f"the state is of {said(state[key])}, and this is {said(mine)}: "
                                     "residuals belong to one rank of one job; load each rank's own, or none, and begin with zeros")
        for unit, theirs in zip(self.units, state["units"]):
            if unit.described() != theirs:
                if not isinstance(theirs, list) or len(theirs) != len(unit.described()):
                    _states.refuse(f"'units' of a state of {owner} are lists, and here is {short(theirs)}")
                raise InvalidRequest(f"the state is of another plan or model: its group '{theirs[0]}' is {short(theirs[1:])}, "
                                     f"and here group '{unit.name}' is {short(unit.described()[1:])}")
        if len(self.units) != len(state["units"]):
            raise InvalidRequest(f"the state is of another model: it has {len(state['units'])} groups, "
                                 f"and here are {len(self.units)}")
        if tuple(state["counts"].shape) != (len(self.units), 2):
            _states.refuse(f"'counts' of a state of {owner} are two for each group, and here are {list(state['counts'].shape)}")
        counts = state["counts"].tolist()
        _states.require_counts(owner, "counts", [one for both in counts for one in both], 2 * len(self.units), _MOST_COUNT)
        self.messages.restore(state["state"])
        for unit, (gathers, reductions) in zip(self.units, counts):
            unit.gathers, unit.reductions = gathers, reductions

    def close(self) -> None:
        """Restores the model's own collectives. Calls after the first do nothing."""
        undo, self._undo = self._undo, []
        for one in reversed(undo):
            one()


def _end_group(group: Any) -> None:
    """Ends a process group, unless the job's groups have ended before."""
    if dist.is_initialized():
        dist.destroy_process_group(group)


def _forget(model: "weakref.ReferenceType[torch.nn.Module]") -> None:
    attached = model()
    if attached is not None:
        _hooks.pop(attached, None)


def groups_of(model: Any) -> List[Tuple[str, Any, Any]]:
    """Name, module and parameter group of each module of a model that fully_shard() divides. Raises InvalidRequest for a model that
    cannot be attached."""
    if model in _hooks:
        raise InvalidRequest("hipress.attach was called for this model before; close() that hook first")
    found = list(_sharded_modules(model))
    if not found:
        raise InvalidRequest("the model has no parameters that fully_shard() divides")
    _require_sharded_mesh(found)
    return found


def units_of(model: Any, found: Sequence[Tuple[str, Any, Any]]) -> List[Unit]:
    """Units of the parameter groups that groups_of() has found."""
    return [Unit(number, name, [(one, math.prod(shape)) for one, shape, _ in parameters_of(model, group)])
            for number, (name, _, group) in enumerate(found)]


def register(model: Any, hook: ShardedHook) -> None:
    """Makes a hook that of a model, until the hook is closed."""
    _hooks[model] = hook
    hook.undone_by(functools.partial(_forget, weakref.ref(model)))


def attach_sharded(model: Any, plan: str, algorithm: str, seed: int) -> ShardedHook:
    """Attaches a plan to a model that fully_shard() divides. Every rank calls it, before the first step. Raises InvalidRequest for
    a model or plan that cannot be attached."""
    found = groups_of(model)
    units, mesh = units_of(model, found), found[0][2].mesh_info
    hook = ShardedHook(units, seed, mesh.shard_process_group, plan, getattr(mesh, "replicate_process_group", None))
    try:
        _take_over(hook, model, plan, algorithm, [(unit, module, group) for unit, (_, module, group) in zip(units, found)])
    except BaseException:
        hook.close()
        raise
    register(model, hook)
    return hook


def _require_sharded_mesh(found: Sequence[Tuple[str, Any, Any]]) -> None:
    """Raises InvalidRequest unless all modules are on the same ranks, and sharded."""
    sizes = {_sizes_of(group): name for name, _, group in found}
    if len(sizes) > 1:
        (first, one), (second, other) = list(sizes.items())[:2]
        raise InvalidRequest(f"module '{one}' is sharded over {first[0]} of {first[1]} ranks "
                             f"and '{other}' over {second[0]} of {second[1]}: give fully_shard() one mesh for all")
    if not hasattr(found[0][2].mesh_info, "shard_process_group"):
        raise InvalidRequest("the model is replicated and not sharded: use DistributedDataParallel(model) for a plan of averages")


def _take_over(hook: ShardedHook, model: Any, plan: str, algorithm: str, units: Sequence[Tuple[Unit, Any, Any]]) -> None:
    """Decides the units, and installs the collectives of this package in their modules."""
    def read() -> Optional[Plan]:
        if plan == "none":
            return None
        require_setters(model)
        _, ranks = _sizes_of(units[0][2])
        trained = [Gradient(name, shape) for _, _, group in units
                   for name, shape, is_trained in parameters_of(model, group) if is_trained and math.prod(shape) > 0]
        if not trained:
            raise InvalidRequest("the model has no parameters that are trained")
        found = Plan(plan, algorithm, ranks, trained)
        if found.schedule is not None:
            _check_schedule(found, model, units)
        return found

    decided = hook.decide(read)
    if decided is not None and decided.schedule is not None:
        _apply_schedule(hook, decided, model, units)
    for unit, module, group in units:
        gather, reduction = group._all_gather_comm, group._reduce_scatter_comm
        if unit.gather is not None:
            module.set_custom_all_gather(Gather(hook.messages, unit, gather))
            hook.undone_by(functools.partial(module.set_custom_all_gather, gather))
        if unit.reduction is not None:
            _expect_all(hook, model, unit, group)
            module.set_custom_reduce_scatter(Reduction(hook.messages, unit, reduction))
            hook.undone_by(functools.partial(module.set_custom_reduce_scatter, reduction))


def _expect_all(hook: ShardedHook, model: torch.nn.Module, unit: Unit, group: Any) -> None:
    """Gives the unit the number of elements in a reduction of all its trained parameters. Also gives it, in every step, the names
    of parameters that FSDP2 leaves out because they have no gradient."""
    trained = {id(one): name for one, (name, _, is_trained) in zip(group.fsdp_params, parameters_of(model, group)) if is_trained}
    padded = sum(one.padded_sharded_param_size.numel() for one in group.fsdp_params if id(one) in trained)
    unit.reduced = padded * _sizes_of(group)[0]
    prepare = getattr(group, "_prepare_reduce_scatter_inputs", None)
    if prepare is None:  # earlier versions of torch do not report it
        return

    def noting(parameters: Sequence[Any], *rest: Any) -> Any:
        present = {id(one) for one in parameters}
        unit.missing = [name for number, name in trained.items() if number not in present]
        return prepare(parameters, *rest)

    hook.restores(group, "_prepare_reduce_scatter_inputs")
    group._prepare_reduce_scatter_inputs = noting


__all__ = ["Plan", "ShardedHook", "attach_sharded", "is_sharded", "plain_name"]
