"""Tests that a tool has the options that its messages name, or that the message names the tool that has them: spelling_test.py [-v]
BIN"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from house_test import LAYERS, LITERAL, ROOT

BIN = pathlib.Path(sys.argv.pop()).resolve() if len(sys.argv) > 1 else ROOT / "build/release/bin"
TOOLS = ("hipress-plan", "hipress-sim", "hipress-exec", "hipress-profile", "hipress-import", "hipress-compll")
#: Fields of results, of requests without a command line, and of the C library, which no tool prints.
NO_OPTIONS = {"requests/simulate_document.cpp": {"compute_s", "iteration_s"}, "requests/hosts.cpp": {"unit"},
              "requests/replay_document.cpp": {"compute_s", "drift"}, "requests/plan_fields.cpp": {"page"},
              "requests/plan_document.cpp": {"page"},
              "runtime/c_interface.cpp": {"secret"}}
#: Folders whose messages only one tool prints, with that tool.
PRINTED_BY = {"traces": "hipress-import", "sweep": "hipress-sim", "profiler": "hipress-profile"}
#: Sources in these folders whose messages hipress-sim prints: those about exported graphs.
OTHERS = {"traces/chakra_graph.cpp", "traces/chrome_trace.cpp", "traces/timeline.cpp"}


def run(folder: str, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run([BIN / command[0], *command[1:]], cwd=folder, text=True, capture_output=True, timeout=60, check=False,
                          errors="replace", stdin=subprocess.DEVNULL)


def options_of(*command: str) -> set:
    """Long options in a tool's help."""
    lines = run("/", *command, "--help").stdout.splitlines()
    return {name for line in lines if line.startswith("  -") for name in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", line[:60])}


OPTIONS = {tool: options_of(tool) for tool in TOOLS}
OPTIONS["hipress-import"] |= options_of("hipress-import", "collectives") | options_of("hipress-import", "topology")
OPTIONS["hipress-sim"] |= options_of("hipress-sim", "sweep") | options_of("hipress-sim", "--chakra", "folder") | {"chakra"}


def unknown(text: str, words: list, tool: str) -> list:
    """Options among the words, (word, position) in a text, that neither its tool nor a tool named earlier in the text has."""
    return [word for word, at in words
            if not any(word in OPTIONS[one] for one in TOOLS if one == tool or one in text[:at])]


def sentences(path: pathlib.Path):
    """Strings of a source. Strings with only blanks between them are joined."""
    text, end = "", 0
    source = path.read_text()
    for literal in LITERAL.finditer(source):
        if literal["text"] is None and literal["raw"] is None:
            continue
        if source[end:literal.start()].strip():
            yield text
            text = ""
        text += literal["raw"] or literal["text"] or ""
        end = literal.end()
    yield text


class SpellingTest(unittest.TestCase):
    def test_every_tool_has_options(self):
        for tool, options in OPTIONS.items():
            self.assertGreater(len(options), 3, tool)
        self.assertIn("every-all-reduce", OPTIONS["hipress-import"])

    def test_fields_in_messages_are_options(self):
        found = 0
        for folder in LAYERS[:-1]:
            for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
                name = str(path.relative_to(ROOT))
                known = set().union(*(words for place, words in NO_OPTIONS.items() if name.startswith(place)))
                tool = None if name in OTHERS else PRINTED_BY.get(folder)
                for text in sentences(path):
                    words = [(match[1].replace("_", "-"), match.start()) for match in re.finditer(r"`([a-z][a-z0-9_]*)`", text)
                             if match[1] not in known]
                    found += len(words)
                    with self.subTest(file=name, text=text):
                        if tool:
                            self.assertEqual(unknown(text, words, tool), [])
                        else:
                            self.assertEqual([word for word, _ in words if not any(word in OPTIONS[one] for one in TOOLS)], [])
        self.assertGreater(found, 100)

    def test_complaints_name_options_of_their_tool(self):
        """Gives every option of every tool a value that may be refused, and makes every request that lacks something."""
        enough = {"hipress-plan": ("--input", "in.txt", "--nnodes", "2"),
                  "hipress-sim": ("--input", "in.txt", "--plan", "none", "--nnodes", "2", "--topology", "ring"),
                  "hipress-exec": ("--input", "in.txt", "--plan", "none", "--nnodes", "1"), "hipress-profile": ("--algorithm", "none such"),
                  "hipress-import": ("trace.json",), "hipress-compll": ("missing.pse",)}
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "in.txt").write_text("a,64\n")
            pathlib.Path(folder, "trace.json").write_text('{"traceEvents": []}')
            said = 0
            for tool in TOOLS:
                for option in sorted(OPTIONS[tool] - {"help", "version"}):
                    for value in ("-1", "no such thing"):
                        done = run(folder, tool, *enough[tool], f"--{option}={value}")
                        text = done.stdout + done.stderr
                        words = [(match[1], match.start())
                                 for match in re.finditer(r"(?<![\w-])--([a-z][a-z0-9-]*)", text) if match[1] != "help"]
                        said += len(words)
                        with self.subTest(tool=tool, option=option, value=value, said=text):
                            self.assertEqual(unknown(text, words, tool), [])
            self.assertGreater(said, 50)


if __name__ == "__main__":
    unittest.main()
