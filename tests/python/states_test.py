"""Tests that states which a checkpoint has spoilt are refused, and change nothing."""

import copy
import unittest

import ranks
from ranks import network, run, wrapped

if ranks.MISSING is None:
    import hipress
    import torch
    import torch.distributed as dist
    from hipress import _codec, _fsdp, _shards
    from hipress._errors import short


def setUpModule() -> None:
    ranks.require_torch()


def same(first, second) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


def without_bottom():
    """Makes a dictionary in a dictionary, nested far deeper than Python's recursion limit."""
    value = {}
    for _ in range(100_000):
        value = {"a": value}
    return value


def spoilt(state):
    """Yields states, each with a name, that differ from a given one in one thing."""
    yield "no dictionary", [1, 2]
    yield "None", None
    yield "empty", {}
    for key, value in state.items():
        yield f"without {key}", {one: kept for one, kept in state.items() if one != key}
        others = [None, "x", -1, float("nan"), True, [0], {"a": 1}, torch.zeros(3)]
        for other in others:
            if type(other) is not type(value) or isinstance(other, (str, list, dict, torch.Tensor)):
                yield f"{key} {other}", {**state, key: other}
        yield f"{key} without bottom", {**state, key: {"a": without_bottom()}}
    blob = state["state"] if isinstance(state["state"], torch.Tensor) else next(iter(state["state"].values()))
    damaged = blob.clone()
    damaged[len(damaged) // 2] += 1
    for what, other in (("none of its bytes", blob[:0]), ("a part of its bytes", blob[:-5]), ("a wrong byte", damaged),
                        ("more bytes", torch.cat([blob, blob])), ("numbers", blob.float()), ("rows", blob.reshape(1, -1))):
        yield what, {**state, "state": other if isinstance(state["state"], torch.Tensor) else dict.fromkeys(state["state"], other)}


def refusals(state_dict, load_state_dict, states):
    """Loads states that must be refused. Returns their number, and those that were not, or changed something."""
    before, wrong, count = copy.deepcopy(state_dict()), [], 0
    for what, state in states:
        count += 1
        try:
            load_state_dict(state)
            wrong.append(f"{what}: accepted")
        except hipress.InvalidRequest as error:
            if len(str(error).split()) < 8:
                wrong.append(f"{what}: {error}")
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{what}: {type(error).__name__} {error}")
        if not same(before, state_dict()):
            wrong.append(f"{what}: changed")
            load_state_dict(before)
    load_state_dict(before)
    return count, wrong


def of_hook(_rank):
    ddp = wrapped(network())
    hook = hipress.attach(ddp, "onebit")
    for _ in range(2):
        ddp(torch.randn(4, 24)).sum().backward()
    state = hook.state_dict()
    ddp(torch.randn(4, 24)).sum().backward()
    return refusals(hook.state_dict, hook.load_state_dict, [*spoilt(state), ("another rank", {**state, "rank": 1}),
                                                            ("more ranks", {**state, "ranks": 2})])


def of_local_updates(_rank, overlap, outer):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    make = {"sgd": None, "adam": lambda weights: torch.optim.Adam(weights, lr=0.1)}
    local = hipress.LocalUpdates(model, optimizer, make[outer], "onebit",
                                 schedule=f"local(steps=4, fragments=2, overlap={overlap})")

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.randn(4, 24)).pow(2).mean().backward()
            optimizer.step()

    steps(6)
    state = copy.deepcopy(local.state_dict())
    steps(1)
    inner = state["outer_optimizer"]
    groups = inner["param_groups"]
    weights = [torch.nn.Parameter(weight.clone()) for weight in state["outer"].values()]
    name = next(iter(state["outer"]))
    first = state["outer"][name]
    other = {"sgd": "adam", "adam": "sgd"}[outer]
    another = (make[other] or (lambda of: torch.optim.SGD(of, lr=0.7, momentum=0.9)))(weights)

    def with_outer(value):
        return {**state, "outer": {**state["outer"], name: value}}

    more = [("weights that are no numbers", with_outer(first * float("nan"))),
            ("weights without bounds", with_outer(first + float("inf"))),
            ("weights of another type", with_outer(first.double())), ("weights of another shape", with_outer(first[:1])),
            ("no weights", {**state, "outer": {}}), ("a weight that is none", with_outer("x")),
            ("another name", {**state, "outer": {f"{one}_": weight for one, weight in state["outer"].items()}}),
            ("steps of before", {**state, "step": 2}), ("too many steps", {**state, "step": 10**30}),
            ("turns of others", {**state, "begun": state["begun"][::-1]}), ("few turns", {**state, "begun": state["begun"][:1]}),
            ("turns far away", {**state, "begun": [10**18, 10**18]}),
            ("another outer optimizer", {**state, "outer_optimizer": another.state_dict()}),
            ("no groups", {**state, "outer_optimizer": {"state": inner["state"]}}),
            ("a state without bottom", {**state, "outer_optimizer": {**inner, "state": without_bottom()}}),
            ("no group", {**state, "outer_optimizer": {**inner, "param_groups": []}}),
            *(("a rate of none", {**state, "outer_optimizer": {**inner, "param_groups": [{**groups[0], "lr": rate}]}})
              for rate in ("fast", float("nan"), None)),
            ("a state of numbers", {**state, "outer_optimizer": {**inner, "state": {0: 3}}}),
            ("fragments on their way", {**state, "under_way": {0: [torch.zeros(3)], 1: []}}),
            ("fragments without numbers", {**state, "under_way": {"0": [torch.zeros(3)]}}),
            ("another schedule", {**state, "schedule": "local(steps=5)"})]
    for number, means in state["under_way"].items():
        for what, changed in (("few means", means[:-1]), ("means of other shapes", [one[:0] for one in means]),
                              ("means that are no numbers", [one * float("nan") for one in means]), ("no list", 3)):
            more.append((what, {**state, "under_way": {**state["under_way"], number: changed}}))
    count, wrong = refusals(local.state_dict, local.load_state_dict, [*spoilt(state), *more])
    on_their_way = len(state["under_way"])
    local.load_state_dict(state)
    steps(4)  # training goes on
    finite = all(bool(torch.isfinite(one).all()) for one in model.parameters())
    untouched = same(inner, state["outer_optimizer"])
    local.close()
    return count, wrong, on_their_way, finite, untouched


def of_shards(_rank):
    """Tests the states of a ShardedHook without modules."""
    units = [_shards.Unit(0, "", [("a", 6)]), _shards.Unit(1, "layers.0", [("b", 64)])]
    units[1].reduction, units[1].gather, units[0].reduction = "onebit", "int8block", "tbq"
    hook = _fsdp.ShardedHook(units, 1, dist.group.WORLD, "plan.yaml")
    for number, algorithm in enumerate(("onebit", "tbq", "int8block")):
        hook.messages.encode(algorithm, torch.randn(64), 2, _codec.Draws(number, 0, 0, 3), hook.messages.codec(algorithm).keeps)
    units[0].gathers, units[1].reductions = 3, 4
    state = hook.state_dict()
    kept = state["state"]
    more = [("counts below 0", {**state, "counts": state["counts"] - 5}), ("few counts", {**state, "counts": state["counts"][:1]}),
            ("counts with a point", {**state, "counts": state["counts"].double() + 0.5}),
            ("another group", {**state, "units": [["x", *state["units"][0][1:]], state["units"][1]]}),
            ("groups that are none", {**state, "units": [3, "x"]}),
            ("groups without bottom", {**state, "units": [without_bottom()]}),
            ("few groups", {**state, "units": state["units"][:1]}),
            ("few algorithms", {**state, "state": {"onebit": kept["onebit"]}}),
            ("another algorithm", {**state, "state": {**kept, "graddrop": kept["tbq"]}}),
            ("an algorithm that is none", {**state, "state": {**kept, "none such": kept["tbq"]}}),
            ("one that is damaged", {**state, "state": {**kept, "tbq": kept["tbq"][:-1]}}),
            ("one that is no tensor", {**state, "state": {**kept, "tbq": b"x"}})]
    return refusals(hook.state_dict, hook.load_state_dict, [*spoilt(state), *more])


class States(unittest.TestCase):
    def check(self, count, wrong, least):
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(count, least)

    def test_of_the_hook_of_ddp(self):
        self.check(*run(1, of_hook)[0], 30)

    def test_of_local_updates(self):
        for overlap, outer, under_way in ((0, "sgd", 0), (1, "adam", 1)):
            count, wrong, on_their_way, finite, untouched = run(1, of_local_updates, overlap, outer)[0]
            self.check(count, wrong, 80)
            # Fragments have turns after steps 2, 4, 6 … With an overlap of one step, one is still being averaged after step 6.
            self.assertEqual((on_their_way, finite, untouched), (under_way, True, True))

    def test_of_shards(self):
        self.check(*run(1, of_shards)[0], 50)

    def test_of_a_codec(self):
        codec = _codec.Codec("onebit", 1)
        slots = torch.empty((2, _codec.aligned(codec.size(32))), dtype=torch.uint8)
        codec.encode(torch.randn(64), slots, _codec.Draws(0, 0, 0, 0), True)
        before = codec.saved()
        for state in (None, "x", b"x", before.float(), before[:-1], before[:0], torch.cat([before, before]), before.reshape(1, -1)):
            with self.assertRaises(hipress.InvalidRequest):
                codec.restore(state)
            self.assertTrue(torch.equal(codec.saved(), before))
        codec.restore(before)


def arguments(_rank, door):
    """Returns the errors for arguments out of range, by argument."""
    said = {}
    for name, value in (("seed", -1), ("seed", 1 << 64), ("seed", 1.5), ("seed", "1"), ("seed", None), ("timeout", 0),
                        ("timeout", -3), ("timeout", float("nan")), ("timeout", float("inf")), ("timeout", "5"), ("topology", 3),
                        ("network", 7),
                        ("seed", 10**400), ("timeout", 10**400),
                        ("rendezvous", b"file:///tmp"), ("plan", "a\0b"), ("algorithm", "a\0b"),
                        *((("alpha", -0.1), ("alpha", float("nan")), ("alpha", "1")) if door == "LocalUpdates" else ())):
        model = network()
        try:
            if door == "LocalUpdates":
                hipress.LocalUpdates(model, torch.optim.SGD(model.parameters(), lr=0.1), **{name: value})
            else:
                getattr(hipress, door)(wrapped(model), **{name: value})
            said[name, short(value)] = "accepted"
        except hipress.InvalidRequest as error:
            said[name, short(value)] = str(error)
    return said


class Arguments(unittest.TestCase):
    def test_arguments_out_of_range_are_refused_in_words(self):
        for door in ("attach", "Hook", "LocalUpdates"):
            for (name, value), text in run(1, arguments, door)[0].items():
                self.assertIn(name, text)
                self.assertIn(f", got {value}", text)


if __name__ == "__main__":
    unittest.main()
