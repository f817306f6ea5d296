"""Tests that results of requests, and the JSON of tools, have exactly the keys that {"request": "result_schema"} describes."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import hipress
from c_call import of_c

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ["HIPRESS_TOOLS"])
TRACES = ROOT / "tests/data/traces"
#: Keys that only profiles of GPUs have, and notes, which are made if a machine's speed changes.
ON_GPUS = {".overlap.codec_beside_transfer", ".overlap.transfer_beside_codec", ".overlap.classes", ".overlap.classes.*",
           *(f".overlap.classes.*.{key}" for key in ("beside_codec", "beside_transfer", "slows_codec", "slows_transfer")),
           ".codecs.*.encode_of_ceiling", ".codecs.*.decode_of_ceiling"}
# Null where the machine was slow or busy: an interval that is too wide to tell, one pair of blocks that decided all, an iteration
# without exposed communication.
BY_TIMES = {".within_interval", ".exposed_communication_relative_error", ".automatic.measured_speedup_low",
            ".automatic.measured_speedup_high"}
KINDS = {"number": (int, float), "integer": int, "string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}

SMALL = {"input": "vgg19", "profile": "v100-100g", "nnodes": 4, "evaluations": 20}
SHARDED = {"input": "bert_base", "profile": "v100-100g", "nnodes": 4, "compute_time": "200ms", "wrap": "bert.encoder.layer.*"}


def is_a(value, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, KINDS[kind])


def check(value, schema: dict, at: str, seen: set) -> list:
    """Lists a value's violations of a schema. Adds the places with values other than null to `seen`."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_a(value, kind) for kind in kinds):
        return [f"{at}: {json.dumps(value)[:80]} is none of {kinds}"]
    if value is not None:
        seen.add(at)
    wrong = []
    if isinstance(value, list) and "items" in schema:
        for one in value:
            wrong += check(one, schema["items"], f"{at}[]", seen)
    if isinstance(value, dict) and "additionalProperties" in schema:
        known, others = schema.get("properties", {}), schema["additionalProperties"]
        wrong += [f"{at}: no {name}" for name in schema.get("required", []) if name not in value]
        for name, one in value.items():
            if name in known:
                wrong += check(one, known[name], f"{at}.{name}", seen)
            elif others:
                wrong += check(one, others, f"{at}.*", seen)
            else:
                wrong.append(f"{at}: {name} is not in the schema")
    return wrong


def places(schema: dict, at: str = "") -> list:
    """Lists all places of a schema."""
    found = [at]
    for name, below in schema.get("properties", {}).items():
        found += places(below, f"{at}.{name}")
    if schema.get("additionalProperties"):
        found += places(schema["additionalProperties"], f"{at}.*")
    return found + (places(schema["items"], f"{at}[]") if "items" in schema else [])


def sharded_trace() -> dict:
    """Makes a trace of a step of FSDP2: one layer of 1,024 elements in 4 shards, on two groups of ranks, and a broadcast."""
    events = []

    def add(category: str, name: str, begin_us: float, length_us: float, thread: int, **arguments) -> None:
        events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": begin_us, "dur": length_us,
                       "args": arguments})

    def launch(name: str, at_us: float, begin_us: float, thread: int, stream: int, **arguments) -> None:
        add("cuda_runtime", "cudaLaunchKernel", at_us, 1, thread, correlation=len(events))
        add("kernel", name, begin_us, 1000, stream, correlation=len(events) - 1, **arguments)

    of_shards = {"Group size": 4, "dtype": "Float", "Process Group Name": "1"}
    add("user_annotation", "FSDP::all_gather (a)", 10, 5, 1)
    launch("ncclDevKernel_AllGather_RING_LL", 11, 20, 1, 20, **of_shards, **{
        "Collective name": "_allgather_base", "In msg nelems": 256, "Out msg nelems": 1024})
    for operator in range(6):
        add("cpu_op", "aten::linear", 20 + operator, 1, 1)
    launch("ampere_sgemm_128x64_tn", 30, 1100, 1, 7)
    add("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 40, 5, 2)
    launch("ampere_sgemm_128x64_nt", 41, 2200, 2, 7)
    add("cpu_op", "autograd::engine::evaluate_function: RegisterPostBackwardFunctionBackward", 50, 10, 2)
    add("user_annotation", "FSDP::post_backward_reduce (a)", 51, 8, 2)
    add("cpu_op", "aten::_chunk_cat", 52, 1, 2, **{"Input Dims": [[[256, 4]], [], []]})
    launch("ncclDevKernel_ReduceScatter_RING_LL", 54, 3300, 2, 20, **of_shards, **{
        "Collective name": "_reduce_scatter_base", "In msg nelems": 1024, "Out msg nelems": 256})
    launch("ncclDevKernel_AllReduce_RING_LL", 56, 4300, 2, 20, **{
        "Group size": 2, "dtype": "Float", "Process Group Name": "2", "Collective name": "allreduce", "In msg nelems": 256,
        "Out msg nelems": 256})
    launch("ncclDevKernel_Broadcast_RING_LL", 65, 7000, 1, 20, **{
        "Group size": 8, "dtype": "Float", "Process Group Name": "0", "Collective name": "broadcast", "In msg nelems": 2,
        "Out msg nelems": 2})
    add("user_annotation", "Optimizer.step#AdamW.step", 70, 10, 1)
    launch("multi_tensor_apply_kernel", 71, 5400, 1, 7)
    add("user_annotation", "ProfilerStep#0", 0, 9000, 1)
    return {"distributedInfo": {"backend": "nccl", "world_size": 8}, "traceEvents": events}


def with_matrix(folder: str) -> str:
    """Writes a profile: v100-100g with factors by class of computation. Returns its path."""
    row = "{beside_codec: 1.2, beside_transfer: 1.1, slows_codec: 1.1, slows_transfer: 1.0}"
    classes = "".join(f"    {name}: {row}\n" for name in ("gemm", "attention", "elementwise", "reduction", "norm"))
    text = (ROOT / "profiler/profiles/v100-100g.yaml").read_text()
    assert "overlap:" not in text
    text = text.removesuffix("...\n")  # the mark at the end of a complete file
    text += f"overlap:\n  classes:\n{classes}  codec_beside_transfer: 1.1\n  transfer_beside_codec: 1.0\n...\n"
    path = pathlib.Path(folder) / "matrix.yaml"
    path.write_text(text)
    return str(path)


class ResultsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        answer = hipress.answer({"request": "result_schema"})
        cls.forms = {form["title"]: form for forms in answer.values() for form in forms}

    def check(self, title: str, results: list, never=frozenset()) -> None:
        """Requires that results have a form, and that each of its keys is in at least one result, except those in `never` and items
        of notes."""
        seen = set()
        for result in results:
            self.assertEqual(check(result, self.forms[title], "", seen), [])
        self.assertEqual(sorted(set(places(self.forms[title])) - seen - {".notes[]"} - never), [])

    def tool(self, name: str, *arguments, status: int = 0) -> dict:
        done = subprocess.run([TOOLS / name, *map(str, arguments), "--json"], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def ask(self, request: str, **members) -> dict:
        return hipress.answer({"request": request, **members})

    def test_every_form_is_tested(self):
        tested = [name for name in dir(self) if name.startswith("test_of_")]
        self.assertEqual(len(tested) + 1, len(self.forms))  # one test is of both profiles and replays
        for form in self.forms.values():
            described = [at for at in places(form) if at and not at.endswith("[]")]
            self.assertGreater(len(described), 5)

    def test_of_plans(self):
        with tempfile.TemporaryDirectory() as folder:
            other, model, pilot = f"{folder}/other.yaml", f"{folder}/traced.yaml", f"{folder}/pilot.yaml"
            pathlib.Path(pilot).write_text("schema: 1\nsteps: 400\nratios: [{plan: onebit, ratio: 2, p10: 1.9, p90: 2.1}]\n"
                                           "curve: [{step: 1, loss: 2.5}]\n")
            self.ask("plan", **{**SMALL, "topology": "ring", "output": other})
            self.ask("import_trace", trace=str(TRACES / "resnet50_ddp_2xa100.kineto.json.gz"), output=model)
            self.check("A plan", [
                self.ask("plan", **SMALL, explain=True, compare=other, advise=True, page=True, jitter="lognormal:0.1", robust=True, replicas=8),
                self.ask("plan", **{**SMALL, "bandwidth": "10Gbps"}, break_even="bandwidth"),
                self.ask("plan", **{**SMALL, "input": model, "profile": with_matrix(folder)}),
                self.ask("plan", **{**SMALL, "algorithm": "dgc", "topology": "allgather"}),
                self.ask("plan", **{**SMALL, "algorithm": "onebit"}, pilot=pilot),
                self.ask("plan", input="gpt2", machine="p5.48xlarge", hosts=2, batch=4, evaluations=5),
                self.ask("plan", **SHARDED, schedule="fsdp", gpu_memory="80GB"),
                self.ask("plan", **{**SHARDED, "wrap": ["bert.encoder.layer.*", "bert.encoder"], "profile": with_matrix(folder)},
                         schedule="BEST", gpu_memory="1500MB"),  # too little memory for ddp
            ], {f".baseline_plans[].{key}" for key in ("lower_bound_s", "gap")})  # null for baselines

    def test_of_required_bandwidths(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check("Required bandwidths", [self.ask(
                "plan", **{**SMALL, "profile": with_matrix(folder)}, schedule="ddp", required_bandwidth=True, utilization="50%,99.999%")])

    def test_of_numbers_of_hosts(self):
        self.check("Numbers of hosts compared", [self.ask("plan", input="gpt2", machine="p5.48xlarge", hosts=[1, 2], batch=4)])

    def test_of_broadcasts(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check("A broadcast's plan", [self.ask(
                "plan", profile="v100-100g", nnodes=4, job="broadcast", bytes="1MB", output=f"{folder}/plan.yaml")])

    def test_of_simulations(self):
        with tempfile.TemporaryDirectory() as folder:
            asked = {"input": "vgg19", "plan": "all", "profile": with_matrix(folder)}
            hosts = pathlib.Path(folder) / "cluster.yaml"
            hosts.write_text("nodes: 4\nnodes_per_host: 2\ncores_per_host: 2\nhost_link: {bandwidth: 100Gbps}\n")
            self.check("A simulated iteration", [
                self.ask("simulate", **asked, nnodes=4, steady=True, explain_interval=True, sensitivity=True),
                self.ask("simulate", **asked, nnodes=4, jitter="lognormal:0.1", replicas=8),
                self.ask("simulate", **asked, cluster=str(ROOT / "examples/cluster_2racks.yaml")),
                self.ask("simulate", **asked, cluster=str(hosts)),
                self.ask("simulate", **asked, nnodes=5, fold="always"),
            ])

    def test_of_chakra_graphs(self):
        with tempfile.TemporaryDirectory() as folder:
            self.tool("hipress-sim", "--input", "vgg19", "--plan", "all", "--topology", "ring", "--nnodes", 2,
                      "--export-chakra", f"{folder}/graph")
            self.check("A simulated Chakra graph", [self.tool("hipress-sim", "--chakra", f"{folder}/graph")])

    def test_of_sweeps(self):
        spec = {"model": "vgg19", "plan": ["none", "all"], "nodes": 2, "bandwidth": "10Gbps"}
        self.check("A sweep", [self.ask("sweep", spec=spec)])

    def test_of_imports(self):
        with tempfile.TemporaryDirectory() as folder:
            sharded = pathlib.Path(folder) / "fsdp.json"
            sharded.write_text(json.dumps(sharded_trace()))
            names = ("resnet50_ddp_2xa100.kineto.json.gz", "planned_gloo.kineto.json.gz", "ddp_gloo.execution.json.gz")
            self.check("An imported trace", [self.ask("import_trace", trace=str(trace))
                                             for trace in (*(TRACES / name for name in names), sharded)])

    def test_of_profiles_and_replays(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = f"{folder}/profile.yaml"
            self.check("What was measured", [self.tool(
                "hipress-profile", "--quick", "--passes", 1, "--again", 0, "--nnodes", 2, "--algorithm", "fp16,powersgd",
                "--output", profile)], ON_GPUS)
            model = pathlib.Path(folder) / "model.yaml"
            model.write_text("name: two\ngradients:\n- {name: a, elements: 4000}\n- {name: b, elements: 100}\n")
            common = ("--input", model, "--plan", "all", "--algorithm", "fp16", "--nnodes", 2, "--iterations", 2, "--compute-time", "2ms")
            self.check("A replay", [self.tool("hipress-exec", *common),
                                    self.tool("hipress-exec", *common, "--profile", profile, "--reprobe"),
                                    self.tool("hipress-exec", "--auto", "--input", model, "--nnodes", 2, "--iterations", 2,
                                              "--algorithm", "fp16", "--compute-time", "2ms", "--profile", profile)], BY_TIMES)

    def test_of_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.yaml"
            model.write_text("name: x\ngradients:\n- {name: a, elements: 1, shap: [1]}\n")
            trace = str(TRACES / "wild/fsdp2.json.gz")  # its layers have no sizes
            self.check("An error", [of_c(request) for request in (
                {"request": "plan", "input": str(model)}, {"request": "plan", "input": "vgg19", "nnodes": "x"}, {"request": "nonsense"},
                {"request": "import_trace", "trace": trace})])


if __name__ == "__main__":
    unittest.main()
