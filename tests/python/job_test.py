"""Tests of jobs: refusals on all ranks, the launcher's numbers in errors, silent ranks, orders of backward, and close()."""

import logging
import os
import pathlib
import signal
import tempfile
import time
import unittest
import warnings

import ranks
from ranks import data, network, run, train, weights, wrapped

if ranks.MISSING is None:
    import hipress
    import torch
    import torch.distributed as dist
    from hipress import _job
    from hipress._engine import Numbers


def setUpModule() -> None:
    ranks.require_torch()


def plain(values):
    return {name: value.tolist() for name, value in values.items()}


class Halves(torch.nn.Module if ranks.MISSING is None else object):
    """A model whose second half is not used in every step."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(24, 5), torch.nn.Linear(24, 5)

    def forward(self, values, both=True):
        return self.first(values) + (self.second(values) if both else 0)


def joined(rank, plan, options):
    """Trains with three more steps on rank 1. Only with static_graph, every step uses the whole model. Returns the weights."""
    ddp = wrapped(Halves(), **options)
    if plan is not None:
        hipress.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    with ddp.join():
        for step in range(4 + 3 * rank):
            values, classes = data(rank, step)
            optimizer.zero_grad()
            both = step % 2 == 0 or "static_graph" in options
            torch.nn.functional.cross_entropy(ddp(values, both), classes).backward()
            optimizer.step()
    return weights(ddp.module)


def in_two_orders(rank, plan):
    """Trains two models with one loss. From the third step on, the ranks' backward passes reach them in different orders."""
    models = []
    for seed in range(2):
        models.append(wrapped(network(seed), process_group=dist.new_group()))
        if plan is not None:
            hipress.attach(models[-1], plan)
    optimizer = torch.optim.SGD([one for model in models for one in model.parameters()], lr=0.1)
    for step in range(6):
        values, classes = data(rank, step)
        order = models if step < 2 or (rank + step) % 2 else models[::-1]
        optimizer.zero_grad()
        sum(torch.nn.functional.cross_entropy(model(values), classes) for model in order).backward()
        optimizer.step()
    return [weights(model.module) for model in models]


class Orders(unittest.TestCase):
    def test_ranks_with_more_inputs_than_others_go_on(self):
        for options in ({"find_unused_parameters": True}, {"static_graph": True}):
            with self.subTest(options=options):
                expected = [plain(one) for one in run(2, joined, None, options)]
                self.assertEqual([plain(one) for one in run(2, joined, "none", options)], expected)
                first, second = run(2, joined, "onebit", options)
                self.assertEqual(plain(first), plain(second))

    def test_models_may_be_reached_in_different_orders(self):
        expected = run(2, in_two_orders, None)
        for mine, theirs in zip(run(2, in_two_orders, "none"), expected):
            self.assertEqual([plain(one) for one in mine], [plain(one) for one in theirs])
        first, second = run(2, in_two_orders, "onebit")
        self.assertEqual([plain(one) for one in first], [plain(one) for one in second])


def halves_of_four(rank, kind):
    """Runs two jobs of two ranks. Rank 3 is killed, or ends its job. Returns the lost rank and the error on other ranks, if any."""
    group = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    ddp = wrapped(network(), process_group=group)
    hook = hipress.attach(ddp, "onebit")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(2))
    dist.barrier()
    if rank == 3:
        if kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        hook.engine.abort_for(ValueError("rank 3 has no data, nor has rank 2"))
    try:
        train(ddp, optimizer, rank, range(2, 4))
    except RuntimeError:
        return hook.failure.rank, str(hook.failure)
    return None


def states_of_four(rank):
    """Returns the errors in two groups of two ranks: of attach() with different plans, and of loading the state of another rank."""
    group = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    ddp = wrapped(network(), process_group=group)
    said = []
    try:
        hook = hipress.attach(ddp, "onebit" if rank == 3 else "none")
    except hipress.InvalidRequest as error:
        said.append(str(error))
        hook = hipress.attach(ddp, "none")
    try:
        hook.load_state_dict({**hook.state_dict(), "rank": 0})
    except hipress.InvalidRequest as error:
        said.append(str(error))
    return said


def end_first(rank, path):
    """Rank 1 ends after two steps. Rank 0 takes a third when that process has gone, and returns how the step failed."""
    ddp = wrapped(network())
    hook = hipress.attach(ddp, "onebit")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(2))
    if rank == 1:
        pathlib.Path(path, "soon").write_text(str(os.getpid()))
        os.replace(os.path.join(path, "soon"), os.path.join(path, "process"))
        return None
    process = pathlib.Path(path, "process")
    while not process.exists():
        time.sleep(0.01)
    stat = pathlib.Path("/proc", process.read_text(), "stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    try:
        train(ddp, optimizer, rank, range(2, 3))
    except RuntimeError:
        return hook.failure.rank, hook.failure.left


class Ends(unittest.TestCase):
    def test_a_forked_process_says_goodbye(self):
        """Processes that multiprocessing has forked end without the interpreter's exit handlers."""
        with tempfile.TemporaryDirectory(prefix="hipress-test-") as path:
            self.assertEqual(run(2, end_first, path), [(1, True), None])


class LaunchersNumbers(unittest.TestCase):
    def test_a_lost_rank_of_a_subgroup_has_its_own_number(self):
        for kind, words in (("killed", "rank 3 (1 of the process group of ranks 2, 3) closed the connection"),
                            ("raised", "rank 3 (1 of the process group of ranks 2, 3) ended the job: ValueError: rank 3 has no "
                                       "data, nor has rank 2")):
            with self.subTest(kind):
                outcomes = ranks.Job(4, halves_of_four, kind).outcomes()
                self.assertEqual(outcomes[:2], [(True, None)] * 2)
                succeeded, result = outcomes[2]
                self.assertTrue(succeeded, result)
                number, said = result
                self.assertEqual(number, 3)
                self.assertIn(words, said)

    def test_refusals_in_a_subgroup_name_numbers(self):
        said = run(4, states_of_four)
        self.assertEqual([len(one) for one in said], [0, 1, 1, 2])
        self.assertIn("rank 3 (1 of the process group of ranks 2, 3) calls hipress.attach with plan='onebit', rank 2 with 'none'",
                      said[2][0])
        self.assertIn("the state is of rank 2 (0 of the process group of ranks 2, 3), and this is rank 3", said[3][1])

    def test_texts_are_translated_there_and_back(self):
        numbers = Numbers([2, 0, 5])
        self.assertEqual(numbers.explain("rank 1 waits for rank 0; powersgd(rank=4), rank 7"),
                         "rank 0 (1 of the process group of ranks 2, 0, 5) waits for rank 2; powersgd(rank=4), rank 7")
        self.assertEqual(numbers.places("rank 5 and rank 2"), "rank 2 and rank 0")
        self.assertEqual((numbers.of(2), numbers.of(-1)), (5, -1))
        whole = Numbers(range(3))
        self.assertEqual(whole.explain("rank 1"), "rank 1")
        self.assertIn("ranks 1, 2, 3, 4, 5, 6, 7, 8, …)", Numbers(range(1, 12)).name(0))


#: Things that rank 1 lacks, and the text that names each in its error.
LACKS = {"plan": "plan.yaml", "model": "model.yaml", "network": "nosuch0", "library": "HIPRESS_LIBRARY", "local": "plan.yaml",
         "plan, in a folder": "plan.yaml"}


def refused_alone(rank, folder, lack):
    """Attaches while rank 1 lacks something. Returns the error, and the number of threads that are left over."""
    os.chdir(folder if rank == 0 else os.path.join(folder, "elsewhere"))
    options = {"plan": {"plan": "plan.yaml"}, "model": {"model": "model.yaml"}, "local": {"plan": "plan.yaml"}}.get(lack, {})
    if lack == "network" and rank == 1:
        options["network"] = "nosuch0"
    if lack == "library" and rank == 1:
        hipress._library._loaded = None
        os.environ["HIPRESS_LIBRARY"] = "/no/such/library"
    if lack == "plan, in a folder":
        options = {"plan": "plan.yaml", "rendezvous": f"file://{folder}"}
    before = len(os.listdir("/proc/self/task"))
    try:
        if lack == "local":
            module = network()
            hipress.LocalUpdates(module, torch.optim.SGD(module.parameters(), lr=0.1), **options)
        else:
            hipress.attach(wrapped(network()), **{"plan": "none", **options})
    except (hipress.Error, hipress.LibraryError) as error:
        return f"{type(error).__name__}: {error}", len(os.listdir("/proc/self/task")) - before
    return "accepted", 0


def refused_when_open(rank):
    """Makes rank 1 fail after the ranks have met. Returns the error."""
    class Failing(_job.Engine):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            if rank == 1:
                self.close()
                raise MemoryError("none is left")

    _job.Engine = Failing
    try:
        hipress.attach(wrapped(network()), "none")
    except (hipress.Error, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


class Refusals(unittest.TestCase):
    def test_what_one_rank_lacks_is_told_to_all(self):
        sizes = "\n".join(f"- {{name: {name}, elements: {value.numel()}, algorithm: none, K: 2}}"
                          for name, value in network().named_parameters())
        for lack, words in LACKS.items():
            with self.subTest(lack), tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "elsewhere"))
                pathlib.Path(folder, "plan.yaml").write_text("schema: hipress.plan/1\nmodel: small\ntopology: ps\nnodes: 2\n"
                                                             f"gradients:\n{sizes}\n")
                model = "name: small\ngradients:\n" + sizes.replace(", algorithm: none, K: 2", "")
                pathlib.Path(folder, "model.yaml").write_text(model)
                (mine, threads), (theirs, others) = run(2, refused_alone, folder, lack)
                self.assertIn(words, theirs)
                self.assertNotIn("rank 1: ", theirs)
                self.assertRegex(mine, r"^(InvalidRequest|Error): rank 1: ")
                self.assertIn(words, mine)
                self.assertEqual((threads, others), (0, 0))

    def test_a_failure_after_the_meeting_is_told_to_all(self):
        first, second = run(2, refused_when_open)
        self.assertEqual(first, "Error: rank 1: MemoryError: none is left")
        self.assertEqual(second, "MemoryError: none is left")


def train_through_silence(rank, path):
    """Trains until rank 0 has logged that rank 1 is silent, and that it is back. Returns all messages and the weights."""
    said = []

    class Noting(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())
            pathlib.Path(path, f"{rank} was told").touch()

    logging.getLogger("hipress").addHandler(Noting())
    ddp = wrapped(network())
    hipress.attach(ddp, "onebit", silence=6)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(2))
    pathlib.Path(path, f"{rank} trains").touch()
    step, end = 2, pathlib.Path(path, "end")
    # `end` has the number of the step before which both ranks stop, the next but one. Rank 1 sees it in time: it cannot complete
    # the next step before rank 0, which writes `end` first, takes part in it.
    while not end.exists() or step < int(end.read_text()):
        train(ddp, optimizer, rank, range(step, step + 1))
        step += 1
        if len(said) >= 2 and rank == 0 and not end.exists():
            pathlib.Path(path, "soon").write_text(str(step + 1))
            os.replace(os.path.join(path, "soon"), end)
    torch.distributed.barrier()  # a process that ends closes its connections
    return said, weights(ddp.module)


class Silence(unittest.TestCase):
    def test_a_stopped_rank_is_named_and_may_come_back(self):
        # Silence is logged after half of the limit, 3 s. The rank is stopped until then; it would be lost after 6 s.
        with tempfile.TemporaryDirectory() as path:
            def await_file(name):
                end = time.monotonic() + ranks.DEADLINE_S
                while not os.path.exists(os.path.join(path, name)) and time.monotonic() < end:
                    time.sleep(0.02)

            job = ranks.Job(2, train_through_silence, path)
            await_file("0 trains")
            await_file("1 trains")
            job.signal(1, signal.SIGSTOP)
            await_file("0 was told")
            job.signal(1, signal.SIGCONT)
            outcomes = job.outcomes()
        self.assertTrue(all(succeeded for succeeded, _ in outcomes), outcomes)
        (said, mine), (_, theirs) = (result for _, result in outcomes)
        self.assertRegex(said[0], r"^rank 1 has been silent for \d")
        self.assertIn("after 6 s of silence the job ends", said[0])
        self.assertRegex(said[1], r"^rank 1 is back, after \d")
        self.assertEqual(plain(mine), plain(theirs))


def closed_and_attached(rank, plans):
    """Trains two steps with each plan in turn; None: after close(), without a plan. Returns the weights, failures and errors."""
    ddp = wrapped(network())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    hook, said = None, []
    for turn, plan in enumerate(plans):
        if hook is not None:
            hook.close()
            said.append(hook.failure)
            try:
                hipress.verify(ddp)
            except hipress.InvalidRequest as error:
                said.append(str(error))
        if plan is not None:
            hook = hipress.attach(ddp, plan)
        train(ddp, optimizer, rank, range(2 * turn, 2 * turn + 2))
    try:
        hook.close()
        hook.state_dict()
    except hipress.Error as error:
        said.append(str(error))
    return weights(ddp.module), said


def without(rank, steps):
    ddp = wrapped(network())
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, range(steps))
    return weights(ddp.module)


def attached_after_failure(rank):
    """Ends the job on rank 1. Returns the errors of later steps and of attach(), also after close()."""
    ddp = wrapped(network())
    hook = hipress.attach(ddp, "onebit")
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    train(ddp, optimizer, rank, range(1))
    dist.barrier()
    if rank == 1:
        hook.engine.abort("enough")
    said = []
    for call in (lambda: train(ddp, optimizer, rank, range(1, 2)), hook.close, lambda: train(ddp, optimizer, rank, range(1, 2)),
                 lambda: hipress.attach(ddp, "none")):
        try:
            call()
        except RuntimeError as error:
            said.append(str(error))
    return said


class Closing(unittest.TestCase):
    def test_a_closed_model_goes_on_and_is_attached_again(self):
        # With two ranks, raw means of a plan have DDP's bits, so changes between plan and DDP change nothing.
        expected = plain(run(2, without, 6)[0])
        for mine, said in run(2, closed_and_attached, ["none", None, "none"]):
            self.assertEqual(plain(mine), expected)
            self.assertEqual(said[0], None)
            self.assertIn("call hipress.attach(model) first", said[1])
            self.assertIn("closed", said[-1])
        (first, _), (second, _) = run(2, closed_and_attached, ["onebit", "int8block", None, "onebit"])
        self.assertEqual(plain(first), plain(second))
        self.assertFalse(torch.equal(first["0.weight"], run(2, without, 8)[0]["0.weight"]))

    def test_a_model_whose_hook_failed_does_not_go_on(self):
        for said in run(2, attached_after_failure):
            self.assertEqual(len(said), 3)
            for text in said[:2]:
                self.assertIn("rank 1 ended the job: enough", text)
            self.assertIn("start the ranks anew, from a checkpoint", said[2])


def advised(rank, plan):
    """Returns the warnings in steps with L-BFGS, with a gradient penalty, and with plain SGD."""
    texts = {}
    for kind in ("lbfgs", "penalty", "sgd"):
        ddp = wrapped(network())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hipress.attach(ddp, plan)
            of_kind = torch.optim.LBFGS if kind == "lbfgs" else torch.optim.SGD
            optimizer = of_kind(ddp.parameters(), lr=0.1)
            for step in range(2):
                def closure(step=step):
                    values, classes = data(rank, step)
                    values.requires_grad_(kind == "penalty")
                    optimizer.zero_grad()
                    loss = torch.nn.functional.cross_entropy(ddp(values), classes)
                    if kind == "penalty":
                        loss = loss + torch.autograd.grad(loss, values, create_graph=True)[0].pow(2).sum()
                    loss.backward()
                    return loss

                optimizer.step(closure)
        texts[kind] = [str(one.message) for one in caught]
    return texts


class Advice(unittest.TestCase):
    def test_users_of_exact_gradients_are_told_once(self):
        for rank, texts in enumerate(run(2, advised, "onebit")):
            self.assertEqual({kind: len(said) for kind, said in texts.items()},
                             {"lbfgs": 1 - rank, "penalty": 1 - rank, "sgd": 0})
            if rank == 0:
                self.assertIn("L-BFGS", texts["lbfgs"][0])
                self.assertIn("gradient penalty", texts["penalty"][0])
        for texts in run(2, advised, "none"):
            self.assertFalse(any(texts.values()))


if __name__ == "__main__":
    unittest.main()
