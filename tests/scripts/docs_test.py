"""Tests of the pages (links, places in the site, lengths), and of the reference pages, man pages and completions that are written
from the tools: docs_test.py FOLDER_OF_TOOLS"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from reference import completions, help_text, links, man, pages  # noqa: E402  (found through the path above)
from validation.evaluation import quantile  # noqa: E402

TOOLS = pathlib.Path(sys.argv.pop()).resolve()

HELP = """Example:
  hipress-x --size 3

Does what it says.
More lines.
Usage: hipress-x [OPTIONS] FILE

Positionals:
  FILE TEXT REQUIRED          What is read

Options:
  -h,--help                   Print this help message and exit
  --kind TEXT:{red,blue}=red  Colour: red or blue
  --a-rather-long-name TEXT:{a,b}=a
                              What a long one does: it's [this]
  --often{8} :[2 - 1024]      How often

Others:
  --quiet                     Say nothing
"""


class LinksTest(unittest.TestCase):
    def test_no_page_has_a_dead_link(self):
        found = links.pages(ROOT)
        self.assertGreater(len(found), 70)
        self.assertEqual([said for page in found for said in links.dead(page, ROOT)], [])

    def test_dead_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "there.md").write_text("# A heading, and `more`\n\n## Same\n\n## Same\n")
            page = root / "page.md"
            page.write_text("[a](there.md#a-heading-and-more) [b](there.md#same-1) [c](https://example.org/x) [d](#here)\n"
                            "`[e](code.md)`\n```\n[f](block.md)\n```\n# Here\n"
                            "![g](picture.png)\n[h](there.md#no)\n[i](../out.md) [`j`](gone.md)\n[k](#nowhere)\n")
            self.assertEqual(links.dead(page, root), [
                "page.md:7: 'picture.png': there is no such file", "page.md:8: 'there.md#no': the page has no such heading",
                "page.md:9: '../out.md' leads out of the tree", "page.md:9: 'gone.md': there is no such file",
                "page.md:10: '#nowhere': the page has no such heading"])


class PagesTest(unittest.TestCase):
    def test_every_page_of_docs_has_its_place_in_the_site(self):
        nav = set(re.findall(r"([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
        there = {str(page.relative_to(ROOT)) for page in links.pages(ROOT)}
        written = {f"docs/reference/{name}.md" for name in (*help_text.COMMANDS, "README", "request-members", "result-keys", "python", "c")}
        self.assertEqual({page for page in there if re.fullmatch(r"docs/(how-to/)?[\w-]+\.md", page)} - nav, set())
        self.assertEqual(nav - there - written, set())
        self.assertEqual(written - nav, set())

    def test_readmes_are_maps(self):
        for page in links.pages(ROOT):
            lines = page.read_text(encoding="utf-8").splitlines()
            with self.subTest(page=str(page.relative_to(ROOT))):
                if page == ROOT / "README.md":
                    self.assertLessEqual(len(lines), 100)
                    self.assertLessEqual(max(map(len, lines)), 132)
                elif page.name == "README.md":
                    self.assertLessEqual(len(lines), 40)
                    self.assertLessEqual(max(map(len, lines)), 160)

    def test_what_validation_found_is_one_page(self):
        self.assertLessEqual(len((ROOT / "docs/validation.md").read_text().split()), 1200)


def rows(page: str) -> list:
    """Cells of every row of every table on a page of docs/."""
    lines = (ROOT / "docs" / page).read_text().splitlines()
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]


def kept(name: str) -> list[dict]:
    """Rows of a result in bench/results."""
    lines = (ROOT / "bench/results" / f"{name}.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def errors_of(result: list[dict], column: str) -> list[str]:
    """Median, 90th percentile and maximum of a column's absolute values, as pages write them."""
    errors = [abs(float(row[column])) for row in result]
    return [f"{value:.1%}".replace("%", " %") for value in (quantile(errors, 0.5), quantile(errors, 0.9), max(errors))]


class EvaluationTest(unittest.TestCase):
    """Tests that docs/evaluation.md has the figures of the kept results."""

    def test_it_names_results_that_are_kept(self):
        named = set(re.findall(r"`(\w+\.csv)`", (ROOT / "docs/evaluation.md").read_text()))
        self.assertGreater(len(named), 10)
        self.assertEqual({name for name in named if not (ROOT / "bench/results" / name).is_file()}, set())

    def test_a_result_is_kept_as_a_row_for_each_case(self):
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder) / "made.json"
            result.write_text(json.dumps({"machine": {"processor": "X"}, "median": 0.25, "cases": [
                {"model": "vgg19", "verified": True, "steps_s": [1, 3, 2], "losses": {"ddp": [4, 2]}}, {"model": "other"}]}))
            keep = [sys.executable, "-B", ROOT / "bench/keep.py", result, "--output", folder]
            subprocess.run(keep, check=True)
            lines = result.with_suffix(".csv").read_text().splitlines()
            self.assertRegex(lines[0], "^# machine: X; date: 20")
            self.assertEqual(lines[1:], ["# median: 0.25",
                                         "model,verified,steps_s.n,steps_s.median,steps_s.p10,steps_s.p90,losses.ddp.last",
                                         "vgg19,true,3,2,1.2,2.8,2", "other,,,,,,"])
            result.write_text("[]")
            refused = subprocess.run(keep, capture_output=True, text=True, check=False)
            self.assertEqual((refused.returncode, "has no list of cases" in refused.stderr), (2, True))

    def test_errors_of_replays(self):
        for name in ("200", "500", "1000", "loopback"):
            result = kept(f"validation_{name}_amd_epyc")
            row = next(row for row in rows("evaluation.md") if row[-1] == f"`validation_{name}_amd_epyc.csv`")
            self.assertEqual(row[1:4], [str(len(result)), *errors_of(result, "error")[:2]])

    def test_gaps_and_kernels(self):
        median, p90, worst = errors_of(kept("planner_gaps_amd_epyc"), "gap")
        said = next(row[1] for row in rows("evaluation.md") if row[-1] == "`planner_gaps_amd_epyc.csv`")
        self.assertEqual(said, f"median {median}, p90 {p90}, worst {worst}")
        ratios = {row["case"]: float(row["ratio"]) for row in kept("codecs_amd_epyc") if row["reference_name"] == "memcpy"}
        codecs = {"onebit", "tbq", "terngrad", "dgc", "fp16", "int8block"}
        table = {row[0]: row[1:] for row in rows("evaluation.md") if row[0] in codecs}
        self.assertEqual(len(table), 6)
        for codec, cells in table.items():
            cases = [f"{codec}.{operation}" for operation in ("encode", "encode_ef", "decode", "decode_add")]
            self.assertEqual(cells, [f"{ratios[case]:.2f}" if case in ratios else "" for case in cases])


class HelpTest(unittest.TestCase):
    def setUp(self):
        self.told = help_text.parse("hipress-x", "hipress-x", HELP)

    def test_a_help_is_parsed(self):
        self.assertEqual((self.told.example, self.told.description, self.told.details, self.told.usage),
                         ("hipress-x --size 3", "Does what it says.", "More lines.", "hipress-x [OPTIONS] FILE"))
        self.assertEqual([title for title, _ in self.told.groups], ["Positionals", "Options", "Others"])
        named = {option.names[-1]: option for option in self.told.options}
        self.assertEqual(list(named), ["--help", "--kind", "--a-rather-long-name", "--often", "--quiet"])
        self.assertEqual(named["--help"].names, ("-h", "--help"))
        self.assertEqual((named["--kind"].choices, named["--often"].takes, named["--quiet"].is_flag),
                         (["red", "blue"], "{8} :[2 - 1024]", True))
        self.assertEqual(named["--a-rather-long-name"].text, "What a long one does: it's [this]")

    def test_what_is_no_such_help_is_refused(self):
        for text in ("Usage: x", HELP.replace("Example:", "For example:"), HELP.replace("Options:\n", "Options:\nstray\n")):
            with self.assertRaises(ValueError):
                help_text.parse("hipress-x", "hipress-x", text)

    def test_man_pages(self):
        page = man.page(self.told, "1.2.3")
        self.assertIn('.TH "HIPRESS-X" 1 "" "HiPress planner 1.2.3"', page)
        self.assertIn(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n", page)
        self.assertEqual(man.escaped(".x\\y"), "\\&.x\\ey")

    def test_docstrings(self):
        text = "Does_it.\n\n    x = f(3)\n\nMore\nof it.\n\nsize   bytes, or\n       more\nkind   which | one\n\nAn error."
        self.assertEqual(list(pages.docstring(text)), [
            "Does\\_it.\n\n```python\nx = f(3)\n```\n", "More of it.\n", "| argument | what it says |\n|---|---|",
            "| `size` | bytes, or more |", "| `kind` | which \\| one |", "", "An error.\n"])

    def test_zsh_and_fish(self):
        commands = {"hipress-x": self.told}
        self.assertIn("'*--a-rather-long-name[What a long one does\\: it'\\''s \\[this\\]]:value:(a b)'",
                      completions.zsh(self.told, commands))
        self.assertIn("complete -c hipress-x -l kind -x -a 'red blue' -d 'Colour: red or blue'",
                      completions.fish(self.told, commands))


class ToolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = {name: help_text.ask(TOOLS, name) for name in help_text.COMMANDS}

    def test_every_option_of_every_tool_is_read(self):
        for name, told in self.commands.items():
            tool, *words = help_text.COMMANDS[name]
            printed = subprocess.run([TOOLS / tool, *words, "--help"], text=True, capture_output=True, check=True).stdout
            # CLI11 lists options from column 3 on.
            listed = re.findall(r"^  (?:-\w,)?(--[\w-]+)", printed.partition("\nUsage: ")[2], re.MULTILINE)
            with self.subTest(command=name):
                self.assertEqual([option.names[-1] for option in told.options], listed)
                self.assertGreater(len(listed), 3)
                self.assertEqual([option.names for option in told.options if not option.text], [])
                page = pages.command(told)
                self.assertEqual([option for option in listed if f"`{option}`" not in page], [])

    def completed(self, tool: str, *typed: str) -> list:
        """Words that bash offers to complete the last of the typed words."""
        script = completions.bash(self.commands[tool], self.commands)
        function = "_" + tool.replace("-", "_")
        words = " ".join(f"'{word}'" for word in (tool, *typed))
        done = subprocess.run(["bash", "-ec", f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed)}; {function} || true\n"
                               'printf "%s\\n" "${COMPREPLY[@]}"'], text=True, capture_output=True, check=False, cwd=ROOT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_bash_completes_options_choices_files_and_subcommands(self):
        self.assertEqual(self.completed("hipress-plan", "--comp"), ["--compute-time", "--compare"])
        self.assertEqual(self.completed("hipress-plan", "--job", ""), ["mean", "broadcast"])
        self.assertEqual(self.completed("hipress-plan", "--cluster", "CHANGE"), ["CHANGELOG.md"])
        self.assertEqual(self.completed("hipress-sim", "sw"), ["sweep"])
        self.assertEqual(self.completed("hipress-sim", "sweep", "--sh"), ["--shard"])
        self.assertEqual(self.completed("hipress-compll", "-f", "m"), ["mxnet"])

    def test_the_scripts_write_and_refuse(self):
        script = ROOT / "scripts/write_reference.py"
        with tempfile.TemporaryDirectory() as folder:
            refused = subprocess.run([sys.executable, "-B", script, "man", folder, "--tools", folder], text=True,
                                     capture_output=True, check=False)
            self.assertEqual(refused.returncode, 2)
            self.assertRegex(refused.stderr, r"has no hipress-compll, .*: build them by scripts/build.sh demo")
            subprocess.run([sys.executable, "-B", script, "man", folder, "--tools", TOOLS], capture_output=True, check=True)
            written = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file()}
            self.assertTrue({"man/man1/hipress-plan.1", "man/man1/hipress-sim-sweep.1", "bash-completion/completions/hipress-sim",
                             "zsh/site-functions/_hipress-sim", "fish/vendor_completions.d/hipress-sim.fish"} <= written)
        unknown = subprocess.run([ROOT / "scripts/docs.sh", "--nonsense"], text=True, capture_output=True, check=False)
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))

    def test_the_c_and_python_interfaces_are_read(self):
        header = (ROOT / "runtime/hipress.h").read_text()
        names = [name for name, _, _ in pages.declarations(header)]
        functions = re.findall(r"^HIPRESS_API [\w* ]*?(\w+)\(", header, re.MULTILINE)
        self.assertEqual(set(functions) - set(names), set())
        self.assertIn("hipress_status", names)
        self.assertIn("## hipress_call\n", pages.c_interface(header))
        page = pages.python(ROOT / "python/hipress")
        for public in ("attach", "plan", "LocalUpdates"):
            self.assertRegex(page, rf"\n## {public}\n")


if __name__ == "__main__":
    unittest.main()
