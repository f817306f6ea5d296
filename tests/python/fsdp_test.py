"""Tests of training sharded models with plans: with fully_shard() of PyTorch 2, and with FullyShardedDataParallel."""

import os
import pathlib
import tempfile
import unittest

import ranks
from attach_test import PLAN, gradients_of, refused
from ranks import run, train

try:
    from torch.distributed.fsdp import FSDPModule
    MISSING = None if hasattr(FSDPModule, "set_custom_all_gather") else "this torch's FSDPModule takes no other collectives"
except (ImportError, ValueError):
    MISSING = "needs PyTorch 2 with fully_shard()"

if MISSING is None:
    import hipress
    import torch
    from hipress import _codec
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, ShardingStrategy, fully_shard
    from torch.distributed.fsdp.fully_sharded_data_parallel import BackwardPrefetch

STEPS = 5
#: Sizes of layers. Four ranks cannot divide some of them evenly, so shards are padded.
SIZES = (24, 64, 63, 5)


def setUpModule() -> None:
    if MISSING:
        raise unittest.SkipTest(MISSING)


def plain(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(*SIZES[:2]), torch.nn.ReLU(), torch.nn.Linear(*SIZES[1:3]), torch.nn.Tanh(),
                               torch.nn.Linear(*SIZES[2:]))


def sharded(**options):
    """Makes a sharded model. Its last layer belongs to the root."""
    model = plain()
    for place in (0, 2):
        fully_shard(model[place], **options)
    return fully_shard(model, **options)


def of_mesh(sizes):
    """Argument of fully_shard(): a mesh of (groups, ranks of each); None: all ranks are one group."""
    return {"mesh": init_device_mesh("cpu", sizes, mesh_dim_names=("replicate", "shard"))} if sizes else {}


def whole(model):
    return {name: value.full_tensor().detach() for name, value in model.named_parameters()}


def trained(rank, plan, mesh=None, options=None, accumulate=False):
    """Trains several steps; `plan` None: without attach(). Returns the weights, and the last loss."""
    model = sharded(**of_mesh(mesh), **(options or {}))
    if plan is not None:
        hipress.attach(model, plan)
    loss = take_steps(model, rank, STEPS, accumulate)
    return whole(model), loss


def take_steps(model, rank, steps, accumulate) -> float:
    """Trains some steps, of two micro-steps each if `accumulate`. Returns the last loss."""
    loss = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        if accumulate:
            model.set_requires_gradient_sync(False)
            backward(model, rank, step + 500)
            model.set_requires_gradient_sync(True)
        loss = backward(model, rank, step)
        optimizer.step()
        optimizer.zero_grad()
    return loss


def backward(model, rank, step) -> float:
    values, classes = ranks.data(rank, step)
    loss = torch.nn.functional.cross_entropy(model(values).float(), classes)
    loss.backward()
    return float(loss.detach())


class Folder:
    """Temporary folder for plans of the model."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self):
        self._folder.__enter__()
        return self

    def __exit__(self, *why):
        self._folder.__exit__(*why)

    def plan(self, ranks_, schedule="fsdp", algorithm="int4block", gather="int8block", top=""):
        path = os.path.join(self._folder.name, f"plan{len(os.listdir(self._folder.name))}.yaml")
        text = PLAN.format(nodes=ranks_, schedule=schedule, gradients=gradients_of(plain(), algorithm, gather))
        pathlib.Path(path).write_text(text.replace("search:", f"{top}search:", 1))
        return path


class Equal(unittest.TestCase):
    def require_equal(self, mine, theirs):
        for (weights, _), (others, _) in zip(mine, theirs):
            for name in weights:
                self.assertTrue(torch.equal(weights[name], others[name]), name)

    def test_nothing_compressed_is_plain_fsdp2(self):
        for count in (2, 4):
            self.require_equal(run(count, trained, "none"), run(count, trained, None))

    def test_what_a_lossless_gather_and_a_raw_reduction_bring_is_plain_fsdp2(self):
        with Folder() as folder:
            for count in (2, 4):
                path = folder.plan(count, algorithm="none", gather="lossless")
                self.require_equal(run(count, trained, path), run(count, trained, None))

    def test_a_job_in_bf16_sends_it_as_it_is(self):
        """Under this policy, PyTorch sends bf16 as the plan does."""
        options = {"mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.bfloat16)}
        with Folder() as folder:
            path = folder.plan(2, algorithm="bf16", gather="bf16")
            self.require_equal(run(2, trained, path, None, options), run(2, trained, None, None, options))

    def test_ranks_agree_and_come_close_with_every_algorithm(self):
        _, uncompressed = run(2, trained, None)[0]
        with Folder() as folder:
            for algorithm in ("fp16", "bf16", "int8block", "int4block", "fp8block", "fp4block", "onebit", "tbq", "terngrad", "dgc",
                              "lossless"):
                gather = algorithm if algorithm in ("fp16", "bf16", "int8block", "fp8block", "lossless") else "none"
                (first, loss), (second, _) = run(2, trained, folder.plan(2, algorithm=algorithm, gather=gather))
                for name in first:
                    self.assertTrue(torch.equal(first[name], second[name]), f"{algorithm} {name}")
                self.assertLess(abs(loss - uncompressed), 0.2, algorithm)

    def test_meshes_policies_and_micro_steps_train(self):
        bf16 = {"mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)}
        with Folder() as folder:
            for what, (path, mesh, options, accumulate) in {
                    "two levels": (folder.plan(4, top="exchange_within: 2\n"), None, None, False),
                    "hsdp": (folder.plan(4, "hsdp(shard=2)"), (2, 2), None, False),
                    "kept by two": (folder.plan(4, "fsdp(reshard=2)"), None, {"reshard_after_forward": 2}, False),
                    "whole": (folder.plan(4, "fsdp(reshard=false)"), None, None, False),
                    "separate": (folder.plan(4, "fsdp(communicators=separate)"), None, None, False),
                    "mixed precision": (folder.plan(4), None, bf16, False),
                    "micro-steps": (folder.plan(4), None, None, True)}.items():
                with self.subTest(what=what):
                    job = (mesh, options, accumulate)
                    mine, theirs = run(4, trained, path, *job), run(4, trained, None, *job)
                    for weights, _ in mine:
                        for name in weights:
                            self.assertTrue(torch.equal(weights[name], mine[0][0][name]), name)
                    self.assertLess(abs(mine[0][1] - theirs[0][1]), 0.05)


def varied(rank, plan, how):
    """Trains like trained(), with a compiled model or a frozen layer. Returns the last loss."""
    model = plain()
    if how == "frozen":
        model[2].requires_grad_(False)
    for place in (0, 2):
        fully_shard(model[place])
    fully_shard(model)
    called = torch.compile(model, backend="eager") if how == "compiled" else model
    if plan is not None:
        hipress.attach(called, plan)
    optimizer = torch.optim.SGD([value for value in model.parameters() if value.requires_grad], lr=0.1)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        losses.append(backward(called, rank, step))
        optimizer.step()
    return losses[-1]


class Forked(torch.nn.Module if MISSING is None else object):
    """Module with two layers of one size, of which a step uses one or both."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(24, 5), torch.nn.Linear(24, 5)

    def forward(self, values, used):
        return sum(getattr(self, name)(values) for name in used)


def unused(rank, algorithm, whole_groups, steps):
    """Trains with some layers in each step. Returns the error, or "trained"."""
    model = fully_shard(Forked())
    model.set_reduce_scatter_unused_params(whole_groups)
    hipress.attach(model, algorithm)
    for step, used in enumerate(steps):
        values, classes = ranks.data(rank, step)
        loss = torch.nn.functional.cross_entropy(model(values, used), classes)
        try:
            loss.backward()
        except hipress.InvalidRequest as error:
            return str(error)
    return "trained"


def planned(path):
    """Makes a plan by hipress-plan, for the captured model on two nodes with a slow link."""
    model = plain()
    with hipress.capture(model, f"{path}/model.yaml", warmup=1) as capture:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            optimizer.zero_grad()
            backward(model, 0, step)
            optimizer.step()
    del capture
    hipress.plan(f"{path}/model.yaml", nnodes=2, bandwidth="1Mbps", schedule=["fsdp"], algorithm="int8block",
                 write="fastest", output=f"{path}/plan.yaml")
    return f"{path}/plan.yaml"


class Jobs(unittest.TestCase):
    def test_a_captured_model_is_planned_and_trained(self):
        with tempfile.TemporaryDirectory() as path:
            plan = planned(path)
            self.assertIn("gather: int8block", pathlib.Path(plan).read_text())
            mine, theirs = run(2, trained, plan), run(2, trained, None)
            self.assertLess(abs(mine[0][1] - theirs[0][1]), 0.05)
            self.assertFalse(torch.equal(mine[0][0]["0.weight"], theirs[0][0]["0.weight"]))

    def test_parameters_without_gradients_are_left_out(self):
        both, first, second = ("first", "second"), ("first",), ("second",)
        for algorithm, whole_groups in (("onebit", True), ("int4block", False)):
            for said in run(2, unused, algorithm, whole_groups, (first, both, second, both)):
                self.assertEqual(said, "trained")

    def test_a_codec_with_residuals_names_who_has_no_gradient(self):
        both, first, second = ("first", "second"), ("first",), ("second",)
        for steps, name in (((both, first), "second"), ((first, both), "second"), ((second, first), "first")):
            for said in run(2, unused, "onebit", False, steps):
                self.assertIn(f"'{name}.weight' and 1 more had no gradient in this step: call "
                              "set_reduce_scatter_unused_params(True) of the model", said)

    def test_compiled_and_partly_frozen_models_train(self):
        with Folder() as folder:
            path = folder.plan(2)
            for how in ("compiled", "frozen"):
                plan = path
                if how == "frozen":  # a captured model lacks the frozen layer
                    text = pathlib.Path(path).read_text()
                    plan = path.replace("plan", "frozen")
                    pathlib.Path(plan).write_text("".join(line for line in text.splitlines(True) if "name: 2." not in line))
                mine, theirs = run(2, varied, plan, how), run(2, varied, None, how)
                self.assertEqual(mine[0] == theirs[0], False, how)
                self.assertLess(abs(mine[0] - theirs[0]), 0.05, how)


def reduced(rank, plan, factor):
    """Returns mean gradients of the first step by a plan and by PyTorch, and the largest absolute gradient of any rank."""
    found = []
    for path in (plan, None):
        model = sharded()
        if factor is not None:
            for module in (model, model[0], model[2]):
                if path is None:  # gloo multiplies by no factor
                    module.set_force_sum_reduction_for_comms(True)
                module.set_gradient_divide_factor(factor)
        if path is not None:
            hipress.attach(model, path)
        backward(model, rank, 0)
        found.append({name: value.grad.full_tensor() for name, value in model.named_parameters()})
    alone = plain()
    backward(alone, rank, 0)
    largest = torch.tensor(max(float(value.grad.abs().max()) for value in alone.parameters()))
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    return found, float(largest)


class Values(unittest.TestCase):
    def test_a_reduction_is_the_mean_of_what_ranks_sent(self):
        """int8block rounds to the nearest multiple of a 127th of a block's largest value. So each of n messages is off by at most a
        254th, and so is their mean. If the sum is divided by d instead of n, the error is n/d times as large."""
        with Folder() as folder:
            for count, factor, top in ((2, None, ""), (4, None, ""), (4, 16.0, ""), (4, None, "exchange_within: 2\n")):
                path = folder.plan(count, algorithm="int8block", gather="none", top=top)
                for (mine, theirs), largest in run(count, reduced, path, factor):
                    # An exchange in two steps rounds twice.
                    rounded = 1 if not top else 2
                    bound = rounded * (count / factor if factor else 1) * largest / 254
                    for name in mine:
                        off = float((mine[name] - theirs[name]).abs().max())
                        self.assertLessEqual(off, bound * 1.001, f"{count} {factor} {name}")
                        self.assertGreater(off, 0, name)

    def test_gathered_weights_are_as_close_as_their_codec(self):
        with Folder() as folder:
            for mine, theirs in run(2, gathered, folder.plan(2, algorithm="none")):
                for name, value in mine.items():
                    off, largest = float((value - theirs[name]).abs().max()), float(theirs[name].abs().max())
                    self.assertLessEqual(off, largest / 254 * 1.001, name)


def gathered(_rank, plan):
    """Returns the weights of the first layer as forward sees them, and as the shards have them."""
    model = sharded()
    hipress.attach(model, plan)
    model(torch.randn(2, SIZES[0]))  # initialises the root
    kept = {name: value.full_tensor().detach() for name, value in model[0].named_parameters()}
    model[0].unshard()
    return {name: value.detach().clone() for name, value in model[0].named_parameters()}, kept


def in_two_parts(rank, plan, resume):
    """Trains six steps; with `resume`, model, hook and optimizer are made anew after three. Returns the weights."""
    def made():
        model = sharded()
        return model, hipress.attach(model, plan), torch.optim.SGD(model.parameters(), lr=0.1)

    model, hook, optimizer = made()
    train(model, optimizer, rank, range(3))
    if resume:
        state = hook.state_dict()
        weights = {name: value.to_local().clone() for name, value in model.named_parameters()}
        model, hook, optimizer = made()
        hook.load_state_dict(state)
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.to_local().copy_(weights[name])
    train(model, optimizer, rank, range(3, 6))
    return whole(model)


def states(rank, plan, other):
    model = sharded()
    hook = hipress.attach(model, plan)
    state = hook.state_dict()
    said = [refused(lambda: hook.load_state_dict({**state, "rank": 1 - rank})), refused(lambda: hipress.attach(model, plan)),
            refused(hook.discard)]
    hook.close()
    said.append(refused(lambda: hipress.attach(model, other).load_state_dict(state)))
    return said


class States(unittest.TestCase):
    def test_a_job_goes_on_from_its_state(self):
        with Folder() as folder:
            for algorithm in ("onebit", "int4block"):  # residuals; random draws
                path = folder.plan(2, algorithm=algorithm)
                for mine, theirs in zip(run(2, in_two_parts, path, True), run(2, in_two_parts, path, False)):
                    for name in mine:
                        self.assertTrue(torch.equal(mine[name], theirs[name]), f"{algorithm} {name}")

    def test_states_of_others_are_refused(self):
        with Folder() as folder:
            for said in run(2, states, folder.plan(2, algorithm="onebit"), folder.plan(2)):
                for text, words in zip(said, ("residuals belong to one rank of one job", "close() that hook first",
                                              "keeps residuals", "the state is of another plan or model")):
                    self.assertIn(words, text)

    def test_close_gives_pytorchs_collectives_back(self):
        for mine, theirs in zip(run(2, closed, "int4block"), run(2, trained, None)):
            for name in mine:
                self.assertTrue(torch.equal(mine[name], theirs[0][name]), name)


    def test_close_undoes_all_that_attach_did(self):
        with Folder() as folder:
            for schedule, top, options in (("fsdp(reshard=false, communicators=separate)", "", {}),
                                           ("fsdp", "exchange_within: 2\n", {"reshard_after_forward": 2}),
                                           ("fsdp(reshard=false)", "", {"reshard_after_forward": 2})):
                for changed, left in run(4, undone, folder.plan(4, schedule, "onebit", top=top), options):
                    self.assertIn("_reduce_scatter_comm", changed, schedule)
                    self.assertEqual(left, [], schedule)
            for strategy in ("FULL_SHARD", "SHARD_GRAD_OP"):
                for changed, left in run(2, undone, "onebit", None, strategy):
                    self.assertIn("_comm_hook", changed, strategy)
                    self.assertEqual(left, [], strategy)


def attributes(model):
    """Returns the attributes of a sharded model's modules and of their FSDP states, and the existing process groups."""
    found = {("groups", name): name for name in map(id, dist.distributed_c10d._world.pg_map)}
    for name, module in model.named_modules():
        owners = [module]
        if isinstance(module, FSDPModule):
            state = module._get_fsdp_state()
            owners += [state, *state._fsdp_param_groups, *(group.mesh_info for group in state._fsdp_param_groups)]
        for owner in owners:
            found.update({(name, type(owner).__name__, key): value for key, value in vars(owner).items()})
    return found


def differing(before, after):
    """Returns the names of attributes that have changed: different objects, and numbers or texts that are not equal."""
    keys = sorted({*before, *after}, key=str)
    return [key[-1] for key in keys if before.get(key) is not after.get(key) and
            not (isinstance(before.get(key), (int, str)) and before.get(key) == after.get(key))]


def undone(_rank, plan, options, strategy=None):
    """Returns the names of a model's attributes that attach() changes, and of those that close() leaves changed."""
    model = sharded(**options) if strategy is None else wrapped_whole(strategy)
    if strategy is not None:
        model.check_is_root()  # makes FSDP1 initialise
    before = attributes(model)
    hook = hipress.attach(model, plan)
    during = attributes(model)
    hook.close()
    return differing(before, during), differing(before, attributes(model))


def closed(rank, plan):
    model = sharded()
    hipress.attach(model, plan).close()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(model, rank, step)
        optimizer.step()
    return whole(model)


def settings(rank, plan, mesh=None, options=None):
    """Returns attach()'s message, the number of ranks that share parameters after forward, and true if collectives share a
    group."""
    model = sharded(**of_mesh(mesh), **(options or {}))
    text = refused(lambda: hipress.attach(model, plan))
    group = model[0]._get_fsdp_state()._fsdp_param_group
    after, shares = group.post_forward_mesh_info, group._reduce_scatter_process_group is group._all_gather_process_group
    return text, 1 if after is None else after.shard_mesh_size, shares


def different(rank, plans, mesh=None):
    return refused(lambda: hipress.attach(sharded(**of_mesh(mesh)), plans[rank]))


class Schedules(unittest.TestCase):
    def test_what_fsdp2_has_a_setter_for_is_set(self):
        with Folder() as folder:
            for schedule, options, expected in (("fsdp", {"reshard_after_forward": False}, ("accepted", 2, True)),
                                                ("fsdp(reshard=false)", {}, ("accepted", 1, True)),
                                                ("fsdp(communicators=separate)", {}, ("accepted", 2, False))):
                for found in run(2, settings, folder.plan(2, schedule), None, options):
                    self.assertEqual(found, expected, schedule)

    def test_what_must_be_set_elsewhere_is_refused(self):
        with Folder() as folder:
            for schedule, mesh, words in (
                    ("fsdp(prefetch=post)", None, "FSDP2 gathers ahead of a backward pass: plan with prefetch=pre"),
                    ("fsdp(in_flight=3)", None, "call set_modules_to_forward_prefetch and set_modules_to_backward_prefetch with 2 "
                                                "modules"),
                    ("fsdp(in_flight=1)", None, "plan with in_flight=2"),
                    ("fsdp(reshard=2)", None, "call fully_shard(..., reshard_after_forward=2)"),
                    ("fsdp", (2, 2), "where 4 ranks have all shards, and the module '' is sharded over 2: give fully_shard() a "
                                     "mesh of 4"),
                    ("hsdp(shard=2)", None, "give fully_shard() init_device_mesh(..., (2, 2))")):
                for text, *_ in run(4, settings, folder.plan(4, schedule), mesh):
                    self.assertIn(words, text, schedule)

    def test_ranks_with_different_plans_are_told(self):
        with Folder() as folder:
            plans = [folder.plan(2), folder.plan(2, algorithm="none")]
            for text in run(2, different, plans):
                self.assertIn("rank 1 called hipress.attach with another plan than rank 0", text)

    def test_a_rank_without_the_plan_is_named_to_all(self):
        with Folder() as folder:
            missing = "/no/such/plan.yaml"
            for plans, mesh in (([folder.plan(2), missing], None), ([folder.plan(4, "hsdp(shard=2)")] * 3 + [missing], (2, 2))):
                *others, own = run(len(plans), different, plans, mesh)
                self.assertIn(f"{missing}: cannot be read", own)
                for text in others:
                    self.assertIn(f"rank {len(plans) - 1}: {missing}: cannot be read", text)

    def test_replicas_with_different_plans_are_told(self):
        """Ranks 0 and 1 share one copy of the model, ranks 2 and 3 the other."""
        with Folder() as folder:
            one, other = folder.plan(4, "hsdp(shard=2)"), folder.plan(4, "hsdp(shard=2)", algorithm="none")
            for plans, odd in (([one, one, other, other], 2), ([one, one, one, other], 3)):
                said = run(4, different, plans, (2, 2))
                self.assertIn(f"rank {odd} called hipress.attach with another plan than rank 0", said[0])
                for text in said:
                    self.assertIn("called hipress.attach with another plan than", text)


def damaged(rank, plan):
    """Damages the messages of rank 1's first layer. Returns the error of an asynchronous gather's wait(), true if the hook keeps
    it, and the errors of state_dict() and of the next step."""
    model = sharded()
    hook = hipress.attach(model, plan)
    backward(model, rank, 0)
    decode = _codec.Codec.decode
    if rank == 1:
        _codec.Codec.decode = lambda self, slots, *rest: decode(self, torch.full_like(slots, 255), *rest)
    handle = model[0].unshard(async_op=True)
    said = failure_of(handle.wait)
    return said, hook.failure is not None, failure_of(hook.state_dict), failure_of(lambda: backward(model, rank, 1))


def failure_of(call):
    """Returns the type and message of a call's exception; two empty texts without one."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


class Failures(unittest.TestCase):
    def test_a_message_that_is_damaged_ends_the_job_of_all_ranks(self):
        """Rank 1 raises the error and leaves. The other rank's next step fails instead of waiting forever."""
        with Folder() as folder:
            whole_rank, damaged_rank = run(2, damaged, folder.plan(2, algorithm="none", gather="lossless"))
        said, has_failed, of_state, of_step = damaged_rank
        self.assertEqual(said[0], "Error")
        self.assertIn("lossless", said[1])
        self.assertTrue(has_failed)
        self.assertEqual((of_state, of_step), (said, said))
        said, has_failed, of_state, of_step = whole_rank
        self.assertEqual((said, has_failed, of_state), (("", ""), False, ("", "")))
        self.assertNotEqual(of_step, ("", ""))


def wrapped_whole(strategy, prefetch="BACKWARD_PRE"):
    """Wraps the model in FullyShardedDataParallel."""
    options = {"device_id": torch.device("cpu"), "sharding_strategy": ShardingStrategy[strategy],
               "backward_prefetch": BackwardPrefetch[prefetch]}
    inner = plain()
    for place in (0, 2):
        inner[place] = FullyShardedDataParallel(inner[place], **options)
    return FullyShardedDataParallel(inner, **options)


def fsdp1(rank, plan, strategy, steps=STEPS, prefetch="BACKWARD_PRE"):
    """Trains a FullyShardedDataParallel like trained(). Returns its weights and last loss, or the message of attach()."""
    model = wrapped_whole(strategy, prefetch)
    if plan is not None:
        said = refused(lambda: hipress.attach(model, plan))
        if said != "accepted":
            return said
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss = 0.0
    for step in range(steps):
        optimizer.zero_grad()
        loss = backward(model, rank, step)
        optimizer.step()
    with FullyShardedDataParallel.summon_full_params(model):
        return [value.detach().clone() for value in model.parameters()], loss


class Fsdp1(unittest.TestCase):
    def test_the_hook_reduces(self):
        for strategy in ("FULL_SHARD", "SHARD_GRAD_OP"):
            (weights, loss), _ = run(2, fsdp1, None, strategy)
            for same in ("none", "lossless"):  # adds in fp32 as gloo does, and divides once
                (found, _), _ = run(2, fsdp1, same, strategy)
                for mine, theirs in zip(found, weights):
                    self.assertTrue(torch.equal(mine, theirs), f"{strategy} {same}")
            (first, compressed), (second, _) = run(2, fsdp1, "int4block", strategy)
            self.assertLess(abs(compressed - loss), 0.05)
            for mine, theirs in zip(first, second):
                self.assertTrue(torch.equal(mine, theirs))

    def test_what_it_cannot_do_is_refused(self):
        with Folder() as folder:
            for schedule, gather, strategy, prefetch, words in (
                    ("fsdp", "int8block", "FULL_SHARD", "BACKWARD_PRE", "FSDP1 lets nobody gather otherwise: shard the model by "
                                                                        "fully_shard()"),
                    ("fsdp", "none", "NO_SHARD", "BACKWARD_PRE", "use DistributedDataParallel(model), which averages the same"),
                    ("fsdp", "none", "SHARD_GRAD_OP", "BACKWARD_PRE", "FULL_SHARD is reshard=true, and SHARD_GRAD_OP "
                                                                      "reshard=false"),
                    ("fsdp", "none", "FULL_SHARD", "BACKWARD_POST", "gathers ahead as prefetch=post"),
                    ("fsdp(prefetch=post)", "none", "FULL_SHARD", "BACKWARD_POST", ""),
                    ("fsdp(communicators=separate)", "none", "FULL_SHARD", "BACKWARD_PRE", "FSDP1 has one communicator")):
                for said in run(2, fsdp1, folder.plan(2, schedule, gather=gather), strategy, 1, prefetch):
                    self.assertIn(words, said) if words else self.assertIsInstance(said, tuple)


if __name__ == "__main__":
    unittest.main()
