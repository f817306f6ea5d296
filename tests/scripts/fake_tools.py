"""Fakes of ip, tc, hipress's tools and a python3 with torch, whose answers a test sets. Runs experiments of validate.py on them,
without special rights."""

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

#: `ip netns exec NAME command` runs the command. Every other call succeeds and does nothing.
FAKE_IP = """#!/bin/sh
if [ "$1 $2" = "netns exec" ] && [ "$4" != sh ]; then shift 3; exec "$@"; fi
"""

#: Beginning of every fake except ip and tc. It logs the call. As hipress-profile it writes a profile; as Python it has torch unless
#: the test says otherwise.
PRELUDE = """#!{python}
import json, os, pathlib, sys, time
words, tool, rank = sys.argv[1:], pathlib.Path(sys.argv[0]).name, os.environ.get("RANK", "0")
def value(name):
    return words[words.index(name) + 1]
def answer(**said):
    if rank == "0":
        print(json.dumps(said))
def measured(*seconds, predicted, low, high):
    answer(each_measured_iteration_s=seconds, predicted_iteration_s=predicted, predicted_iteration_s_p10=low,
           predicted_iteration_s_p90=high, verified="WRONG" not in os.environ)
with open(pathlib.Path(__file__).parent / "calls", "a") as calls:
    print(tool, *words, file=calls)
if tool == "hipress-profile":
    pathlib.Path(value("--output")).write_text("schema: hipress.profile/1\\n")
if words[0] == "-c":
    sys.exit("NO_TORCH" in os.environ)
"""


class FakeToolsTest(unittest.TestCase):
    #: Name of the experiment of validate.py.
    experiment = ""
    #: Source of each fake program, without PRELUDE.
    tools: dict[str, str] = {}
    #: Options besides --tools; "{folder}" stands for the test's folder.
    common: tuple[str, ...] = ("--output", "{folder}/out", "--again", "0")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        for name, text in {"ip": FAKE_IP, "tc": "#!/bin/sh\n", "hipress-profile": "", **self.tools}.items():
            self.provide(name, text if name in ("ip", "tc") else PRELUDE.replace("{python}", sys.executable) + text)

    def provide(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_it(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Runs the experiment, whose Python with torch is the folder's python_with_torch. Returns its exit status and what it
        printed on stdout; `complained` is what it printed on stderr."""
        bin_folder = self.folder / "bin"
        said, complained = io.StringIO(), io.StringIO()
        common = [word.replace("{folder}", str(self.folder)) for word in self.common]
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
        """Runs the experiment, which must succeed. Returns what it printed on stdout, and the results that it wrote with --json."""
        report = self.folder / "report.json"
        status, said = self.run_it(*arguments, "--json", str(report), **environment)
        self.assertEqual(status, 0, said + self.complained)
        return said, json.loads(report.read_text())

    def calls(self) -> str:
        return (self.folder / "bin/calls").read_text()
