"""Tests of the kinds of pictures that `python -m hipress.plot` and `.plot()` of the Python package draw, on data that the tests make up,
and of docs/pictures.md as printed: pictures_test.py [-v] BIN, the folder of the tools."""

import contextlib
import csv
import io
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(ROOT / "python"))
from hipress import (_break_even_picture, _learning_pictures, _message_pictures, _pictures, _pilot_file, _style,  # noqa: E402
                     _sweep_pictures, _sweep_rows, _time_pictures, _timeline_picture, plot)  # (found through the path above)
from hipress._style import PictureError  # noqa: E402

try:
    import matplotlib
    import matplotlib.pyplot
except ImportError:
    matplotlib = None
else:
    matplotlib.use("Agg")

AXES = {"model": "vgg19", "topology": "ring", "nodes": "2", "plan": "all", "algorithm": "onebit", "partitions": "plan",
        "profile": "a100-25g", "cluster": "", "network": "fair", "bandwidth_bytes_per_s": "125000000", "latency_s": "2e-05",
        "overhead_s": "2e-05", "compute_speed": "1"}
GBIT = 125_000_000
PLANS = ("ddp", "ddp_fp16", "all")


def row(plan: str, gbit: float, nodes: int, iteration_s: float, **others: str) -> dict:
    """Row of a sweep whose computation takes a second."""
    return {**AXES, "plan": plan, "bandwidth_bytes_per_s": str(int(gbit * GBIT)), "nodes": str(nodes),
            "iteration_s": repr(iteration_s), "synchronisation_s": "1", "compute_s": "1",
            "exposed_communication_s": repr(iteration_s - 1), "speedup": "1", "tasks": "3", "iteration_s_p10": "",
            "iteration_s_p90": "", **others}


def sweep(bandwidths=(1, 4), nodes=(2, 4), spread: float = 0) -> list[dict]:
    """Rows of a sweep. At the first bandwidth, `all` is twice as fast as ddp and as fast as ddp_fp16; at the others, it is half as
    fast as ddp. With a `spread`, its interval reaches from time / (1 + spread) to time · (1 + spread)."""
    rows = []
    for plan in PLANS:
        for count in nodes:
            for bandwidth in bandwidths:
                time = {"ddp": 4.0, "ddp_fp16": 2.0, "all": 2.0 if bandwidth == bandwidths[0] else 8.0}[plan]
                ends = (time / (1 + spread), time * (1 + spread)) if spread and plan == "all" else (time, time)
                told = {"iteration_s_p10": repr(ends[0]), "iteration_s_p90": repr(ends[1])} if spread else {}
                rows.append(row(plan, bandwidth, count, time, **told))
    return rows


def vertices(axes) -> list:
    """All points of contour lines and filled contours on the axes."""
    return [(round(float(x), 6), round(float(y), 6)) for collection in axes.collections for path in collection.get_paths()
            for x, y in path.vertices]


@unittest.skipIf(matplotlib is None, "matplotlib is not installed")
class PicturesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(matplotlib.pyplot.close, "all")

    def write_csv(self, rows: list[dict], name: str = "sweep.csv") -> str:
        with open(self.folder / name, "w", newline="", encoding="utf-8") as stream:
            stream.write("# made up\n" if name == "sweep.csv" else "")
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return str(self.folder / name)

    def write_json(self, document: object, name: str) -> str:
        (self.folder / name).write_text(json.dumps(document))
        return str(self.folder / name)

    def draw(self, *arguments: str) -> tuple[int, str, str]:
        """Runs plot.py. Returns the exit status, standard output and standard error."""
        said, failed = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", ["plot.py", *arguments]), contextlib.redirect_stdout(said), \
                contextlib.redirect_stderr(failed):
            try:
                status = plot.main()
            except SystemExit as end:
                status = end.code
        return status, said.getvalue(), failed.getvalue()

    def drawn(self, kind: str, *arguments: str) -> list[str]:
        """Draws a picture as SVG. Returns its texts."""
        status, _, failed = self.draw(kind, *arguments, "--output", str(self.folder / "p.svg"))
        self.assertEqual((status, failed), (0, ""))
        return self.texts()

    def texts(self) -> list[str]:
        """Texts of the last picture."""
        return re.findall(r"<text [^>]*>([^<]*)</text>", (self.folder / "p.svg").read_text())

    def refused(self, *arguments: str) -> str:
        """Makes a wrong request. Returns the complaint."""
        status, _, failed = self.draw(*arguments, "--output", str(self.folder / "none.svg"))
        self.assertEqual(status, 2, failed)
        self.assertFalse((self.folder / "none.svg").exists())
        return failed

    def test_a_map_says_what_was_planned_and_has_all_numbers(self):
        texts = self.drawn("speedup", self.write_csv(sweep()))
        for text in ("Speed-up: vgg19, plan all, ring, onebit, profile a100-25g", "over PyTorch DDP",
                     "over PyTorch DDP with fp16: pays nowhere", "bandwidth, Gbit/s", "nodes", "break-even: faster by 0.5 %",
                     "slower"):
            self.assertIn(text, texts)
        # At both numbers of nodes, the speed-ups over ddp are 4 s / 2 s and 4 s / 8 s, and those over ddp_fp16 2 s / 2 s and 2 s /
        # 8 s.
        for number, count in (("2.00", 2), ("0.50", 2), ("1.00", 2), ("0.25", 2)):
            self.assertEqual(texts.count(number), count, number)
        self.assertNotIn("where the break-even lies in 8 cases of 10", texts)  # without intervals

    def test_the_break_even_is_where_the_speed_up_is_one(self):
        picture = _sweep_pictures.speedup(sweep())
        # log2 of the speed-up falls from 1 to -1 between the middles of two cells, at 0 and 1. It is log2(1.005) at (1 - 0.0072) /
        # 2.
        found = {x for x, _ in vertices(picture.axes)}
        self.assertEqual(found, {round((1 - math.log2(1.005)) / 2, 6)})

    def test_the_band_is_where_an_interval_holds_it(self):
        picture = _sweep_pictures.speedup(sweep(spread=0.25))
        # The speed-up may be off by a factor of 1.25, so its logarithm crosses that of 1.005 log2(1.25) / 2 later or earlier.
        middle, off = (1 - math.log2(1.005)) / 2, math.log2(1.25) / 2
        found = [x for x, _ in vertices(picture.axes)]
        self.assertAlmostEqual(min(found), middle - off, places=5)
        self.assertAlmostEqual(max(found), middle + off, places=5)
        self.assertTrue(any(abs(x - middle) < 1e-5 for x in found))

    def test_colours_are_centred_at_one_and_both_sides_are_used(self):
        maps = _sweep_pictures.maps_of(sweep(), ("ddp", "ddp_fp16"))
        scale = _sweep_pictures.two_sided(maps)
        # The speed-ups are 2, 0.5, 1 and 0.25.
        self.assertEqual([float(scale(math.log2(value))) for value in (0.25, 1, 2)], [0, 0.5, 1])
        # If nothing is slower, the slower side of the scale reaches 1/1.1, so that rounding errors do not look like a loss.
        scale = _sweep_pictures.two_sided({"": {(1.0, 2): _sweep_rows.Value(2, 2, 2)}})
        self.assertAlmostEqual(2 ** scale.vmin, 1 / 1.1)
        ticks = _sweep_pictures.scale_ticks(scale)
        self.assertTrue(0.0 in ticks and min(ticks) < 0 < max(ticks))

    def test_all_cells_on_one_side_are_said_in_words(self):
        rows = [row(plan, gbit, count, time) for plan, time in zip(PLANS, (4.0, 3.0, 2.0)) for gbit in (1, 2) for count in (2, 4)]
        texts = self.drawn("speedup", self.write_csv(rows))
        self.assertIn("over PyTorch DDP: pays everywhere", texts)
        self.assertNotIn("break-even: faster by 0.5 %", texts)

    def test_cells_without_a_row_stay_empty(self):
        rows = [one for one in sweep((1, 2, 4)) if (one["plan"], one["nodes"], one["bandwidth_bytes_per_s"]) !=
                ("all", "4", str(4 * GBIT))]
        picture = _sweep_pictures.speedup(rows)
        self.assertEqual(len(picture.axes.texts), 5)

    def test_a_row_and_a_column_and_a_point_are_lines(self):
        for bandwidths, nodes, axis, said in (((1, 4), (2,), "bandwidth, Gbit/s", "pays at 1, no longer at 4 Gbit/s"),
                                              ((1,), (2, 4), "nodes", "pays everywhere"),
                                              ((1,), (2,), "bandwidth, Gbit/s", "pays")):
            with self.subTest(axis=axis, nodes=nodes):
                path = self.write_csv(sweep(bandwidths, nodes))
                texts = self.drawn("speedup", path)
                for text in (axis, "speed-up over PyTorch DDP"):
                    self.assertIn(text, texts)
                self.assertTrue(any(text.startswith(f"all: {said}") for text in texts), texts)
                self.assertIn("ddp_fp16: pays everywhere", texts)

    def test_the_efficiency_is_one_nodes_time_over_the_iteration(self):
        picture = _sweep_pictures.efficiency(sweep((1,), (2, 4, 8)))
        lines = {line.get_label(): list(line.get_ydata()) for line in picture.axes.lines}
        # One node alone takes 1 s, its computation; the iterations take 4, 2 and 2 s.
        self.assertEqual(lines, {"ideal": [100, 100], "ddp": [25] * 3, "ddp_fp16": [50] * 3, "all": [50] * 3})
        one = [row(plan, 1, 1, 0.8) for plan in PLANS]
        picture = _sweep_pictures.efficiency([*one, *sweep((1,), (2,))])
        lines = {line.get_label(): list(line.get_ydata()) for line in picture.axes.lines}
        self.assertEqual(lines["ddp"], [100, 20])  # with a row of one node: 0.8 s / 4 s

    def test_many_bandwidths_of_efficiency_are_three_and_that_is_said(self):
        path = self.write_csv(sweep((1, 2, 4, 8, 16)))
        status, said, _ = self.draw("efficiency", path, "--output", str(self.folder / "p.svg"))
        self.assertEqual((status, said), (0, "drawn: 3 of 5 bandwidths; bandwidth_bytes_per_s=250000000 chooses another\n"))
        texts = self.texts()
        for gbit in (1, 4, 16):
            self.assertIn(f"{gbit} Gbit/s", texts)
        self.assertIn("Scaling: vgg19, plan all, ring, onebit, profile a100-25g", texts)

    def test_pictures_that_compare_need_both_baselines(self):
        for kind in ("speedup", "efficiency", "breakdown"):
            for lacking in ("ddp", "ddp_fp16"):
                path = self.write_csv([one for one in sweep() if one["plan"] != lacking])
                self.assertIn(f"there is no plan `{lacking}` to compare with: add `{lacking}` to axis `plan`",
                              self.refused(kind, path))
        path = self.write_csv([one for one in sweep() if one["plan"] != "all"])
        self.assertIn("add `best` to axis `plan`", self.refused("speedup", path))

    def test_a_sweep_whose_baselines_are_not_at_every_point_is_refused(self):
        rows = [one for one in sweep() if (one["plan"], one["nodes"]) != ("ddp_fp16", "4")]
        self.assertIn("`ddp_fp16` is not at every point of the others", self.refused("speedup", self.write_csv(rows)))

    def test_lines_go_over_any_number_that_varies(self):
        rows = [{**one, "oversubscription": factor} for factor in ("1", "4", "") for one in sweep((1,), (2,))]
        lines = _sweep_pictures.lines_of(rows, _sweep_rows.axis_of_lines(rows), "ddp")
        self.assertEqual({label: [x for x, _ in points] for label, points in lines["vgg19, ring"].items()},
                         {"ddp_fp16": [1, 4], "all": [1, 4]})  # rows with the cluster's own value are left out

    def simulation(self, iteration_s: float, **slowdown: float) -> dict:
        return {"iteration_s": iteration_s, "iteration_s_p10": iteration_s - 0.25, "iteration_s_p90": iteration_s + 0.5,
                "compute_s": 2.0, "exposed_communication_s": iteration_s - 2, "machines": "profile h100-100g, 8 nodes",
                "slowdown": {"node": 0, **slowdown}}

    def test_a_breakdown_stacks_to_the_iteration(self):
        documents = {"best": self.simulation(2.5, by_codecs_s=0.5, by_transfers_s=0.25), "ddp": self.simulation(4),
                     "ddp_fp16": self.simulation(3)}
        picture = _time_pictures.breakdown(documents)
        self.assertEqual([label.get_text() for label in picture.axes.get_yticklabels()], ["ddp", "ddp_fp16", "best"])
        widths = [(round(bar.get_y() + bar.get_height() / 2), bar.get_x(), bar.get_width()) for bar in picture.axes.patches]
        # In ms: of 2 s of computation, codecs add 0.5 s and transfers 0.25 s. Exposed communication comes after it.
        self.assertEqual(widths, [(0, 0, 2000), (0, 2000, 2000), (1, 0, 2000), (1, 2000, 1000), (2, 0, 1250), (2, 1250, 500),
                                  (2, 1750, 250), (2, 2000, 500)])
        labels = [text.get_text() for text in picture.figure.legends[0].get_texts()]
        self.assertEqual(labels, ["computation", "slowed by codecs", "slowed by transfers", "exposed communication"])
        hatches = [part.hatch for part in _time_pictures.PARTS.values()]
        self.assertEqual(len(set(hatches)), len(hatches))

    def test_a_breakdown_is_drawn_of_files_by_name_and_of_a_sweep(self):
        for name, seconds in (("ddp", 4), ("b", 3), ("mine", 2.5)):
            self.write_json(self.simulation(seconds), f"{name}.json")
        self.write_json({**self.simulation(2.5), "model": "vgg19", "topology": "ring"}, "told.json")
        files = [str(self.folder / "ddp.json"), f"ddp_fp16={self.folder}/b.json", f"best, ring={self.folder}/mine.json"]
        texts = self.drawn("breakdown", *files)
        for text in ("Iteration: profile h100-100g, 8 nodes", "ddp_fp16", "best, ring", "2500 ms", "4000 ms",
                     "iteration, ms; lines: 10–90 % interval"):
            self.assertIn(text, texts)
        texts = self.drawn("breakdown", *files[:2], str(self.folder / "told.json"))
        self.assertIn("Iteration: vgg19, ring, profile h100-100g, 8 nodes", texts)
        self.assertIn("simulate `ddp_fp16` on the same machines", self.refused("breakdown", files[0], files[2]))
        self.assertIn("two files are called 'ddp'", self.refused("breakdown", files[0], files[0]))
        texts = self.drawn("breakdown", self.write_csv(sweep()), "nodes=2", "--title", "one of two")
        for text in ("one of two", "1 Gbit/s", "4 Gbit/s", "8000 ms"):
            self.assertIn(text, texts)

    def test_times_of_a_plan_stand_beside_the_baselines(self):
        document = {"topology": "ring", "compressed": 3, "gradients": 38, "predicted_iteration_s": 2,
                    "predicted_iteration_s_p10": 1, "predicted_iteration_s_p90": 3, "baselines": {"ddp": 4, "ddp_fp16": 3, "all": None}}
        for end in ("p10", "p90"):
            document[f"baselines_{end}"] = document["baselines"]
        texts = self.drawn("times", self.write_json(document, "plan.json"))
        for text in ("plan: ring, 3 of 38 gradients compressed", "this plan", "ddp_fp16", "ddp"):
            self.assertIn(text, texts)
        self.assertNotIn("all", texts)
        del document["baselines"]["ddp_fp16"]
        self.assertIn("no plan `ddp_fp16`", self.refused("times", self.write_json(document, "plan.json")))

    def test_a_break_even_has_its_turn_its_doubt_and_the_cluster(self):
        curve = [{"value": value, "speedup": speedup, "speedup_p10": speedup / 1.5, "speedup_p90": speedup * 1.5}
                 for value, speedup in ((0.125e9, 8), (1.25e9, 3), (12.5e9, 1))]
        document = {"model": "vgg19", "topology": "ring", "nodes": 4, "break_even": {
            "quantity": "bandwidth", "unit": "B/s", "given": 1.25e9, "curve": curve, "sentences": ["compress below 60 Gbit/s"],
            "turns": [{"value": 7.5e9, "compress": "below", "sure_below": 5e9, "sure_above": None}]}}
        texts = self.drawn("break_even", self.write_json(document, "turns.json"))
        for text in ("Break-even, vgg19, ring, 4 nodes", "bandwidth, Gbit/s", "this cluster, 10 Gbit/s", "verdict turns", "verdict not sure",
                     "100", "3", "5"):
            self.assertIn(text, texts)
        document["break_even"]["turns"].insert(0, {"value": 0.25e9, "compress": "above", "sure_below": None, "sure_above": None})
        twice = _break_even_picture.break_even(document)
        # The unsure range of a turn ends at the neighbouring turn or at the end of the curve. The turns are 2 and 60 Gbit/s, the
        # ends 1 and 100; the second turn is sure below 40.
        spans = [(patch.get_xy()[0][0], patch.get_xy()[2][0]) for patch in twice.axes.patches]
        self.assertEqual(spans, [(1.0, 60.0), (40.0, 100.0)])
        del document["break_even"]["turns"][0]
        document["break_even"].update(unit="nodes", quantity="nodes", turns=[], given=4)
        for point, nodes in zip(curve, (4, 16, 64)):
            point["value"] = nodes
        texts = self.drawn("break_even", self.write_json(document, "turns.json"))
        self.assertIn("Break-even, vgg19, ring", texts)
        self.assertEqual([text for text in texts if text in ("4", "16", "64")], ["4", "16", "64"])
        self.assertNotIn("verdict turns", texts)
        self.assertIn("no break-even in this range", texts)

    def test_required_bandwidths_of_one_name_come_into_one_panel(self):
        def document(algorithm: str, schedule: str) -> dict:
            return {"required_bandwidth": [{"schedule": schedule, "algorithm": algorithm, "topology": "ring", "utilization": share,
                                            "bits_per_s": bits, "bits_per_s_p10": bits, "bits_per_s_p90": bits}
                                           for share, bits in ((0.5, 1e9), (0.9, 4e9), (0.99, None))]}

        raw = self.write_json(document("none", "ddp"), "raw.json")
        half = self.write_json(document("fp16", "ddp"), "half.json")
        output = str(self.folder / "p.svg")
        status, said, _ = self.draw("required", f"vgg19={raw}", f"vgg19={half}", "--output", output)
        self.assertEqual((status, said), (0, "vgg19: ddp: no bandwidth reaches 99 %\nvgg19: ddp_fp16: no bandwidth reaches 99 %\n"))
        texts = self.texts()
        for text in ("Required bandwidth: ring", "vgg19", "ddp", "ddp_fp16", "bandwidth of the links, Gbit/s"):
            self.assertEqual(texts.count(text), 1, text)
        _, said, _ = self.draw("required", raw, half, "--output", output)
        self.assertIn("raw: ddp_fp16 is not drawn: ask for schedule ddp with algorithm fp16", said)

    def cases(self) -> list[dict]:
        common = {"model": "models/vgg19.yaml", "nnodes": 4, "network": "1 Gbit/s", "predicted_s_p10": 0.5, "predicted_s_p90": 2.0}
        return [{**common, "topology": "ring", "plan": "none", "predicted_s": 1.0, "measured_s": 1.1},
                {**common, "topology": "ps", "plan": "none", "predicted_s": 1.0, "measured_s": 3.0}]

    def test_predictions_are_drawn_over_measurements(self):
        path = self.write_json({"model": "models/vgg19.yaml", "nnodes": 4, "cases": self.cases()}, "results.json")
        status, said, failed = self.draw("measured", path, "--output", str(self.folder / "p.svg"))
        self.assertEqual((status, said, failed), (0, "1 of 2 measured times lie in their predicted 10–90 % intervals\n", ""))
        texts = self.texts()
        for text in ("Predicted and measured; vgg19; 4 nodes; 1 Gbit/s", "prediction = measurement", "within 10 %",
                     "hollow: outside its interval", "ring", "ps", "measured, ms"):
            self.assertIn(text, texts)
        self.assertEqual(texts.count("none"), 1)
        rows = [{**case, "exposed_predicted_s": 0.5, "exposed_measured_s": exposed} for case, exposed in zip(self.cases(), (0.4, 0))]
        of_csv = self.drawn("measured", self.write_csv(rows, "cases.csv"))
        for text in ("hollow: outside its interval", "exposed communication"):
            self.assertIn(text, of_csv)

    def test_an_interval_that_is_too_uncertain_holds_nothing(self):
        inside, outside = self.cases()
        path = self.write_json({"cases": [{**inside, "too_uncertain": True}, {**outside, "too_uncertain": False}]}, "results.json")
        _, said, _ = self.draw("measured", path, "--output", str(self.folder / "p.svg"))
        self.assertEqual(said, "0 of 2 measured times lie in their predicted 10–90 % intervals; 1 of them too "
                         "uncertain to tell\n")
        self.assertIn("hollow: outside its interval, or too uncertain", self.texts())

    def test_a_report_of_hipress_exec_is_a_case(self):
        report = {"predicted_iteration_s": 1.0, "predicted_iteration_s_p10": 0.9, "predicted_iteration_s_p90": 1.2,
                  "measured_iteration_s": {"median": 1.1, "p10": 1.0, "p90": 1.3}}
        found = _time_pictures.compared(report)
        self.assertEqual((found.measured, found.predicted, found.within),
                         (_sweep_rows.Value(1.1, 1.0, 1.3), _sweep_rows.Value(1.0, 0.9, 1.2), True))
        self.assertIn("a case has no times", self.refused("measured", self.write_json({"cases": [{"plan": "all"}]}, "r.json")))

    def test_lines_differ_without_colours(self):
        names = [*_style.BASELINES, *(f"plan {number}" for number in range(15))]
        looks = {(str(look["marker"]), str(look["linestyle"])) for look in _style.styles(names).values()}
        self.assertEqual(len(looks), len(names))

    def write_pilot(self) -> str:
        path = self.folder / "pilot.yaml"
        losses = [4 - 0.1 * step for step in range(20)]
        rows = [{"plan": plan, "seed": seed, "diverged": False, "loss": [one + seed + more for one in losses], "held_out": []}
                for plan, more in (("none", 0.0), ("onebit", 1.0)) for seed in (1, 3)]
        errors = [{"plan": plan, "gradient": name, "step": step, "error": error, "error_with_residual": 2.0, "norm": 1.0}
                  for plan, error in (("fp16", 0.001), ("onebit", 0.5)) for name in ("head.weight", "head.bias") for step in (1, 9)]
        _pilot_file.write(path, {"schema": 1, "script": "train.py", "digest": "", "ranks": 4, "steps": 20, "seeds": 2, "repeat": None,
                                 "plans": rows, "ratios": [{"plan": "onebit", "ratio": "never", "runs": 2}], "errors": errors})
        return str(path)

    def test_published_collectives_are_drawn_beside_their_predictions(self):
        rows = [{"table": table, "machine": "dgx-1", "collective": kind, "hosts": 1, "gpus": 8, "asked_algorithm": "default",
                 "bytes": size, "measured_s": 1e-4 * size, "predicted_s": 2e-4 * size}
                for table in ("one", "two") for kind in ("all_reduce", "all_gather") for size in (1, 4, 2)]
        axes = _pictures.KINDS["collectives"].of_documents({"rows": {"rows": rows}}, "").axes
        self.assertEqual(len(axes.lines), 4)
        self.assertEqual(list(axes.lines[0].get_xdata()), [1, 2, 4])
        self.assertEqual(list(axes.lines[1].get_ydata()), [1e-4, 2e-4, 4e-4])
        with self.assertRaisesRegex(PictureError, "reproduce_gpu.py"):
            _pictures.KINDS["collectives"].of_documents({"rows": {"rows": [{"table": "one"}]}}, "")

    def test_a_pilot_has_losses_and_errors(self):
        path = self.write_pilot()
        status, said, _ = self.draw("losses", path, "--output", str(self.folder / "p.svg"))
        self.assertEqual((status, said), (0, "onebit: never reaches the loss of none within the pilot\n"))
        for text in ("Loss: train.py, 4 ranks", "ddp", "onebit", "step", "training loss, smoothed"):
            self.assertIn(text, (self.folder / "p.svg").read_text())
        found = _learning_pictures.losses(_pilot_file.read(path)).axes
        # Seeds 1 and 3 are 1 and 3 above a common line. Their mean is 2 above it, and the band reaches from 1 to 3.
        self.assertAlmostEqual(found.get_lines()[0].get_ydata()[0], 6.0)
        self.assertAlmostEqual(found.get_lines()[1].get_ydata()[0], 7.0)
        self.assertEqual({(1.0, 5.0), (1.0, 7.0)} - {(round(x, 6), round(y, 6)) for x, y in found.collections[0].get_paths()[0].vertices},
                         set())
        image = _learning_pictures.errors(_pilot_file.read(path)).axes.images[0]
        self.assertEqual(image.get_array().tolist(), [[0.001, 0.5], [0.001, 0.5]])
        for text in ("head.weight", "fp16", "Errors: train.py, 4 ranks"):
            self.assertIn(text, self.drawn("errors", path))
        (self.folder / "plan.yaml").write_text("model: x\n")
        self.assertIn("plan.yaml:1: is no file of a pilot", self.refused("losses", str(self.folder / "plan.yaml")))
        self.assertIn("has no plans", self.refused("losses", str(self.folder / "no.yaml")))

    def write_answer(self, name: str, **changed) -> str:
        paces = [{"plan": plan, "to_loss_s": 20 * s, "to_loss_s_p10": 18 * s, "to_loss_s_p90": 24 * s}
                 for plan, s in (("this plan", 0.5), ("ddp", 2.0), ("best", 3.0))]
        learning = {"paces": paces, "loss": [{"step": step, "loss": 4.0 - step / 10} for step in (1, 10, 20)], **changed}
        return self.write_json({"model": "x", "learning": learning}, name)

    def test_losses_over_predicted_seconds(self):
        path = self.write_answer("ours.json")
        status, said, _ = self.draw("losses", path, "--output", str(self.folder / "p.svg"))
        self.assertEqual((status, said), (0, "ddp: the loss that DDP has after 20 steps in 40 s (36 to 48)\n"
                                             "ours: the loss that DDP has after 20 steps in 10 s (9 to 12)\n"))
        for text in ("Loss over time: ours", "predicted seconds", "ddp"):
            self.assertIn(text, (self.folder / "p.svg").read_text())
        document = json.loads(pathlib.Path(path).read_text())
        axes = _learning_pictures.losses_in_time({"ours": document, "again": document}).axes
        self.assertEqual([list(line.get_xdata()) for line in axes.get_lines()], [[2.0, 20.0, 40.0], *[[0.5, 5.0, 10.0]] * 2])
        self.assertEqual([list(line.get_ydata()) for line in axes.get_lines()], [[3.9, 3.0, 2.0]] * 3)
        ends = {(round(x, 6), round(y, 6)) for x, y in axes.collections[0].get_paths()[0].vertices}
        self.assertEqual({(36.0, 2.0), (48.0, 2.0)} - ends, set())
        self.assertIn("old has no losses", self.refused("losses", f"old={self.write_answer('old.json', loss=[])}"))

    def test_losses_of_logs_are_means_of_the_last_20_steps(self):
        self.assertEqual(_learning_pictures.means(list(range(30)))[:2], [0, 0.5])
        self.assertEqual(_learning_pictures.means(list(range(30)))[-1], 19.5)  # the mean of 10 to 29
        logs = {name: [dict(zip(("average", "step", "seconds", "loss"), row)) for row in ((name, "0", "0.5", "3"), (name, "1", end, "1"))]
                for name, end in (("ddp", "9"), ("plan", "2"))}
        by_step, by_second = _learning_pictures.logs(logs).figure.axes
        for axes, ends in ((by_step, ([0, 1], [0, 1])), (by_second, ([0.5, 9], [0.5, 2]))):
            self.assertEqual([(line.get_label(), list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines],
                             [("ddp", ends[0], [3, 2]), ("plan", ends[1], [3, 2])])
        files = [self.write_csv(rows, f"{name}.csv") for name, rows in logs.items()]
        self.assertIn("training loss, mean of 20 steps", self.drawn("losses", *files))
        self.assertRegex(self.refused("losses", self.write_csv([{**logs["ddp"][0], "step": "one"}], "wrong.csv")),
                         r"wrong\.csv:2: step must be a number, got 'one'")
        self.assertIn("has no rows with seconds: losses is drawn of", self.refused("losses", self.write_csv(
            [{"average": "ddp", "step": "1", "loss": "3"}], "wrong.csv")))

    def test_trainings_have_a_line_with_and_without_error_feedback(self):
        rows = [{"problem": problem, "algorithm": "onebit", "feedback": kind, "step": str(step), "value": str(1 / step)}
                for problem in ("quadratic", "classifier") for kind in ("with", "without") for step in (1, 2)]
        lines = _learning_pictures.feedback(rows).axes.lines
        self.assertEqual([(line.get_label(), list(line.get_ydata())) for line in lines],
                         [("onebit", [1, 0.5]), ("onebit without error feedback", [1, 0.5])])
        self.assertIn("a quadratic: distance from the optimum", self.drawn("training", self.write_csv(rows, "curves.csv")))
        self.assertIn("there is no problem 'chess'", self.refused("training", self.write_csv([{**rows[0], "problem": "chess"}], "wrong.csv")))

    def test_timelines_have_a_lane_for_each_resource(self):
        names = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"{title} node 0"}}
                 for pid, title in ((1, "predicted"), (2, "measured"))]
        lanes = ("egress", "egress 2", "codec", "local", "gather", "reduce")
        names += [{"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": lane}}
                  for pid in (1, 2) for tid, lane in enumerate(lanes)]

        def task(pid: int, lane: str, kind: str, start_s: float, duration_s: float) -> dict:
            return {"ph": "X", "cat": kind, "name": f"{kind} g", "pid": pid, "tid": lanes.index(lane), "ts": start_s * 1e6, "dur": duration_s * 1e6}

        sends = [task(1, "egress", "Send", 0, 2), task(1, "egress 2", "Send", 1, 0.5), task(2, "codec", "Encode", 0, 0.25)]
        found = _timeline_picture.timelines_of({"traceEvents": names + sends})
        self.assertEqual({title: dict(slices) for title, slices in found.items()}, {
            "predicted": {(0, "egress"): [("Send", 0.0, 2.0), ("Send", 1.0, 0.5)]}, "measured": {(0, "codec"): [("Encode", 0.0, 0.25)]}})
        self.assertEqual(_timeline_picture.resources_of(found), ["compute", "codec", "egress"])
        local = _timeline_picture.timelines_of({"traceEvents": [*names, *sends, task(1, "local", "LocalReduce", 0, 1)]})
        self.assertEqual(_timeline_picture.resources_of(local), ["compute", "codec", "egress", "local"])
        shards = [task(1, "gather", "AllGather", 0, 1), task(1, "reduce", "ReduceScatter", 0, 1)]
        sharded = _timeline_picture.timelines_of({"traceEvents": names + shards})
        self.assertEqual(_timeline_picture.resources_of(sharded), ["compute", "codec", "gather", "reduce"])
        about = {"model": "vgg19", "plan": "plan all, ring, N = 4"}
        texts = self.drawn("timeline", self.write_json({"traceEvents": names + sends, "otherData": about}, "trace.json"))
        for text in ("vgg19: plan all, ring, N = 4", "predicted: 2.000 s", "node 0 egress", "Encode"):
            self.assertIn(text, texts)
        foreign = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
        for events in ([], [*names, foreign], sends):
            self.assertIn("trace.json: is no trace", self.refused("timeline", self.write_json({"traceEvents": events}, "trace.json")))

    def test_lines_of_broadcasts_cross_between_two_sizes(self):
        even = _message_pictures.break_even
        # The ratio goes from 1/2 to 2, so it is 1 in the logarithmic middle of 100 and 10000.
        self.assertAlmostEqual(even([100, 10000], [2, 1], [1, 2]), 1000)
        # The ratio goes from 1/4 to 2, so it is 1 after two thirds of the way, on a logarithmic scale.
        self.assertAlmostEqual(even([1, 1000], [4, 1], [1, 2]), 100)
        self.assertAlmostEqual(even([1, 10, 100, 10000], [1, 2, 2, 1], [2, 1, 1, 2]), 1000)  # the last crossing counts
        self.assertEqual((even([5, 50], [1, 1], [2, 2]), even([5, 50], [1, 2], [2, 2])), (5, None))
        # The first is twice as fast, then half as fast.
        self.assertAlmostEqual(_message_pictures.crossing([0.01, 1], [1, 4], 2), 0.1)

    def test_broadcasts_are_asked_for_and_their_break_evens_are_said(self):
        def answer(request: dict) -> dict:
            """Answers that a chain takes 2 s and 1 ns per byte, a tree 1 s and 2 ns per byte. fp16 halves times."""
            size, codec = int(request["bytes"][:-1]), request["algorithm"]
            slow = 2 + size / 1e9 if request["topology"] == "chain" else 1 + 2 * size / 1e9
            return {"choices": [{"topology": request["topology"], "algorithm": one, "predicted_s": slow / (2 if one == "fp16" else 1)}
                                for one in dict.fromkeys(("none", codec))]}

        with mock.patch.object(_message_pictures, "answer", answer):
            status, said, _ = self.draw("broadcast", "nnodes=4", "--output", str(self.folder / "p.svg"))
        self.assertEqual(status, 0)
        self.assertIn("4 nodes, a100-25g: each with its best chunk count", self.texts())
        self.assertIn("chain is faster than binomial from 998 MB on\n", said)  # interpolated; exactly 1000 MB
        self.assertIn("chain with fp16 is faster than chain from the smallest on\n", said)

    def test_densities_are_asked_for_and_their_break_evens_are_said(self):
        def answer(request: dict) -> dict:
            found = re.match(r"dgc\(rho=(.*),packing=(.)\)", request["plan"])
            return {"iteration_s": float(found[1]) * (4 - int(found[2])) if found else 2.0 if request["plan"] == "none" else 1.0}

        with mock.patch.object(_message_pictures, "answer", answer):
            status, said, _ = self.draw("sparse", "elements=1000000", "--output", str(self.folder / "p.svg"))
        self.assertEqual(status, 0)
        # With packing=0, 4 s times the density is the ring's 2 s at 0.5. With packing=2, 2 s times the density is 2 s at 1, so the
        # ring is never faster.
        self.assertIn("packing=0: the fp32 ring is faster from density 0.5 on\n", said)
        self.assertIn("packing=2: the fp32 ring is faster at no density\n", said)
        self.assertIn("8 nodes, a100-25g, 1 million elements", self.texts())
        self.assertIn("leave out x.csv", self.refused("sparse", "x.csv"))

    def test_equal_data_make_equal_files(self):
        path = self.write_csv(sweep(spread=0.25))
        files = [self.drawn("speedup", path) and (self.folder / "p.svg").read_bytes() for _ in range(2)]
        self.assertEqual(*map(hash, files))

    def test_conditions_keep_the_baselines(self):
        rows = sweep() + [{**one, "plan": "best"} for one in sweep() if one["plan"] == "all"]
        texts = self.drawn("speedup", self.write_csv(rows), "plan=best")
        self.assertIn("Speed-up: vgg19, plan best, ring, onebit, profile a100-25g", texts)
        texts = self.drawn("speedup", self.write_csv(rows), "plan=best", "--over", "all")
        self.assertIn("speed-up over plan all", texts)

    def test_wrong_requests_are_told_the_right_one(self):
        path, document = self.write_csv(sweep()), self.write_json({}, "d.json")
        for arguments, said in ((("speedup",), "which file"), (("speedup", document), "speedup takes no JSON"),
                                (("times", path), "JSON of hipress-plan"), (("speedup", path, path), "CSV of a sweep"),
                                (("efficiency", path, "--over", "ddp"), "--over is for speedup"),
                                (("speedup", path, "--over", "fast"), "over=fast: the sweep has no such plan (it has: all, ddp"),
                                (("speedup", path, "speed=2"), "there is no column 'speed'"),
                                (("breakdown", document, "nodes=2"), "choose rows of a CSV"),
                                (("times", document), "is not what hipress-plan prints"),
                                (("break_even", document), "is not what hipress-plan prints as JSON with --break-even"),
                                (("times", document, f"other={document}"), "2 files: this picture is of one"),
                                (("breakdown", f"ddp={document}", f"ddp_fp16={document}"), "is not what hipress-sim prints"),
                                (("measured", self.write_json([], "list.json")), "print with --json"),
                                (("measured", str(self.folder / "no.csv")), "cannot be read")):
            with self.subTest(arguments=arguments):
                self.assertIn(said, self.refused(*arguments))
        self.assertEqual(self.draw("speedup", path)[0], 2)  # without --output
        self.assertEqual(self.draw("speedups", path)[0], 2)  # no such kind
        status, said, _ = self.draw("--help")
        self.assertEqual(status, 0)
        for kind in _pictures.KINDS:
            self.assertIn(f"\n  {kind} ", said)


@unittest.skipIf(matplotlib is None, "matplotlib is not installed")
class DocumentedTest(unittest.TestCase):
    def test_the_commands_do_what_the_page_says(self):
        blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/pictures.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 5)
        script = "\n".join(blocks)
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            for name in ("examples", "scripts", "models", "profiler"):
                (place / name).symlink_to(ROOT / name)
            done = subprocess.run(["sh", "-e", "-c", script], cwd=place, text=True, capture_output=True, timeout=300, check=False,
                                  env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 0, done.stderr)
            pictures = re.findall(r"--output (\w+\.(?:png|svg))", script)
            self.assertEqual(len(pictures), 8)
            for picture in pictures:
                self.assertGreater((place / picture).stat().st_size, 10000, picture)
            self.assertIn("bert_base, ring: all pays", done.stdout)


if __name__ == "__main__":
    unittest.main()
