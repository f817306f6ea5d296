"""Tests that hipress.attach() distinguishes models by their wrapper, and refuses wrong kinds with a remedy, also under PyTorch
1."""

import os
import pathlib
import tempfile
import unittest
import warnings

import ranks
from ranks import network, run, wrapped

if ranks.MISSING is None:
    import hipress
    import torch
    from hipress import _fsdp, _shards

PLAN = """schema: hipress.plan/1
model: a
topology: allreduce
nodes: {nodes}
schedule: {schedule}
search: given
network: fair
profile: none
tool: none
gradients:
{gradients}"""


def setUpModule() -> None:
    ranks.require_torch()


def gradients_of(module, algorithm="none", gather="none") -> str:
    return "\n".join(f"- {{name: {name}, elements: {value.numel()}, algorithm: {algorithm}, K: 1, gather: {gather}}}"
                     for name, value in module.named_parameters())


def refused(call) -> str:
    try:
        call()
    except hipress.InvalidRequest as error:
        return str(error)
    return "accepted"


def refusals(_rank, path):
    """Returns the message of attach(), or "accepted", by kind of model."""
    sharded = type("FSDPLinear", (type("FSDPModule", (), {"__module__": "torch.distributed.fsdp"}), torch.nn.Linear), {})
    whole = type("FullyShardedDataParallel", (torch.nn.Sequential,), {"__module__": "torch.distributed.fsdp"})
    ddp = wrapped(network())
    calls = {"bare": lambda: hipress.attach(network()),
             "not a module": lambda: hipress.attach(3),
             "half sharded": lambda: hipress.attach(torch.nn.Sequential(sharded(2, 2))),
             "fsdp1": lambda: hipress.attach(whole(torch.nn.Linear(2, 2))),
             "option": lambda: hipress.attach(sharded(2, 2), topology="ring"),
             "hook": lambda: hipress.Hook(sharded(2, 2)),
             "verify": lambda: hipress.verify(whole(torch.nn.Linear(2, 2))),
             "plan of fsdp": lambda: hipress.attach(ddp, path)}
    return {kind: refused(call) for kind, call in calls.items()}


#: Cases: a plan's rule for buckets, milliseconds between the ready times of a model file (0: all are 0; None: no file), and
#: number of warnings.
BULK = {"rule": ("bulk: {threshold: 64KiB, wait: 4ms}\n", None, 1), "lines": ("bulk:\n  limit: 4MiB\n  threshold: 64KiB\n", None, 1),
        "untimed": ("bulk: {threshold: 64KiB}\n", 0, 1), "timed": ("bulk: {threshold: 64KiB, wait: 4ms}\n", 1, 0),
        "by hand": ("bulk: {groups: [[0.bias, 0.weight]]}\n", None, 0), "none": ("", None, 0)}


def write_grouped(folder) -> None:
    """Writes a plan and a model file for each row of BULK."""
    sizes = {name: value.numel() for name, value in reversed(list(network().named_parameters()))}
    for kind, (bulk, ready_ms, _) in BULK.items():
        for name, head, rest in (("plan", f"schema: hipress.plan/1\nmodel: small\ntopology: ps\nnodes: 2\n{bulk}",
                                  lambda _: "algorithm: none, K: 2"),
                                 ("model", "name: small\n", lambda index: f"ready: {index * (ready_ms or 0)}ms")):
            pathlib.Path(folder, f"{name} {kind}.yaml").write_text(head + "gradients:\n" + "".join(
                f"- {{name: {one}, elements: {elements}, {rest(index)}}}\n" for index, (one, elements) in enumerate(sizes.items())))


def warned_of_times(_rank, folder):
    """Returns the warnings of attach() by plan."""
    texts = {}
    for kind, (_, ready_ms, _) in BULK.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = None if ready_ms is None else f"{folder}/model {kind}.yaml"
            hipress.attach(wrapped(network()), f"{folder}/plan {kind}.yaml", model=model).close()
        texts[kind] = [str(warning.message) for warning in caught]
    return texts


def warned_of_hooks(_rank):
    """Returns the warnings of attach() for two parameters with hooks of the user's, and for hooks of a capture."""
    said = []
    for hooked in (True, False):
        model = wrapped(network())
        for parameter in list(model.parameters())[:2] if hooked else []:
            parameter.register_post_accumulate_grad_hook(lambda one: None)
        with warnings.catch_warnings(record=True) as caught, hipress.capture(network(), None):
            warnings.simplefilter("always")
            hipress.attach(model, "none").close()
        said.append([str(warning.message) for warning in caught])
    return said


class Attach(unittest.TestCase):
    def test_hooks_that_run_before_averaging_are_warned_of(self):
        if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
            self.skipTest("this PyTorch has no hooks after gradients are accumulated")
        (hooked, plain), others = run(2, warned_of_hooks)
        self.assertEqual(len(hooked), 1)
        self.assertIn("2 of 6 parameters have hooks that run when their gradient is accumulated", hooked[0])
        self.assertIn("step after backward", hooked[0])
        self.assertEqual((plain, others), ([], [[], []]))

    def test_a_plan_that_groups_by_ready_times_asks_for_them(self):
        with tempfile.TemporaryDirectory() as folder:
            write_grouped(folder)
            first, second = run(2, warned_of_times, folder)
        self.assertEqual({kind: len(texts) for kind, texts in first.items()}, {kind: count for kind, (_, _, count) in BULK.items()})
        for kind in ("rule", "lines", "untimed"):
            self.assertIn("grouped as if all were ready at once", first[kind][0])
            self.assertIn('model="model.yaml"', first[kind][0])
        self.assertFalse(any(second.values()))  # rank 0 warns for all

    def test_each_kind_of_model_is_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.yaml")
            pathlib.Path(path).write_text(PLAN.format(nodes=2, schedule="fsdp(reshard=false)", gradients=gradients_of(network())))
            for said in run(2, refusals, path):
                for kind, words in {"bare": "DistributedDataParallel(model) or fully_shard(model)",
                                    "not a module": "is no torch.nn.Module",
                                    "half sharded": "parts of which are sharded: call fully_shard(model) for the whole, too",
                                    "fsdp1": "takes no hook", "option": "topology is of DistributedDataParallel",
                                    "hook": "hipress.attach(model) trains it with a plan of schedule fsdp",
                                    "verify": "hipress.attach(model) reduces them as a plan of schedule fsdp says",
                                    "plan of fsdp": "the plan's schedule fsdp(reshard=false) gathers parameters and scatters means, and "
                                                    "an engine averages: shard the model (in PyTorch by fully_shard(model))"}.items():
                    self.assertIn(words, said[kind], kind)


class Plans(unittest.TestCase):
    """Tests of reading sharded plans, and of decisions for groups of parameters."""

    def read(self, text, module=None, ranks_=2, name="plan.yaml"):
        module = module or network()
        gradients = [hipress.Gradient(one, tuple(value.shape)) for one, value in module.named_parameters()]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            pathlib.Path(path).write_text(text)
            return _fsdp.Plan(path, "onebit", ranks_, gradients)

    def test_a_group_takes_what_its_parameters_have_in_common(self):
        plan = self.read(PLAN.format(nodes=2, schedule="fsdp(reshard=false, communicators=separate)",
                                     gradients=gradients_of(network(), "int4block", "int8block")))
        self.assertEqual((plan.shard, plan.reshard, plan.prefetch, plan.in_flight, plan.separate, plan.within),
                         (2, 1, "pre", 2, True, 1))
        unit = _shards.Unit(0, "0", [("0.weight", 1536), ("0.bias", 64)])
        plan.decide(unit)
        self.assertEqual((unit.gather, unit.reduction), ("int8block", "int4block"))

    def test_differing_decisions_in_a_group_are_named(self):
        text = PLAN.format(nodes=2, schedule="fsdp", gradients=gradients_of(network(), "int4block", "int8block"))
        lines = text.splitlines()
        place = next(number for number, line in enumerate(lines) if "0.bias" in line)
        lines[place] = lines[place].replace("int4block", "none")
        plan = self.read("\n".join(lines))
        said = refused(lambda: plan.decide(_shards.Unit(0, "0", [("0.weight", 1536), ("0.bias", 64)])))
        self.assertIn("'0.weight' with gather int8block and algorithm int4block, '0.bias' with gather int8block and algorithm "
                      "none", said)
        self.assertIn("give them one layer in the model file and plan anew", said)

    def test_how_to_plan_for_the_group_of_the_root_is_said(self):
        text = PLAN.format(nodes=2, schedule="fsdp", gradients=gradients_of(network(), "int4block")).replace("int4block", "none", 1)
        root = _shards.Unit(0, "", [("0.weight", 1536), ("0.bias", 64)])
        plan = self.read(text)
        for names, patterns in ((("layers.0", "layers.1"), "layers.*"),
                                (("encoder.0.attention", "encoder.0", "encoder.1.attention", "encoder.1", "head"),
                                 "encoder.*.attention, encoder.*, head")):
            units = [root, *(_shards.Unit(1 + number, name, []) for number, name in enumerate(names))]
            self.assertIn(f"plan anew with --wrap '{patterns}'", refused(lambda: plan.decide(root, units)))

    def test_plans_of_other_jobs_are_refused(self):
        of = {"nodes": 2, "schedule": "fsdp", "gradients": gradients_of(network())}
        for changed, words in (({"nodes": 8}, "is for 8 ranks, and the model is over 2: start 8, or plan for 2 (--nnodes 2)"),
                               ({"schedule": "ddp"}, "is for schedule ddp, and here parameters are in shards: plan for schedule "
                                                     "fsdp or hsdp"),
                               ({"schedule": "fsdq"}, "plan.yaml:5: schedule: unknown schedule 'fsdq'"),
                               ({"gradients": gradients_of(network(), "none", "onebit")}, "gathered as onebit, and no error "
                                                                                          "feedback"),
                               ({"gradients": gradients_of(network()[0])}, "plan.yaml")):
            with self.subTest(changed=changed):
                self.assertIn(words, refused(lambda: self.read(PLAN.format(**{**of, **changed}))))

    def test_low_rank_is_refused(self):
        gradients = [hipress.Gradient(name, tuple(value.shape)) for name, value in network().named_parameters()]
        self.assertIn("gradients are reduced by powersgd(rank=1), which takes whole gradients",
                      refused(lambda: _fsdp.Plan("powersgd(rank=1)", "onebit", 2, gradients)))

    def test_names_are_those_before_wrapping(self):
        self.assertEqual(_fsdp.plain_name("_orig_mod.layers.0._checkpoint_wrapped_module.weight"), "layers.0.weight")


class Divisors(unittest.TestCase):
    def test_sums_and_means_are_told_apart(self):
        operation = torch.distributed.ReduceOp
        self.assertEqual(_shards._divisor_of(operation.SUM, 4), 1)
        self.assertEqual(_shards._divisor_of(operation.AVG, 4), 4)
        self.assertIn("a plan averages or sums", refused(lambda: _shards._divisor_of(operation.MAX, 4)))


if __name__ == "__main__":
    unittest.main()
