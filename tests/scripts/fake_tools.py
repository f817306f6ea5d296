"""A folder of tools that answer what a test says: ip, tc, hipress's tools, and a python3 with torch; and how to run a script on them.
No rights needed."""

import contextlib
import io
import os
import pathlib
import stat
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import validate_ddp  # noqa: E402  (found through the path above)

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
    #: By name, text of programs; "{python}" stands for this Python.
    tools: dict[str, str] = {}
    #: Of every script beside --tools; "{folder}" stands for the test's.
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

    def run_script(self, script: types.ModuleType, *arguments: str, **environment: str) -> tuple[int, str]:
        """Its exit status and what it printed, on stderr as `complained`; its Python with torch is the folder's
        python_with_torch."""
        bin_folder = self.folder / "bin"
        said, complained = io.StringIO(), io.StringIO()
        common = [word.format(folder=self.folder) for word in self.common]
        with mock.patch.object(sys, "argv", [script.__name__, "--tools", str(bin_folder), *common, *arguments]), \
             mock.patch.dict(os.environ, {"PATH": f"{bin_folder}:{os.environ['PATH']}", **environment}), \
             mock.patch.object(validate_ddp, "PYTHONS", (str(bin_folder / "python_with_torch"),)), \
             contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained), \
             mock.patch("validation.command.real_time_allowed", return_value=False):
            status = script.main()
        self.complained = complained.getvalue()
        return status, said.getvalue()

    def calls(self) -> list[str]:
        """Of tools that note theirs."""
        return (self.folder / "bin/calls").read_text().splitlines()


class FakeToolOfPictureTest(unittest.TestCase):
    """What a script that draws does with a tool that fails."""

    def run_drawing(self, script: types.ModuleType, tool: str, text: str) -> tuple[int, str]:
        """The script's exit status and what it complained of, where the tool is a shell script with this text."""
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, tool)
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            with mock.patch.object(sys, "argv", [script.__name__, f"{folder}/picture.png", "--tools", folder]), \
                 mock.patch("picture.start_where_matplotlib_is"), contextlib.redirect_stderr(said):
                return script.main(), said.getvalue()

    def check_failures(self, script: types.ModuleType, tool: str) -> None:
        status, said = self.run_drawing(script, tool, "echo unknown profile >&2; exit 2")
        self.assertEqual(status, 2)
        self.assertIn("unknown profile", said)
        self.assertEqual(self.run_drawing(script, tool, "exit 3")[0], 1)
