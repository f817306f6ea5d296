"""Tests of attach(model) without a plan for models of fully_shard() of PyTorch 2. Candidates and verdicts are given, so they do not
depend on times."""

import re
import unittest

import fsdp_test
from auto_test import given
from fsdp_test import Folder, of_mesh, sharded, take_steps, whole
from ranks import run

if fsdp_test.MISSING is None:
    import hipress
    import torch
    from hipress import _auto_shards
    from hipress._control import Candidate, Pace

STEPS = 60


def setUpModule() -> None:
    fsdp_test.setUpModule()


def candidate(path):
    with open(path, encoding="utf-8") as file:
        return Candidate(file.read(), "a plan", 0.1, 0.2)


def attached(model, **options):
    return _auto_shards.AutoShards(model, profile="v100-100g", pace=Pace(warmup=2, measured=4, between_plans=20), **options)


def trained(rank, candidates, keeps=True, mesh=None, accumulate=False, options=None, steps=STEPS, state=None):
    """Trains some steps; `candidates` None: without attach(). Returns the weights, the report, the state, and the captured
    model."""
    model = sharded(**of_mesh(mesh), **(options or {}))
    own = [group._all_gather_comm for _, _, group in hipress._fsdp.groups_of(model)]
    report, saved, captured = "", None, ""
    with given(candidates or [], keeps):
        hook = attached(model) if candidates is not None else None
        if hook is not None and state is not None:
            hook.load_state_dict(state[rank])
        take_steps(model, rank, steps, accumulate)
        if hook is not None:
            report, saved, captured = hook.report(), hook.state_dict(), hook._model
            hook.close()
            assert [group._all_gather_comm for _, _, group in hipress._fsdp.groups_of(model)] == own
    return whole(model), report, saved, captured


class Trained(unittest.TestCase):
    def require_equal(self, mine, theirs):
        for (weights, *_), (others, *_) in zip(mine, theirs):
            for name in weights:
                self.assertTrue(torch.equal(weights[name], others[name]), name)

    def test_without_a_plan_every_step_has_the_bits_of_fsdp2(self):
        for count in (2, 4):
            mine = run(count, trained, [])
            self.require_equal(mine, run(count, trained, None))
            for _, report, _, _ in mine:
                self.assertIn("measured 4 steps of plain FSDP2", report)
                self.assertIn("plain FSDP2 stays the fastest predicted", report)

    def test_changes_to_a_lossless_plan_change_no_bit(self):
        with Folder() as folder:
            found = [candidate(folder.plan(2, algorithm="none", gather="lossless"))]
            for keeps in (True, False):
                mine = run(2, trained, found, keeps)
                self.require_equal(mine, run(2, trained, None))
                for _, report, saved, _ in mine:
                    self.assertIn(f"{'kept' if keeps else 'dropped'} a plan", report)
                    self.assertEqual(bool(saved["state"]), keeps)

    def test_a_kept_plan_compresses_alike_on_all_ranks(self):
        with Folder() as folder:
            mine = run(2, trained, [candidate(folder.plan(2, algorithm="int8block", gather="int8block"))])
            plain = run(2, trained, None)
        for name, weights in mine[0][0].items():
            self.assertTrue(torch.equal(weights, mine[1][0][name]), name)
        self.assertTrue(any(not torch.equal(weights, plain[0][0][name]) for name, weights in mine[0][0].items()))

    def test_micro_steps_and_models_that_stay_whole_are_steps_too(self):
        for accumulate, options in ((True, None), (False, {"reshard_after_forward": False})):
            mine = run(2, trained, [], True, None, accumulate, options)
            self.require_equal(mine, run(2, trained, None, True, None, accumulate, options))
            self.assertIn(f"micro_steps: {1 + accumulate}\n", mine[0][3])

    def test_a_capture_has_layers_in_backward_order(self):
        captured = run(2, trained, [])[0][3]
        rows = re.findall(r"- \{name: \"?([\w.]+)\"?, elements: (\d+), ready: ([\d.]+)us, layer: \"?(\w+)", captured)
        self.assertEqual({(name, int(count), layer) for name, count, _, layer in rows},
                         {("4.weight", 315, "root"), ("4.bias", 5, "root"), ("2.weight", 63 * 64, "2"), ("2.bias", 63, "2"),
                          ("0.weight", 64 * 24, "0"), ("0.bias", 64, "0")})
        ready = [float(one) for _, _, one, _ in rows]
        self.assertEqual(ready, sorted(ready))
        layers = [layer for _, _, _, layer in rows]
        self.assertLess(layers.index("2"), layers.index("0"))

    def test_a_job_goes_on_with_the_plan_of_its_checkpoint(self):
        with Folder() as folder:
            found = [candidate(folder.plan(2, algorithm="int8block", gather="none"))]
            states = [saved for _, _, saved, _ in run(2, trained, found)]
            for _, report, saved, _ in run(2, trained, [], True, None, False, None, 10, states):
                self.assertIn("went on with the checkpoint's plan: a plan", report)
                self.assertIn("watching; a plan", report)
                self.assertGreater(int(saved["state"]["counts"].sum()), int(states[0]["state"]["counts"].sum()))

    def test_what_no_plan_treats_stays_plain_and_says_why(self):
        for _, report, _, _ in run(4, trained, [], True, (2, 2)):
            self.assertIn("plain FSDP2 does: shards are replicated", report)

    def test_a_plan_with_residuals_is_refused(self):
        with Folder() as folder:
            for _, report, _, _ in run(2, trained, [candidate(folder.plan(2, algorithm="onebit", gather="none"))]):
                self.assertIn("dropped a plan: onebit keeps residuals", report)


if __name__ == "__main__":
    unittest.main()
