"""Tests of scripts/plot_losses.py: what it reads of logs, what it draws, and what it refuses.

Usage: plot_losses_test.py
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import plot_losses  # noqa: E402  (found through the path above)

try:
    import matplotlib
except ImportError:
    matplotlib = None


class LossesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def log(self, name: str, rows: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(f"average,step,seconds,loss\n{rows}")
        return path

    def draw(self, *arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-B", ROOT / "scripts/plot_losses.py", *arguments], cwd=self.folder, text=True,
                              capture_output=True, timeout=100, check=False)

    def test_losses_are_means_of_the_last_20_steps(self):
        path = self.log("a.csv", "".join(f'"hipress a, b",{step},{step / 4},{step}\n' for step in range(30)))
        average, steps, seconds, means = plot_losses.read(path)
        self.assertEqual((average, steps, seconds[-1]), ("hipress a, b", list(range(30)), 7.25))
        # Of the first: 0, (0 + 1) / 2, ...; the last: the mean of 10 to 29.
        self.assertEqual((means[0], means[1], means[-1]), (0, 0.5, 19.5))

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_every_log_is_drawn_over_steps_and_over_seconds(self):
        logs = [plot_losses.read(self.log(f"{name}.csv", f"{name},0,0.5,3\n{name},1,{end},1\n")) for name, end in (("ddp", 9), ("plan", 2))]
        pictured = []
        with mock.patch.object(plot_losses, "save", lambda figure, *_, **__: pictured.append(figure)):
            plot_losses.draw(logs, self.folder / "losses.png")
        by_step, by_second = pictured[0].axes
        found = [[(line.get_label(), list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines] for axis in (by_step, by_second)]
        self.assertEqual(found[0], [("ddp", [0, 1], [3, 2]), ("plan", [0, 1], [3, 2])])
        self.assertEqual(found[1], [("ddp", [0.5, 9], [3, 2]), ("plan", [0.5, 2], [3, 2])])
        matplotlib.pyplot.close(pictured[0])

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_a_picture_is_written(self):
        done = self.draw("losses.png", self.log("a.csv", "ddp,0,0.5,3\nddp,1,1,2\n"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue((self.folder / "losses.png").read_bytes().startswith(b"\x89PNG"))

    def test_what_is_no_log_is_refused_with_its_line(self):
        for rows, words in (("ddp,0,0.5,3\nddp,one,1,2\n", "a.csv:3: "), ("ddp,0,0.5\n", "a.csv:2: is no row of a log"), ("", "has no steps")):
            done = self.draw("losses.png", self.log("a.csv", rows))
            self.assertEqual(done.returncode, 2, rows)
            self.assertIn(words, done.stderr)
            self.assertIn("examples/train.py --log", done.stderr)
        (self.folder / "b.csv").write_text("step,loss\n0,1\n")
        self.assertIn("there is no column average", self.draw("losses.png", "b.csv").stderr)
        self.assertFalse((self.folder / "losses.png").exists())

    def test_a_log_that_is_not_there_is_named(self):
        done = self.draw("losses.png", "nowhere.csv")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere.csv", done.stderr)
        self.assertNotIn("cannot be written", done.stderr)

    def test_without_a_log_it_says_how_it_is_called(self):
        for arguments in ((), ("losses.png",), ("--dpi", "3")):
            done = self.draw(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: plot_losses.py", done.stderr)


if __name__ == "__main__":
    unittest.main()
