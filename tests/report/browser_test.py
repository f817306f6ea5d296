"""Tests of reports in a headless Chromium: pages cause no errors and fetch nothing, their numbers are those of --json, and the
timeline finds, zooms and explains.

Usage: browser_test.py [-v] HIPRESS_PLAN HIPRESS_SIM"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser

PLAN, SIM = "", ""
DESKTOP, PHONE = (1280, 900), (390, 844)
EVIL = "</script><img src=x onerror=document.title='evil'>"
#: Units of numbers on the page.
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "%": 1e-2, "TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1, "×": 1} | {
    f"{prefix}bit/s": times / 8 for prefix, times in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))}


def numbers_in(value) -> set:
    """All numbers of a JSON value."""
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(numbers_in, value)) if value else set()
    return {float(value)} if isinstance(value, (int, float)) and not isinstance(value, bool) else set()


def read_number(text: str) -> float:
    """Reads a number from the page: "155.8 ms", "12.0 %", "1 234 gradients"."""
    number, _, unit = text.replace("\u202f", "").replace("\u00a0", " ").partition(" ")
    return float(number) * UNITS.get(unit, 1)


class Report(unittest.TestCase):
    """Tests of one report, for 399 gradients on 16 nodes."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        names = [f"encoder.layer.{g // 16}.part{g % 16}.weight" for g in range(398)] + [EVIL]
        (folder / "model.csv").write_text("name,elements,ready_us\n" + "".join(
            f"{name},{1024 * (1 + 131 * g % 4099)},{100 * (g + 1)}\n" for g, name in enumerate(names)))
        machines = ["--input", "model.csv", "--profile", "v100-100g", "--nnodes", "16"]
        done = subprocess.run([PLAN, *machines, "--topology", "PS", "--evaluations", "200", "--output", "plan.yaml", "--report", "report.html",
                               "--json"], cwd=folder, capture_output=True, text=True, check=True)
        cls.said = json.loads(done.stdout)
        done = subprocess.run([SIM, *machines, "--plan", "plan.yaml", "--sensitivity", "--json"], cwd=folder, capture_output=True, text=True, check=True)
        cls.simulated = json.loads(done.stdout)
        cls.address = (folder / "report.html").as_uri()
        cls.size = (folder / "report.html").stat().st_size
        cls.browser = browser.Browser(browser.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def open(self, window):
        self.browser.open(self.address, *window)
        return self.browser

    def axis(self) -> list:
        """Returns the times along the timeline's upper edge."""
        return self.browser.run("[...document.querySelectorAll('#timeline svg text.quiet')].map(text => text.textContent).slice(0, 8)")

    def test_nothing_is_complained_of_or_fetched(self):
        for window in (DESKTOP, PHONE):
            with self.subTest(window=window):
                page = self.open(window)
                page.screenshot()  # waits until something is painted
                paint = page.run("performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0]")
                print(f"{window[0]} pixels: first contentful paint after {paint} ms, {self.size} bytes")
                self.assertEqual(page.errors, [])
                self.assertEqual(page.requested, [self.address])
                self.assertLessEqual(page.run("document.documentElement.scrollWidth"), window[0])
        self.assertLessEqual(self.size, 300_000)

    def test_names_are_text(self):
        page = self.open(DESKTOP)
        self.assertNotIn("evil", page.run("document.title"))
        self.assertEqual(page.run("document.images.length"), 0)
        self.assertIn(EVIL, page.run("document.getElementById('plan').textContent"))

    def test_numbers_are_those_of_json(self):
        page = self.open(DESKTOP)
        data = json.loads(page.run("document.getElementById('data').textContent"))
        self.assertEqual(data["plan"], self.said)
        for key in ("iteration_s", "compute_s", "exposed_communication_s"):
            self.assertEqual(data["timeline"][key], self.simulated[key])
        for kind, share in data["critical_path"]["share"].items():
            self.assertEqual(share, self.simulated["critical_path_share"][kind])
        for row in data["sensitivity"]:
            self.assertEqual({key: row[key] for key in ("iteration_s", "change_s")}, self.simulated["sensitivity"][row["name"]])
        shown = page.run("[...document.querySelectorAll('data')].map(one => [one.value, one.textContent])")
        drawn = page.run("[...document.querySelectorAll('[data-value]')].map(one => one.dataset.value)")
        self.assertGreater(len(shown), 80)
        self.assertGreater(len(drawn), 5)
        known = numbers_in(data)
        for value in [value for value, _ in shown] + drawn:
            self.assertIn(float(value), known)
        for value, text in shown:
            # Texts have four digits, percentages one decimal place.
            self.assertAlmostEqual(read_number(text), float(value), delta=max(6e-4 * abs(float(value)), 5.1e-4), msg=text) \
                if "%" in text else self.assertAlmostEqual(read_number(text), float(value), delta=6e-4 * abs(float(value)), msg=text)

    def test_all_sections_have_something(self):
        page = self.open(DESKTOP)
        for name in ("comparison", "timeline", "path", "sensitivity", "break-even", "plan", "grounds"):
            with self.subTest(section=name):
                self.assertGreater(page.run(f"document.getElementById('{name}').children.length"), 1)
        self.assertIn(str(self.said["compressed"]), page.run("document.querySelector('#plan p').textContent"))
        self.assertIn("probability", page.run("document.querySelector('.answer').textContent"))
        # Every picture has a description in words.
        self.assertEqual(page.run("[...document.querySelectorAll('svg')].filter(one => !one.getAttribute('aria-label')).length"), 0)

    def test_a_gradient_is_found_and_zoomed_to(self):
        page = self.open(DESKTOP)
        whole = self.axis()
        page.run("(() => { const box = document.getElementById('find'); box.value = 'layer.3.part7.'; "
                 "box.dispatchEvent(new Event('input')); })()")
        self.assertIn("1 gradient: ready", page.run("document.querySelector('#timeline [role=status]').textContent"))
        self.assertGreater(page.run("document.querySelectorAll('#timeline svg path.dim').length"), 0)
        page.run("document.getElementById('find').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
        self.assertNotEqual(self.axis(), whole)
        page.run("(() => { const box = document.getElementById('find'); box.value = 'no such name'; "
                 "box.dispatchEvent(new Event('input')); })()")
        self.assertIn("no gradient has", page.run("document.querySelector('#timeline [role=status]').textContent"))

    def middle(self, selector: str) -> tuple:
        self.browser.run(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
        box = self.browser.run(f"(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect(); "
                               "return [box.left, box.top, box.width, box.height]; })()")
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def test_tasks_explain_themselves(self):
        page = self.open(DESKTOP)
        x, y = self.middle("#timeline svg path[fill*=Backward]")
        page.mouse("mouseMoved", x, y)
        self.assertFalse(page.run("document.getElementById('tip').hidden"))
        self.assertRegex(page.run("document.getElementById('tip').textContent"), r"Backward encoder\.layer.* to .*:")
        page.mouse("mouseMoved", 3, 3)
        self.assertTrue(page.run("document.getElementById('tip').hidden"))
        # The keyboard does the same.
        page.run("(() => { const svg = document.querySelector('#timeline svg'); svg.focus(); "
                 "for (const key of ['ArrowDown', 'ArrowDown', 'n']) svg.dispatchEvent(new KeyboardEvent('keydown', {key})); })()")
        self.assertRegex(page.run("document.querySelector('#timeline [role=status]').textContent"), r"[A-Z].* to .*: ")

    def test_the_timeline_zooms_and_moves(self):
        page = self.open(DESKTOP)
        whole = self.axis()
        page.run("document.querySelector('#timeline button[aria-label=\"Zoom in\"]').click()")
        near = self.axis()
        self.assertNotEqual(near, whole)
        x, y = self.middle("#timeline svg")
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
        nearer = self.axis()
        self.assertNotEqual(nearer, near)
        page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        page.mouse("mouseMoved", x - 200, y, button="left", buttons=1)
        page.mouse("mouseReleased", x - 200, y, button="left", clickCount=1)
        self.assertNotEqual(self.axis(), nearer)
        page.run("document.querySelector('#timeline button[aria-label=\"The whole iteration\"]').click()")
        self.assertEqual(self.axis(), whole)

    def test_the_table_sorts_and_filters(self):
        page = self.open(DESKTOP)
        first = "document.querySelector('#plan tbody tr').firstChild.textContent"
        rows = "document.querySelectorAll('#plan tbody tr').length"
        self.assertEqual(page.run(rows), 399)
        page.run("document.querySelector('#plan th button').click()")
        self.assertEqual(page.run(first), EVIL)  # "<" comes before letters
        self.assertEqual(page.run("document.querySelector('#plan th').getAttribute('aria-sort')"), "ascending")
        page.run("(() => { const box = document.querySelector('#plan input'); box.value = 'layer.3.'; "
                 "box.dispatchEvent(new Event('input')); })()")
        self.assertEqual(page.run(rows), 16)


class Learning(unittest.TestCase):
    """Tests of a report for a plan that was made with a pilot."""

    def test_losses_and_errors_are_drawn(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            names = [f"layer{g}.weight" for g in range(50)]
            (folder / "model.csv").write_text("name,elements,ready_us\n" + "".join(f"{one},{100_000 + g},{100 * (g + 1)}\n" for g, one in enumerate(names)))
            errors = [f"  - {{plan: {plan}, gradient: {one}, step: 1, error: {error}, error_with_residual: 1, norm: 1}}\n"
                      for plan, error in (("fp16", 0.0002), ("int4block", 0.25)) for one in names]
            (folder / "pilot.yaml").write_text(
                "schema: 1\nscript: x\nranks: 2\nsteps: 300\nseeds: 1\nratios:\n"
                "  - {plan: fp16, ratio: 1, p10: 1, p90: 1.01, after: 300, runs: 1}\n"
                "  - {plan: int4block, ratio: 1.1, p10: 1.05, p90: 1.2, after: 300, runs: 1}\nerrors:\n" + "".join(errors) +
                "curve:\n  - {step: 1, loss: 4}\n  - {step: 150, loss: 2}\n  - {step: 300, loss: 1}\n")
            done = subprocess.run([PLAN, "--input", "model.csv", "--profile", "v100-100g", "--bandwidth", "1Gbps", "--nnodes", "4", "--evaluations",
                                   "50", "--pilot", "pilot.yaml", "--output", "plan.yaml", "--report", "report.html", "--json"], cwd=folder,
                                  capture_output=True, text=True, check=True)
            said = json.loads(done.stdout)["learning"]
            with browser.Browser(browser.find()) as page:
                for window in (DESKTOP, PHONE):
                    page.open((folder / "report.html").as_uri(), *window)
                    self.assertEqual(page.errors, [])
                    self.assertLessEqual(page.run("document.documentElement.scrollWidth"), window[0])
                drawn = page.run("[...document.querySelectorAll('#learning [data-value]')].map(one => one.dataset.value)")
                words = page.run("document.getElementById('learning').textContent")
        times = [pace["to_loss_s"] for pace in said["paces"] if pace["plan"] in ("this plan", "ddp", "ddp_fp16")]
        self.assertEqual(len(times), 3)
        self.assertEqual(set(times) - set(map(float, drawn)), set())
        # Errors of the 40 largest of 50 gradients are drawn, for two algorithms.
        self.assertEqual([drawn.count("0.25"), drawn.count("0.0002")], [40, 40])
        self.assertIn("of 40 of 50 gradients, the largest", words)
        self.assertNotIn("layer9.weight", words)
        self.assertIn("layer10.weight", words)


if __name__ == "__main__":
    SIM, PLAN = (str(pathlib.Path(sys.argv.pop()).resolve()) for _ in range(2))
    if browser.find() is None:
        print("skipped: no chromium (Debian's package chromium)")
        sys.exit(0)
    unittest.main()
