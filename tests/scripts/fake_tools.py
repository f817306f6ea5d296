"""A folder of tools that answer what a test says: ip, tc, hipress's tools, and a python3 with torch; and how to run an experiment of
validate.py on them. No rights needed."""

import contextlib
import io
import json
import os
import pathlib
import stat
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import validate  # noqa: E402  (found through the path above)

#: `ip netns exec NAME command` runs the command; all else succeeds.
FAKE_IP = """#!/bin/sh
if [ "$1 $2" = "netns exec" ] && [ "$4" != sh ]; then shift 3; exec "$@"; fi
"""


#: The beginning of a tool of hipress's: it notes how it is called, and what it profiles is a file.
NOTING_TOOL = """#!{python}
import json, os, pathlib, sys
def value(name):
    return sys.argv[sys.argv.index(name) + 1]
tool = pathlib.Path(sys.argv[0]).name
with open(pathlib.Path(__file__).resolve().parent / "calls", "a") as calls:
    print(tool, *sys.argv[1:], file=calls)
if tool == "hipress-profile":
    pathlib.Path(value("--output")).write_text("schema: hipress.profile/1\\n")
"""


class FakeToolsTest(unittest.TestCase):
    #: Of validate.py.
    experiment = ""
    #: Options of a run that is short.
    short: tuple[str, ...] = ()
    #: By name, text of programs; "{python}" stands for this Python.
    tools: dict[str, str] = {}
    #: Options beside --tools; "{folder}" stands for the test's.
    common: tuple[str, ...] = ("--output", "{folder}/out", "--again", "0")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in {"ip": FAKE_IP, "tc": "#!/bin/sh\n", **self.tools}.items():
            tool = self.folder / "bin" / name
            tool.parent.mkdir(exist_ok=True)
            tool.write_text(text if text.startswith("#!/bin/sh") else text.format(python=sys.executable))
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)

    def run_it(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """The experiment's exit status and what it printed, on stderr as `complained`; its Python with torch is the folder's
        python_with_torch."""
        bin_folder = self.folder / "bin"
        said, complained = io.StringIO(), io.StringIO()
        common = [word.format(folder=self.folder) for word in self.common]
        with mock.patch.object(sys, "argv", ["validate.py", self.experiment, "--tools", str(bin_folder), *common, *arguments]), \
             mock.patch.dict(os.environ, {"PATH": f"{bin_folder}:{os.environ['PATH']}", **environment}), \
             mock.patch("validation.torch_bench.PYTHONS", (str(bin_folder / "python_with_torch"),)), \
             mock.patch("validation.command.real_time_allowed", return_value=False), \
             mock.patch("validation.command.stop_as_exceptions"), \
             contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
            status = validate.main()
        self.complained = complained.getvalue()
        return status, said.getvalue()

    def run_for_json(self, *arguments: str, **environment: str) -> tuple[str, object]:
        """What an experiment that succeeds printed, and its results."""
        report = self.folder / "report.json"
        status, said = self.run_it(*arguments, "--json", str(report), **environment)
        self.assertEqual(status, 0, said + self.complained)
        return said, json.loads(report.read_text())

    def calls(self) -> list[str]:
        """Of tools that note theirs."""
        return (self.folder / "bin/calls").read_text().splitlines()


class NeedsTorch:
    """A test of experiments that do."""

    def test_without_torch_it_is_skipped_with_the_reason(self):
        status, said = self.run_it(*self.short, NO_TORCH="1")
        self.assertEqual(status, 0)
        self.assertRegex(said, "^skipped: no python3 has (torch with gloo|PyTorch 2)")


class Verifies:
    """A test of experiments that look at values."""

    def test_wrong_values_are_a_failure(self):
        status, said = self.run_it(*self.short, WRONG="1")
        self.assertEqual(status, 1)
        self.assertRegex(said, " WRONG|NOT VERIFIED")
