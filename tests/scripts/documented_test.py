"""Tests every command of every page: it is run as printed, or checked and listed with the reason why it is not run.

    documented_test.py [-v] FOLDER_OF_TOOLS         checks all pages, and runs those that take seconds
    documented_test.py [-v] FOLDER_OF_TOOLS PAGE    runs a page that has a long test
"""

import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

import documented_pages as documented
from documented_pages import NOT_RUN, PAGES, ROOT

PAGE = sys.argv.pop() if sys.argv[-1].endswith(".md") else None
TOOLS = pathlib.Path(sys.argv.pop()).resolve()


def ask(case: unittest.TestCase, printed: str, place: pathlib.Path) -> None:
    case.assertIn("if one thing were 10 % better:", printed)
    case.assertIn("break-even over bandwidth", printed)
    for name, size in (("sweep.csv", 1000), ("sweep.png", 10000), ("SeCoPaPlan.txt", 100)):
        case.assertGreater((place / name).stat().st_size, size)


def readme(case: unittest.TestCase, printed: str, _place: pathlib.Path) -> None:
    """Requires that the commands print lines like those on the page, in the same order. A line on the page may end in an
    ellipsis."""
    def words(text: str) -> list:
        # The plan depends on the time that the search took.
        text = re.sub(r"\): int8block .*", "): int8block", text)
        return [re.sub(r"\s+", " ", line) for line in re.sub(r"[\d.]+(ms|s| %)?", "#", text).splitlines()]

    said = words(printed)
    for block in documented.blocks("README.md"):
        if block.language != "":
            continue
        shown = words(block.text)
        begin = next((place for place, line in enumerate(said) if line[:20] == shown[0][:20]), 0)
        got = [line if not like.endswith("…") else f"{line[:len(like) - 1]}…" for line, like in zip(said[begin:], shown)]
        case.assertEqual(got, shown)


def prints(*texts: str, files: tuple = ()):
    """Makes a check that a page's commands print these texts and leave these files, which are not empty."""
    def check(case: unittest.TestCase, printed: str, place: pathlib.Path) -> None:
        for text in texts:
            case.assertIn(text, printed)
        for name in files:
            case.assertGreater((place / name).stat().st_size, 100, name)
    return check


def verified(count: int):
    """Makes a check that `count` replays verified their values."""
    def check(case: unittest.TestCase, printed: str, _place: pathlib.Path) -> None:
        case.assertEqual(printed.count("verified: yes"), count, printed)
    return check


#: Checks of the output of a page's commands.
CHECKS = {
    "README.md": readme,
    "docs/arithmetic.md": prints("hgx-h100", "more hosts pay up to 4"),
    "docs/broadcast.md": prints("verified: yes", "from", files=("weights.yaml", "broadcast.png")),
    "docs/cluster.md": verified(1),
    "docs/collectives.md": prints("p5.48xlarge", "a3_mega"),
    "docs/evaluation.md": prints("HiPress", "ZeRO"),
    "docs/replay.md": prints("verified: yes", files=("out/rank0/1.f32", "out/rank1/0.f32")),
    "docs/how-to/algorithm.md": prints("verified: yes", files=("plan.yaml",)),
    "docs/how-to/ask.md": ask,
    "docs/how-to/cluster.md": prints("8 nodes × 4 GPUs", "16 nodes × 8 GPUs"),
    "docs/how-to/fsdp.md": prints("fsdp"),
    "docs/how-to/model.md": prints("plan.yaml: 3 gradients"),
    "docs/how-to/slow-links.md": prints("local(steps=100, fragments=8, overlap=1)"),
    "docs/how-to/trace.md": prints("the traced job can gain at most"),
    "docs/learning.md": prints("int4block: ", "times the steps of none", files=("pilot.yaml",)),
    "docs/local-updates.md": prints("text, 2 ranks, local(steps=20", "local(steps=100, fragments=8, overlap=1)"),
    "docs/low-rank.md": prints("verified: yes", files=("low_rank.csv", "low_rank.png")),
    "docs/planner.md": prints("break-even over bandwidth"),
    "docs/profiler.md": prints(files=("sampled.yaml",)),
    "docs/sharded-training.md": prints("verified: yes", files=("model.yaml", "plan.yaml", "step.json")),
    "docs/simulator.md": prints(files=("sweep.csv", "sweep.png", "break_even.png", "part4.csv")),
    "docs/sosp21.md": prints(files=("sosp21.png",)),
    "docs/sparse.md": prints("verified: yes", files=("plan.yaml", "sparse.png")),
    "docs/traces.md": prints("the traced job can gain at most 4.7 %", files=("graph/hipress.0.et", "graph/hipress.3.et")),
}


class PageTest(unittest.TestCase):
    """Tests that run the pages."""

    def check(self, page: str) -> None:
        module = documented.lacking(page)
        if module:
            self.skipTest(f"{page}: no {module} for this python3")
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            CHECKS[page](self, documented.run(page, place, TOOLS), place)

    @unittest.skipUnless(PAGE, "of a page with a long test")
    def test_the_page(self):
        self.check(PAGE)

    @unittest.skipIf(PAGE, "one page was asked for")
    def test_pages_that_take_seconds(self):
        for name, page in PAGES.items():
            if not page.long and not page.test:
                with self.subTest(page=name):
                    self.check(name)


@unittest.skipIf(PAGE, "one page was asked for")
class CompleteTest(unittest.TestCase):
    """Tests that no command is left out."""

    def test_commands_stand_in_blocks_of_sh(self):
        found = [f"{block.where}: put the command into a block of sh" for page in documented.pages()
                 for block in documented.blocks(page) if block.language in ("", "indented", "bash", "shell", "console")
                 and documented.is_program(block.text.split()[0].lstrip("$ ") if block.text.split() else "")]
        self.assertEqual(found, [])

    def test_every_block_is_run_or_listed_with_a_reason(self):
        found = set()
        for page in documented.pages():
            for block in documented.blocks(page):
                if block.language == "sh" and not block.reason:
                    found.add(page)
                    self.assertIn(page, PAGES, f"{block.where}: run the page (PAGES), or say why not (NOT_RUN)")
        self.assertEqual(set(PAGES) - found, set(), "nothing on these pages is run")
        self.assertEqual(set(CHECKS), {name for name, page in PAGES.items() if not page.test})

    def test_reasons_are_of_blocks_that_are_there(self):
        for page, reasons in NOT_RUN.items():
            texts = [block.text for block in documented.blocks(page) if block.language == "sh"]
            for beginning, reason in reasons.items():
                with self.subTest(page=page, block=beginning):
                    self.assertTrue(any(text.startswith(beginning) for text in texts))
                    self.assertTrue(not reason.test or (ROOT / reason.test).is_file(), reason.test)

    def test_pages_of_other_tests_are_named_there(self):
        for name, page in PAGES.items():
            if page.test:
                text = (ROOT / page.test).read_text(encoding="utf-8")
                self.assertTrue(pathlib.Path(name).name in text or pathlib.Path(name).stem in page.test, name)

    def test_what_is_not_run_has_programs_options_and_files_that_are_there(self):
        self.assertEqual([fault for page in documented.pages() for fault in documented.faults(page, TOOLS)], [])

    def test_options_in_running_text_exist(self):
        found = []
        for page in documented.pages():
            text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
            for span in re.findall(r"`((?:hipress-|scripts/)[^`]*)`", text):
                try:
                    found += [f"{page}: `{span}`: {fault}" for words in documented.commands(span.replace("…", "").replace("\n", " "))
                              if documented.is_program(words[0]) for fault in documented.unknown(words, TOOLS)]
                except ValueError:  # a quotation that is not closed is no command
                    pass
        self.assertEqual(found, [])

    def test_commands_in_comments_and_docstrings_have_options_that_exist(self):
        """Checks lines of sources that begin with a program of this project."""
        found = []
        for pattern in ("scripts/**/*.py", "scripts/*.sh", "examples/**/*.*", "python/**/*.py", "bench/*.cpp", "*/*.hpp", "tools/**/*.hpp"):
            for path in sorted(ROOT.glob(pattern)):
                if not path.is_file() or path.suffix not in (".py", ".sh", ".hpp", ".cpp", ".yaml", ".sbatch"):
                    continue
                for line in path.read_text(encoding="utf-8").splitlines():
                    command = re.match(r"\s*(?:#|//)?\s+((?:hipress-\w+|scripts/\w+\.(?:sh|py)) (?!\().*)", line)
                    if not command or "--" not in command[1] or re.search(r"[\"'`]\W*$", line):
                        continue
                    words = re.sub(r"  .*|[\[\]…\\]", " ", command[1]).replace("|", " ").replace("'", "").split()
                    found += [f"{path.relative_to(ROOT)}: {fault}" for fault in documented.unknown(words, TOOLS)]
        self.assertEqual(found, [])


class ReadingTest(unittest.TestCase):
    """Tests of the parser of pages."""

    def test_blocks(self):
        text = "# X\n\n    scripts/a.sh\n    b\n\n    c\n\ntext\n    no block\n\n```sh\nd\n\ne\n```\n\n```\nf\n```\n\n    g\n"
        self.assertEqual([(block.line, block.language, block.text) for block in documented.blocks("x.md", text)],
                         [(3, "indented", "scripts/a.sh\nb\n\nc"), (11, "sh", "d\n\ne"), (17, "", "f"), (21, "indented", "g")])

    def test_commands(self):
        text = ("cat > a.yaml <<'END'\nnot: one\nEND\nA=1 hipress-x --b 'c; d' | e > f   # --no\nfor x in 1 2; do\n  g \\\n    $x &\n"
                "done\n(h && i)\nJ=$(k l)\n")
        self.assertEqual(list(documented.commands(text)), [
            ["cat", ">", "a.yaml"], ["hipress-x", "--b", "c; d"], ["e", ">", "f"], ["for", "x", "in", "1", "2"], ["g", "$x"],
            ["h"], ["i"], ["k", "l"]])

    def test_what_is_wrong_is_found(self):
        for command, fault in (("hipress-plan --inputs x", "hipress-plan has no option --inputs"),
                               ("hipress-sim sweep --slurms 4", "hipress-sim sweep has no option --slurms"),
                               ("hipress-plans --input x", "hipress-plans is no tool"), ("scripts/no.py", "scripts/no.py is not there"),
                               ("scripts/validate.sh --quicker", "scripts/validate.sh has no option --quicker"),
                               ("rm -r x", "rm is no program that this test knows"),
                               ("cmake --preset relaese", "relaese is no preset")):
            self.assertEqual(documented.unknown(command.split(), TOOLS), [fault])
        made = {"b.yaml"}
        self.assertEqual(documented.missing("x a.yaml b.yaml --output c.yaml examples/sweep.yaml".split(), made),
                         ["a.yaml is neither there nor made before"])
        self.assertEqual(made, {"b.yaml", "c.yaml"})

    def test_a_failing_command_fails_its_page(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(documented, "script_of", lambda _: "false\necho on"):
            self.assertRaises(AssertionError, documented.run, "README.md", pathlib.Path(folder), TOOLS)


if __name__ == "__main__":
    unittest.main()
