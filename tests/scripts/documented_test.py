"""Runs the blocks of sh on pages of how-to as printed, each page in a folder of its own that has the tree's folders:
documented_test.py FOLDER_OF_TOOLS"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(sys.argv.pop()).resolve()
#: Blocks that each page has; those of other how-to pages need a cluster, and are of pages that other tests run.
PAGES = {"ask.md": 6, "cluster.md": 2, "model.md": 1, "trace.md": 1, "fsdp.md": 1, "slow-links.md": 2}
#: They have no block of sh.
REST = {"algorithm.md": "tests/compll/tutorial_test.py", "slurm.md": "tests/launch/slurm_test.py"}


class DocumentedTest(unittest.TestCase):
    def run_page(self, name: str) -> str:
        blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/how-to" / name).read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), PAGES[name])
        with tempfile.TemporaryDirectory() as folder:
            for linked in ("scripts", "tests"):
                pathlib.Path(folder, linked).symlink_to(ROOT / linked)
            # Copied, since a command goes there and back.
            shutil.copytree(ROOT / "examples", pathlib.Path(folder, "examples"))
            done = subprocess.run(["sh", "-e", "-c", "\n".join(blocks)], cwd=folder, capture_output=True, text=True, timeout=500,
                                  env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.files = {path.name: path.stat().st_size for path in pathlib.Path(folder).iterdir()}
        return done.stdout

    def test_readme(self):
        """Its command answers with three lines like those that it shows."""
        command, shown = re.search(r"^    build/release/bin/(hipress-plan .*)\n\n```\n(.*?)```", (ROOT / "README.md").read_text(),
                                   re.MULTILINE | re.DOTALL).groups()
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, timeout=300, check=True,
                                  env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"})

        def words(text: str) -> list:
            return re.sub(r"[\d.]+(ms|s| %)?", "#", re.sub(r"baseline \w+", "baseline", text)).splitlines()

        self.assertEqual(words(done.stdout)[:3], words(shown))

    def test_ask(self):
        said = self.run_page("ask.md")
        self.assertIn("if one thing were 10 % better:", said)
        self.assertIn("break-even over bandwidth", said)
        self.assertTrue(self.files["sweep.csv"] > 1000 and self.files["sweep.png"] > 10000 and self.files["SeCoPaPlan.txt"] > 100)

    def test_cluster(self):
        said = self.run_page("cluster.md")
        self.assertIn("8 nodes × 4 GPUs", said)
        self.assertIn("16 nodes × 8 GPUs", said)

    def test_model(self):
        self.assertRegex(self.run_page("model.md"), "plan.yaml: 3 gradients")

    def test_trace(self):
        self.assertIn("the traced job can gain at most", self.run_page("trace.md"))

    def test_fsdp(self):
        self.assertIn("fsdp", self.run_page("fsdp.md"))

    def test_slow_links(self):
        self.assertRegex(self.run_page("slow-links.md"), r"local\(steps=100, fragments=8, overlap=1\)")

    def test_every_page_is_run_or_another_test_runs_it(self):
        self.assertEqual({path.name for path in (ROOT / "docs/how-to").glob("*.md")}, {*PAGES, *REST})
        for test in REST.values():
            self.assertTrue((ROOT / test).is_file())


if __name__ == "__main__":
    unittest.main()
