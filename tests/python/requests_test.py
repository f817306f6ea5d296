"""Tests that requests, such as plan(), need no torch, and give the same answers as the command line and C."""

import csv
import ctypes
import importlib.util
import inspect
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import hipress
from c_call import of_c
from hipress import _library, _tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ["HIPRESS_TOOLS"])
TRACES = ROOT / "tests/data/traces"
SPEC = {"model": "vgg19", "plan": ["none", "all"], "nodes": [2, 4], "bandwidth": ["10Gbps", "25Gbps"]}
#: Script that makes a request on a new thread. Its address space may grow by a given number of MiB.
SHORT_OF_MEMORY = """
import ctypes, os, resource, sys, threading
library = ctypes.CDLL(sys.argv[1])
request = b'{"request": "sweep", "spec": {"model": "vgg19", "plan": ["none", "all"], "nodes": [2, 4]}, "jobs": 4}'
answers = []

def ask():
    result = ctypes.c_void_p()
    answers.append(library.hipress_call(request, ctypes.byref(result)))
    library.hipress_free_result(result)

with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]) * 2**20, resource.RLIM_INFINITY))
thread = threading.Thread(target=ask)
try:
    thread.start()
    thread.join()
except RuntimeError:  # no room for the thread
    answers.append(1)
os.write(1, b"%d\\n" % answers[0])
"""
#: Keys of measured values, which differ between runs.
MEASURED = {"search_s", "simulation_s", "tasks_per_s", "s"}


def without_measured(value):
    """Returns the document without measured values."""
    if isinstance(value, dict):
        return {key: without_measured(one) for key, one in value.items() if key not in MEASURED}
    return [without_measured(one) for one in value] if isinstance(value, list) else value


def of_tool(request, folder):
    """Runs the request's tool. Returns the document that it prints."""
    tool = {"plan": ["hipress-plan"], "simulate": ["hipress-sim"], "sweep": ["hipress-sim", "sweep"],
            "import_trace": ["hipress-import"], "replay": ["hipress-exec"], "profile": ["hipress-profile"]}[request["request"]]
    arguments = tool[1:]
    for key, value in request.items():
        option = "--" + key.replace("_", "-")
        if (request["request"], key) in (("import_trace", "trace"), ("sweep", "spec")):
            arguments.append(str(value))
        elif isinstance(value, list):
            for one in value:
                arguments += [option, str(one)]
        elif key != "request" and value is not False:
            arguments += [option] if value is True else [option, str(value)]
    done = subprocess.run([str(TOOLS / tool[0]), *arguments, "--json"], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Doors(unittest.TestCase):
    """Tests that the same request gives the same document from Python, C and the command line."""

    REQUESTS = (
        {"request": "plan", "input": "vgg19", "topology": "PS", "nnodes": 16},
        {"request": "plan", "input": "resnet50", "profile": "v100-100g", "nnodes": 4, "evaluations": 60, "topology": "BEST",
         "jobs": 1, "explain": True, "compare": "all", "output": "plan.yaml"},
        {"request": "plan", "input": "vgg19", "profile": "v100-100g", "nnodes": 4, "plan": "all", "explain": True,
         "bandwidth": "7Gbps"},
        {"request": "plan", "input": "vgg19", "nnodes": 4, "evaluations": 30, "profile": "v100-100g", "algorithm": "none",
         "robust": True, "jitter": "lognormal:0.1", "replicas": 5, "jobs": 1},
        {"request": "plan", "input": "resnet50", "profile": "v100-100g", "nnodes": 4, "evaluations": 60, "bandwidth": "5Gbps",
         "jobs": 1},
        {"request": "plan", "input": "bert_base", "profile": "a100-25g", "compute_time": "150ms", "nnodes": 8, "evaluations": 60,
         "topology": "RING", "jobs": 1},
        {"request": "plan", "job": "broadcast", "bytes": "16MB", "nnodes": 4, "evaluations": 10, "output": "b.yaml"},
        {"request": "simulate", "input": "vgg19", "plan": "all", "nnodes": 8, "sensitivity": True, "explain_interval": True},
        {"request": "simulate", "input": "resnet50", "plan": "ddp", "nnodes": 4, "profile": "v100-100g", "steady": True},
        {"request": "simulate", "input": "vgg19", "plan": "all", "nnodes": 2, "scale_kernels": True, "profile": "v100-100g",
         "jitter": "uniform:0.1", "replicas": 3, "seed": 5},
        {"request": "sweep", "spec": str(ROOT / "examples/break_even.yaml"), "shard": "1/20", "jobs": 1, "evaluations": 20},
        {"request": "import_trace", "trace": str(TRACES / "resnet50_ddp_2xa100.kineto.json.gz")},
    )

    def test_three_doors_answer_alike(self):
        for request in self.REQUESTS:
            with self.subTest(request=request), tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore", hipress.HipressWarning)
                arguments = {key: value for key, value in request.items() if key != "request"}
                before = os.getcwd()
                os.chdir(folder)
                try:
                    of_python = getattr(hipress, request["request"])(**arguments).to_dict()
                    c = of_c(request)
                finally:
                    os.chdir(before)
                # The tool always writes a plan. By default it writes text, which cannot hold all plans.
                tool = of_tool({**request, "output": request.get("output", "plan.yaml")} if request["request"] == "plan" and
                               "plan" not in request else request, folder)
                self.assertEqual(without_measured(c), without_measured(of_python))
                self.assertEqual(without_measured(tool), without_measured(of_python))

    def test_three_doors_put_a_sample_into_a_profile_alike(self):
        """This request measures nothing, so answers are equal."""
        with tempfile.TemporaryDirectory() as folder:
            sample = pathlib.Path(folder) / "sample"
            sample.write_bytes(bytes(1 << 16))
            asked = {"base": "a100-10g", "sample": str(sample), "output": f"{folder}/sampled.yaml"}
            answers = [hipress.profile(**asked).to_dict(), of_c({"request": "profile", **asked}),
                       of_tool({"request": "profile", **asked}, folder)]
            self.assertEqual(answers[0], answers[1])
            self.assertEqual(answers[0], answers[2])
            self.assertEqual(answers[0]["profile"], asked["output"])
            self.assertEqual(hipress.profile(base=asked["output"], sample=sample).codecs, answers[0]["codecs"])

    def test_three_doors_replay_alike(self):
        """Only times differ between the answers."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        model = pathlib.Path(folder.name) / "model.txt"
        model.write_text("a,5000\nb,70000\n")
        replayed = {"request": "replay", "input": str(model), "plan": "fp16", "nnodes": 2, "iterations": 2, "seed": 7,
                    "topology": "RING", "trace": f"{folder.name}/trace.json"}
        arguments = {key: value for key, value in replayed.items() if key != "request"}
        answers, trace = [], pathlib.Path(replayed["trace"])
        for ask in (lambda: hipress.replay(**arguments).to_dict(), lambda: of_c(replayed), lambda: of_tool(replayed, folder.name)):
            answers.append(ask())
            self.assertTrue(trace.is_file())
            trace.unlink()
        for answer in answers[1:]:
            self.assertEqual(answer.keys(), answers[0].keys())
            for key in ("ranks", "iterations", "verified", "bytes_sent_per_node", "compute_s"):
                self.assertEqual(answer[key], answers[0][key])
        # Each of N = 2 nodes sends 2 (N-1)/N of 75,000 values of 2 bytes.
        self.assertEqual(hipress.replay(model, plan="fp16", nnodes=2, iterations=1, topology="RING").bytes_sent_per_node,
                         [150000, 150000])

    def test_a_sweep_has_the_rows_of_its_csv(self):
        with tempfile.TemporaryDirectory() as folder:
            spec, output = pathlib.Path(folder) / "spec.yaml", pathlib.Path(folder) / "sweep.csv"
            spec.write_text(json.dumps(SPEC))
            swept = hipress.sweep(spec, jobs=1)
            subprocess.run([str(TOOLS / "hipress-sim"), "sweep", str(spec), "--output", str(output)], capture_output=True,
                           check=True)
            lines = [line for line in output.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(lines[0].split(","), swept.columns)
        self.assertEqual(len(lines) - 1, len(swept))
        for line, row in zip(lines[1:], swept.rows):
            for text, value in zip(line.split(","), row):
                self.assertEqual(text if isinstance(value, str) else float(text) if text else None, value)
        self.assertEqual(hipress.sweep(SPEC), swept)
        self.assertEqual(without_measured(of_c({"request": "sweep", "spec": SPEC})), swept.to_dict())


class Signatures(unittest.TestCase):
    def test_functions_are_what_the_schemas_say(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        import python_requests

        self.assertEqual(python_requests.OUTPUT.read_text(), python_requests.source(), "run scripts/python_requests.py")
        schemas = hipress.answer({"request": "schema"})
        self.assertEqual(set(schemas), set(python_requests.FUNCTIONS))
        for name, schema in schemas.items():
            arguments = set(inspect.signature(getattr(hipress, name)).parameters) - {"progress"}
            self.assertEqual(arguments, set(schema["properties"]) - {"request", *python_requests.ALWAYS.get(name, {})})

    def test_torch_is_not_needed(self):
        code = ("import sys; sys.modules['torch'] = None\nimport hipress\n"
                "print(hipress.simulate('vgg19', plan='none', nnodes=2).iteration_s > 0)")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.returncode), ("True\n", 0), done.stderr)


class Results(unittest.TestCase):
    def test_keys_are_attributes(self):
        result = hipress.simulate("vgg19", plan="all", nnodes=4)
        document = result.to_dict()
        self.assertEqual(result.iteration_s, document["iteration_s"])
        self.assertIn("critical_path", dir(result))
        document["iteration_s"] = 0  # a copy
        self.assertNotEqual(result.iteration_s, 0)
        with self.assertRaisesRegex(AttributeError, r"Simulation has no attribute 'iteration' \(known: model, nodes, "):
            _ = result.iteration

    def test_a_plan_saves_its_report(self):
        plan = hipress.plan("vgg19", profile="v100-100g", nnodes=4, evaluations=20)
        self.assertNotIn("page", plan.to_dict())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.html"
            plan.save_html(path)
            page = path.read_text(encoding="utf-8")
            self.assertEqual(os.listdir(folder), ["report.html"])
            with self.assertRaises(OSError):
                plan.save_html(pathlib.Path(folder) / "missing" / "report.html")
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        self.assertEqual(data["plan"], plan.to_dict())
        broadcast = hipress.plan(job="broadcast", bytes="1MB", nnodes=4, evaluations=5)
        with self.assertRaisesRegex(ValueError, "no report of broadcasts"):
            broadcast.save_html("report.html")

    def test_they_print_well(self):
        for result in (hipress.simulate("vgg19", plan="all", nnodes=4), hipress.plan("vgg19", nnodes=4), hipress.sweep(SPEC),
                       hipress.plan(job="broadcast", bytes="1MB", nnodes=4, evaluations=5),
                       hipress.replay("resnet50", plan="fp16", nnodes=2, iterations=1, profile="v100-100g"),
                       hipress.import_trace(TRACES / "resnet50_ddp_2xa100.kineto.json.gz")):
            with self.subTest(kind=type(result).__name__):
                text = repr(result)
                self.assertRegex(text, rf"^<{type(result).__name__}\n  \S")
                self.assertLess(text.count("\n"), 12)
                self.assertIn(f"<b>{type(result).__name__}</b>", result._repr_html_())
                self.assertTrue(result.records())

    def test_a_plan_is_written_where_a_path_says(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "plan.yaml"
            plan = hipress.plan("vgg19", profile="v100-100g", nnodes=4, evaluations=20, jobs=1, output=output)
            simulated = hipress.simulate("vgg19", plan=output, profile="v100-100g")
            # simulate() gives the time that the search predicted on the same machines.
            self.assertAlmostEqual(simulated.iteration_s, plan.predicted_iteration_s, delta=1e-9)
            hipress.plan("vgg19", profile="v100-100g", nnodes=4, evaluations=20, jobs=1, output=output)

    def test_a_sweep_gives_rows(self):
        swept = hipress.sweep(SPEC)
        # 2 plans, 2 numbers of nodes and 2 bandwidths.
        self.assertEqual(len(swept), 8)
        self.assertEqual(swept.varying(), ["nodes", "plan", "bandwidth_bytes_per_s"])
        self.assertEqual({row["plan"] for row in swept}, {"none", "all"})

    def test_times_that_no_simulation_comes_to_are_computed_anew(self):
        def line(said):
            """Returns a line of a journal with its checksum, 64-bit FNV-1a."""
            check = 0xcbf29ce484222325
            for byte in said.encode():
                check = (check ^ byte) * 0x100000001b3 % 2**64
            return f"{said} {check:016x}\n"

        with tempfile.TemporaryDirectory() as folder:
            honest = hipress.sweep(SPEC, cache=folder)
            journal, = pathlib.Path(folder).glob("*.journal")
            lines = journal.read_text().splitlines(keepends=True)
            words = [one.split() for one in lines]
            self.assertEqual(lines[0], line(" ".join(words[0][:-1])))
            for times in ("0 0 0", "1 0 2", "1 2 0"):  # iteration, forward, compute
                journal.write_text("".join(line(f"{key} 1 {times} {tasks} 0 0 0") for key, _, _, _, _, tasks, *_ in words))
                with self.assertWarnsRegex(hipress.HipressWarning, f"{len(lines)} lines in .* hold times that no simulation"):
                    again = hipress.sweep(SPEC, cache=folder)
                self.assertEqual(again.rows, honest.rows)
                self.assertEqual(again.known_points, 0)
                for other in pathlib.Path(folder).glob("*.journal"):
                    if other != journal:
                        other.unlink()

    def test_spreadsheets_run_no_text_of_a_sweep(self):
        texts = ["=HYPERLINK(\"x\")", "+1", "-a", "@b", "\tc", "\rd", "'=e", "''f", "g;=h", "i,j", "k\n"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.csv")
            _tables.save(path, ["name", "seconds"], [[text, -1.5] for text in texts], ["model a,=b;c, \"=d\""])
            with open(path, newline="") as file:
                head, written = file.readline(), file.readlines()
        self.assertEqual(head, "# model a\\x2c=b;c\\x2c \"=d\"\n")
        rows = list(csv.DictReader(written))
        self.assertEqual([row["name"] for row in rows],
                         ["'=HYPERLINK(\"x\")", "'+1", "'-a", "'@b", "'\tc", "'\rd", "''=e", "''f", "g;=h", "i,j", "k\n"])
        self.assertEqual([_tables.text_of(row["name"]) for row in rows], texts)
        self.assertEqual({row["seconds"] for row in rows}, {"-1.5"})
        # Some spreadsheets take semicolons for separators.
        self.assertIn('"g;=h",-1.5\n', written)

    def test_a_sweep_is_saved_whole_or_not_at_all(self):
        swept = hipress.sweep({"model": "vgg19", "plan": "none", "nodes": 2, "schedule": ["ddp", "local(steps=4)"]})
        self.assertEqual(swept.varying(), ["schedule"])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s.csv"
            swept.save(path)
            head, rows = [], []
            for line in path.read_text().splitlines():
                (head if line.startswith("#") else rows).append(line)
            self.assertEqual(head, [f"# {line}" for line in swept.provenance])
            saved = list(csv.DictReader(rows))
            self.assertEqual([float(row["iteration_s"]) for row in saved], [row["iteration_s"] for row in swept])
            with self.assertRaisesRegex(ValueError, "s.xls: ends in neither .csv nor .parquet"):
                swept.save(path.with_suffix(".xls"))
            parquet = path.with_suffix(".parquet")
            if importlib.util.find_spec("pyarrow") is None:
                with self.assertRaisesRegex(ImportError, "Parquet needs pyarrow"):
                    swept.save(parquet)
                self.assertEqual(list(parquet.parent.iterdir()), [path])
                return
            from pyarrow import parquet as reader

            swept.save(parquet)
            table = reader.read_table(parquet)
            self.assertEqual(table.column("iteration_s").to_pylist(), [row["iteration_s"] for row in swept])
            self.assertEqual(table.schema.metadata[b"hipress"].decode(), "\n".join(swept.provenance))

    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "needs pandas")
    def test_frames(self):
        self.assertEqual(len(hipress.sweep(SPEC).to_frame()), 8)
        self.assertIn("kind", hipress.simulate("vgg19", plan="all", nnodes=2).to_frame("critical_path").columns)

    @unittest.skipIf(importlib.util.find_spec("pandas") is not None, "pandas is there")
    def test_without_pandas_frames_say_what_they_need(self):
        with self.assertRaisesRegex(ImportError, r"to_frame\(\) needs pandas"):
            hipress.sweep(SPEC).to_frame()

    @unittest.skipIf(importlib.util.find_spec("matplotlib") is None, "needs matplotlib")
    def test_they_draw_themselves(self):
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        swept = hipress.sweep(SPEC)
        axes = swept.plot().axes[0]
        self.assertEqual(axes.get_xlabel(), "bandwidth_bytes_per_s")
        self.assertEqual(len(axes.lines), 4)  # 2 plans at 2 numbers of nodes
        with self.assertRaisesRegex(ValueError, "there is no column 'bandwith'"):
            swept.plot("bandwith")
        plan = hipress.plan("vgg19", nnodes=4)
        self.assertEqual(len(plan.plot().axes[0].patches), sum(row["iteration_s"] is not None for row in plan.records()))
        self.assertIs(hipress.simulate("vgg19", plan="all", nnodes=2).plot(axes), axes.figure)
        self.assertIs(plan.plot(pyplot.figure().subfigures(1, 2)[1].subplots()), pyplot.gcf())
        self.assertEqual(plan.plot().axes[0].get_title(loc="left"),
                         f"vgg19, {plan.topology}, 4 nodes, {plan.compressed} of {plan.gradients} gradients compressed")
        turns = hipress.plan("vgg19", profile="v100-100g", nnodes=4, evaluations=20, jobs=1, break_even="bandwidth")
        drawn = [swept.plot(), plan.plot(), turns.plot(kind="break_even"),
                 hipress.import_trace(TRACES / "resnet50_ddp_2xa100.kineto.json.gz").plot(),
                 hipress.plan(job="broadcast", bytes="1MB", nnodes=4, evaluations=5).plot()]
        with tempfile.TemporaryDirectory() as folder:
            for number, figure in enumerate(drawn):
                figure.savefig(f"{folder}/{number}.png")
            self.assertEqual(len(os.listdir(folder)), len(drawn))
        pyplot.close("all")


@unittest.skipIf(importlib.util.find_spec("matplotlib") is None, "needs matplotlib")
class Pictures(unittest.TestCase):
    """Tests of pictures of results. scripts/plot.py draws them, too; tests/scripts/pictures_test.py checks their contents."""

    def setUp(self):
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        self.addCleanup(pyplot.close, "all")

    def test_a_sweep_is_drawn_as_a_whole(self):
        swept = hipress.sweep({"model": "vgg19", "plan": ["ddp", "ddp_fp16", "all"], "nodes": [2, 4],
                               "bandwidth": ["1Gbps", "10Gbps"]})
        # Speed-ups have two panels and the scale, efficiency a panel per bandwidth, breakdowns a panel per point.
        for kind, panels in (("speedup", 3), ("efficiency", 2), ("breakdown", 4)):
            figure = swept.plot(kind=kind)
            self.assertEqual(len(figure.axes), panels, kind)
            self.assertIn("vgg19", figure._suptitle.get_text())
        texts = [text.get_text() for text in swept.plot(kind="speedup").axes[0].texts]
        over = {(row["nodes"], row["bandwidth_bytes_per_s"]): row["speedup_over_ddp"] for row in swept if row["plan"] == "all"}
        self.assertEqual(len(texts), len(over))
        self.assertIn(f"{over[2, 1.25e9]:.2f}", texts)

    def test_a_sweep_that_cannot_be_drawn_is_refused(self):
        swept = hipress.sweep(SPEC)
        for kind, said in (("speedup", "no plan `ddp` and no `ddp_fp16`.*axis `plan`"),
                           ("speed", "known: speedup, efficiency, breakdown")):
            with self.assertRaisesRegex(ValueError, said):
                swept.plot(kind=kind)
        with self.assertRaisesRegex(ValueError, "leave out x and ax"):
            swept.plot("nodes", kind="speedup")

    def test_a_simulation_is_drawn_beside_others(self):
        machines = {"nnodes": 4, "profile": "a100-25g"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hipress.HipressWarning)  # warns of all-reduces that are not measured
            found = {plan: hipress.simulate("vgg19", plan=plan, **machines) for plan in ("ddp", "ddp_fp16", "all")}
        mine = found.pop("all")
        axes = mine.plot(beside=found).axes[0]
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()], ["ddp", "ddp_fp16", "this plan"])
        longest = max(bar.get_x() + bar.get_width() for bar in axes.patches)
        self.assertAlmostEqual(longest, 1e3 * found["ddp"].iteration_s, places=6)
        with self.assertRaisesRegex(ValueError, "no plan `ddp_fp16`"):
            mine.plot(beside={"ddp": found["ddp"]})

    def test_required_bandwidths_are_drawn(self):
        found = hipress.plan("vgg19", nnodes=4, required_bandwidth=True, schedule=["ddp", "local(steps=20)"])
        self.assertEqual({line.get_label() for line in found.plot().axes[0].lines}, {"ddp", "local(steps=20)"})


class Ranks(unittest.TestCase):
    """Tests of replays by processes that a launcher started."""

    def test_every_rank_has_the_numbers_and_rank_0_the_prediction(self):
        code = ("import json, sys, hipress\n"
                "print(json.dumps(hipress.replay(sys.argv[1], plan='fp16', profile='v100-100g', iterations=2, topology='RING',\n"
                "                                rendezvous='file://' + sys.argv[2]).to_dict()))")
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.txt"
            model.write_text("a,5000\nb,70000\n")
            ranks = [subprocess.Popen([sys.executable, "-B", "-c", code, model, folder], text=True, stdout=subprocess.PIPE,
                                      env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)})
                     for rank in range(2)]
            first, second = (json.loads(rank.communicate(timeout=100)[0]) for rank in ranks)
        self.assertTrue(first["verified"] and second["verified"])
        for key in ("ranks", "each_measured_iteration_s", "bytes_sent_per_node"):
            self.assertEqual(first[key], second[key])
        self.assertIsNotNone(first["predicted_iteration_s"])
        self.assertIsNone(second["predicted_iteration_s"])

    def test_what_they_need_is_said(self):
        with unittest.mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}):
            for ask in (lambda: hipress.replay("vgg19", plan="all"), lambda: hipress.profile(quick=True)):
                with self.assertRaisesRegex(hipress.InputError, "rank 0 of 2 started by torchrun needs `rendezvous`"):
                    ask()


class Errors(unittest.TestCase):
    def test_a_wrong_request_is_an_input_error(self):
        with self.assertRaises(hipress.InputError) as caught:
            hipress.simulate("vgg19", plan="all", nnodes=0)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIsInstance(caught.exception, hipress.HipressError)
        self.assertEqual((caught.exception.kind, caught.exception.field), ("input", "nnodes"))
        self.assertEqual(str(caught.exception), "nnodes must be a whole number from 1 to 1048576, got the number 0")

    def test_it_has_file_and_line(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.yaml"
            model.write_text("name: m\nforward: 1.5\ngradients:\n  - {name: a, elements: 10}\n")
            with self.assertRaises(hipress.InputError) as caught:
                hipress.plan(model)
        self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.field), (str(model), 2, "input"))

    def test_an_unknown_member_has_a_remedy(self):
        with self.assertRaises(hipress.InputError) as caught:
            hipress.answer({"request": "plan", "nodes": 4})
        self.assertEqual((caught.exception.field, caught.exception.remedy), ("nodes", "did you mean 'nnodes'?"))

    def test_a_process_outlives_a_lack_of_memory(self):
        # A thread has 8 MiB of stack, and thread-local variables; without memory for these, glibc would end the process.
        statuses = set()
        for room in range(8, 44, 4):
            done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY, os.environ["HIPRESS_LIBRARY"], str(room)],
                                  capture_output=True, text=True, timeout=60)
            with self.subTest(room=room):
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(done.stdout, ("0\n", "1\n"))  # answered, or failed for lack of memory
            statuses.add(done.stdout)
        self.assertEqual(statuses, {"0\n", "1\n"})

    def test_what_is_no_value_is_refused(self):
        with self.assertRaisesRegex(TypeError, "^input: .* is no value of a request"):
            hipress.plan(object())

    def test_what_json_cannot_say_is_refused_by_name(self):
        with self.assertRaisesRegex(ValueError, "budget: nan is no value of a request"):
            hipress.plan("vgg19", budget=float("nan"))
        with self.assertRaisesRegex(ValueError, r"input: '\\udcff' is no text in UTF-8"):
            hipress.plan("\udcff")
        deep = {}
        for _ in range(100_000):
            deep = {"nodes": deep}
        for request in (lambda: hipress.sweep(deep), lambda: hipress.answer({"request": "sweep", "spec": deep})):
            with self.assertRaises(hipress.InputError) as caught:
                request()
            self.assertEqual(str(caught.exception), "spec: has lists and dictionaries in more than 64 levels")
            self.assertEqual((caught.exception.kind, caught.exception.field), ("input", "spec"))
        for levels in (62, 63):  # the request and the spec add two levels
            deep = []
            for _ in range(levels):
                deep = [deep]
            with self.assertRaisesRegex(hipress.InputError, "spec:1: plan|more than 64 levels"):
                hipress.sweep({"model": "vgg19", "plan": deep})

    def test_errors_quote_no_more_than_the_beginning_of_what_is_long(self):
        long = "x" * 2_000_000
        for request in (lambda: hipress.plan(long), lambda: hipress.plan("vgg19", profile=long),
                        lambda: hipress.plan("vgg19", plan=long),
                        lambda: hipress.plan("vgg19", algorithm=long), lambda: hipress.plan("vgg19", topology=long),
                        lambda: hipress.plan("vgg19", budget=long), lambda: hipress.plan("vgg19", output=long),
                        lambda: hipress.plan("vgg19", cluster=f"/{long}.yaml"), lambda: hipress.sweep(f"{long}.yaml"),
                        lambda: hipress.sweep({"model": long}), lambda: hipress.sweep({long: 1}),
                        lambda: hipress.import_trace(long), lambda: hipress.answer({"request": long}),
                        lambda: hipress.answer({"request": "plan", long: 1}), lambda: hipress.plan("vgg19", latency=long),
                        lambda: hipress.plan("vgg19", bandwidth=f"1{long}"), lambda: hipress.plan("vgg19", schedule=[long]),
                        lambda: hipress.plan("vgg19", network=long), lambda: hipress.plan(f"{long}\udcff")):
            with self.assertRaises(hipress.InputError) as caught:
                request()
            self.assertLess(len(str(caught.exception)), 2000)

    def test_a_text_with_a_byte_of_0_names_no_other_file(self):
        with self.assertRaises(hipress.InputError) as caught:
            hipress.plan("vgg19", output="plan.yaml\0.txt")
        self.assertEqual(caught.exception.field, "output")

    def test_a_trace_without_a_model_gives_what_it_tells(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.json"
            trace.write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 2}]}')
            with self.assertRaises(hipress.UnmetError) as caught:
                hipress.import_trace(trace)
        self.assertEqual(caught.exception.result["format"], "PyTorch profiler")

    def test_what_misleads_is_a_warning(self):
        with self.assertWarnsRegex(hipress.HipressWarning, "`budget` has no effect"):
            hipress.plan("vgg19", search="secopa", nnodes=4, budget=3)

    def test_a_warning_is_of_the_line_that_asked(self):
        misleading = {"input": "vgg19", "search": "secopa", "nnodes": 4, "budget": 3}
        calls = (lambda: hipress.plan(**misleading),
                 lambda: hipress.answer({"request": "plan", **misleading}))
        for call in calls:
            with self.subTest(line=call.__code__.co_firstlineno), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
                self.assertEqual([(one.filename, one.lineno) for one in caught], [(__file__, call.__code__.co_firstlineno)])

    def test_notes_go_to_the_log(self):
        with self.assertLogs("hipress", "INFO") as log:
            hipress.sweep(SPEC)
        self.assertRegex(log.output[0], "8 points")

    def test_all_errors_have_one_base(self):
        for name in ("Error", "InvalidRequest", "RankLost", "InputError", "UnmetError", "EnvironmentFailure", "Interrupted"):
            self.assertTrue(issubclass(getattr(hipress, name), hipress.HipressError), name)


class Threads(unittest.TestCase):
    #: Arguments of a search that would take minutes.
    LONG = {"profile": "v100-100g", "nnodes": 8, "topology": "BEST", "budget": 300.0, "jobs": 1}

    def test_other_threads_go_on(self):
        counted = [0]
        ended = threading.Event()

        def count():
            while not ended.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        try:
            hipress.plan("resnet50", **{**self.LONG, "budget": 0.5})
        finally:
            ended.set()
            thread.join()
        # If the search held the GIL, the count would not grow.
        self.assertGreater(counted[0], 20)

    def test_progress_is_told(self):
        told = []
        hipress.sweep(SPEC, progress=told.append)
        self.assertEqual((told[-1].stage, told[-1].share, told[-1].done), ("simulations", 1.0, told[-1].all))

    def test_an_error_of_the_progress_function_ends_the_request(self):
        def refuse(_):
            raise RuntimeError("enough")

        begin = time.monotonic()
        with self.assertRaisesRegex(RuntimeError, "enough"):
            hipress.plan("resnet50", progress=refuse, **self.LONG)
        self.assertLess(time.monotonic() - begin, 100)

    def test_keyboard_interrupt_ends_a_search(self):
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            hipress.plan("resnet50", **self.LONG)
        self.assertLess(time.monotonic() - begin, 100)

    def test_several_threads_ask_at_a_time(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(hipress.simulate("vgg19", plan="all", nnodes=4).iteration_s))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 4)
        self.assertEqual(len(set(found)), 1)


class Notebook(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("matplotlib") is None, "needs matplotlib")
    def test_the_notebook_runs(self):
        notebook = json.loads((ROOT / "examples/notebook/vgg19.ipynb").read_text())
        code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertNotRegex("\n".join(code), "subprocess|os.system|^!")
        program = "\n".join(["import matplotlib; matplotlib.use('Agg')", *code])
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", "-W", "error::SyntaxWarning", "-c", program], cwd=folder,
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Data(unittest.TestCase):
    def test_models_are_found_beside_an_installed_library(self):
        with tempfile.TemporaryDirectory() as folder:
            models, library = pathlib.Path(folder) / "share/hipress/models", pathlib.Path(folder) / "lib/machine/libhipress.so"
            models.mkdir(parents=True)
            library.parent.mkdir(parents=True)
            (models / "tiny.yaml").write_text("name: tiny\nforward: 1ms\ngradients:\n  - {name: a, elements: 1000, ready: 1ms}\n")
            shutil.copy(hipress.library_path(), library)
            code = "import hipress; print(hipress.simulate('tiny', plan='none', nnodes=2).compute_s)"
            done = subprocess.run([sys.executable, "-B", "-c", code],
                                  env={**os.environ, "HIPRESS_LIBRARY": str(library)}, capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "0.002\n", done.stderr)  # forward, and backward until the gradient is ready


class Structures(unittest.TestCase):
    def test_the_options_have_the_size_that_the_library_expects(self):
        options = _library.CCallOptions()
        _library.library().hipress_call_options_init(ctypes.byref(options))
        self.assertEqual(options.bytes, ctypes.sizeof(options))


if __name__ == "__main__":
    unittest.main()
