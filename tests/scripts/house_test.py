"""The architecture's rules that a compiler does not check."""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Folders with a library, each of which may use those before it: the order in which they are added.
LAYERS = re.findall(r"^add_subdirectory\((\w+)\)  ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
#: What the order alone would allow: the expansion of plans knows no hardware.
FORBIDDEN = {"casync": {"kernels", "transport"}}
#: Every folder of the project.
FOLDERS = sorted(folder.name for folder in ROOT.iterdir()
                 if folder.is_dir() and any(folder.iterdir()) and folder.name[0] != "." and folder.name != "build")

#: Comments, characters, raw and ordinary strings of C++, so that none of these is taken for part of another.
LITERAL = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)'|"
                     r'R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:[^"\\\n]|\\.)*)"', re.DOTALL)
#: Its strings are options of NVIDIA's compiler.
OTHERS_OPTIONS = {"kernels/user/nvrtc.cpp"}


def included_by(path: pathlib.Path, text: str):
    """The files of the project that a source with this text includes, from the root: however the directives are written."""
    for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE):
        for found in (path.parent / name, ROOT / name):
            if found.is_file():
                yield pathlib.Path(os.path.relpath(found.resolve(), ROOT))
                break


def circle(arrows: dict) -> list:
    """One circle of a graph, {node: set of nodes}, as its nodes in order with the first again at the end; empty: there is none."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return [*path[path.index(node):], node]
        if node in done:
            return []
        path.append(node)
        for following in sorted(arrows.get(node, ())):
            if found := visit(following):
                return found
        done.add(path.pop())
        return []

    for start in sorted(arrows):
        if found := visit(start):
            return found
    return []


def arrows_between(files, place_of):
    """Who includes whom, {place: set of places}, of files as place_of(path) sums them up."""
    arrows = {}
    for path in files:
        for included in included_by(path, path.read_text()):
            here, there = place_of(path.relative_to(ROOT)), place_of(included)
            if here != there:
                arrows.setdefault(here, set()).add(there)
    return arrows


def unit(path) -> str:
    """A source with its header; the header of an interface that is implemented in several files is one of its own."""
    return str(path) if path.suffix == ".h" else str(path.with_suffix(""))


def sources(folder: str):
    return [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".cpp", ".hpp", ".cu", ".cuh", ".h"}]


class HouseTest(unittest.TestCase):
    def test_layers_are_read(self):
        self.assertEqual((LAYERS[0], "sim" in LAYERS, LAYERS[-1]), ("io", True, "tools"))

    def test_folders_include_only_what_lies_above_them(self):
        for position, folder in enumerate(LAYERS):
            allowed = set(LAYERS[: position + 1]) - FORBIDDEN.get(folder, set())
            for path in sources(folder):
                for included in included_by(path, path.read_text()):
                    with self.subTest(file=str(path.relative_to(ROOT)), included=str(included)):
                        self.assertIn(included.parts[0], allowed)

    def test_folders_and_files_of_any_depth_form_no_circle(self):
        files = [path for folder in FOLDERS for path in sources(folder)]
        for place_of in (lambda path: str(path.parent), unit):
            arrows = arrows_between(files, place_of)
            self.assertGreater(len(arrows), len(LAYERS))
            self.assertEqual(circle(arrows), [])

    def test_circles_are_found(self):
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])
        self.assertEqual(circle({"a": {"b", "c"}, "b": {"c"}}), [])

    def test_every_way_to_include_is_read(self):
        text = '#include "io/error.hpp"\n#  include <sim/run.hpp>\n#include "../sim/run.hpp"\n#include "plan.hpp"\n#include <vector>\n'
        self.assertEqual([str(found) for found in included_by(ROOT / "casync" / "plan.cpp", text)],
                         ["io/error.hpp", "sim/run.hpp", "sim/run.hpp", "casync/plan.hpp"])

    def test_mains_parse_call_and_print(self):
        mains = sorted((ROOT / "tools").glob("*/main.cpp"))
        self.assertEqual(len(mains), 6)
        for main in mains:
            with self.subTest(file=str(main.relative_to(ROOT))):
                self.assertLessEqual(len(main.read_text().splitlines()), 120)

    def test_pages_name_files_that_there_are(self):
        """`folder/file.hpp` from the root, the page's folder, or the folder that a page of docs/ is about."""
        named = 0
        for page in sorted(ROOT.rglob("*.md")):
            if "build" in page.parts:
                continue
            for file in re.findall(r"`([\w.-]+/[\w./-]+\.(?:cpp|hpp|cu|cuh|h))`", page.read_text(encoding="utf-8")):
                named += 1
                with self.subTest(page=str(page.relative_to(ROOT)), file=file):
                    self.assertTrue(any((folder / file).is_file() for folder in (ROOT, page.parent, ROOT / page.stem))
                                    or pathlib.Path(file).stem == "name")
        self.assertGreater(named, 100)

    def test_names_of_tests_begin_in_lower_case(self):
        """"folder: what holds", a sentence that goes on after the colon; names such as CUDA stay as they are."""
        named = {path: re.findall(r'TEST_CASE\(\s*"([^"]*)"', path.read_text()) for path in (ROOT / "tests").rglob("*.cpp")}
        named |= {path: re.findall(r'add_test\(NAME "\w+: ([^"]*)"', path.read_text())
                  for path in (ROOT / "tests").rglob("CMakeLists.txt")}
        self.assertGreater(sum(map(len, named.values())), 1000)
        for path, names in named.items():
            for name in names:
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertNotRegex(name, r"^[A-Z][a-z]*(-[a-z]+)?,? ")

    def test_only_tools_know_a_command_line(self):
        for folder in LAYERS[:-1]:
            for path in (ROOT / folder).rglob("*pp"):
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertNotRegex(path.read_text(), r"#include <(CLI|spdlog)/")

    def test_libraries_name_no_option_of_a_command_line(self):
        """They name fields, `like_this`, and tools write these as options (io/spelling.hpp)."""
        for folder in LAYERS[:-1]:
            for path in sorted((ROOT / folder).rglob("*")):
                name = str(path.relative_to(ROOT))
                if path.suffix not in {".cpp", ".hpp", ".cu", ".cuh", ".h"} or name in OTHERS_OPTIONS:
                    continue
                found = [literal["raw"] or literal["text"] or "" for literal in LITERAL.finditer(path.read_text())]
                with self.subTest(file=name):
                    self.assertEqual([text for text in found if re.search(r"--[a-z{]", text)], [])

    def test_every_folder_has_a_map(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                self.assertTrue((ROOT / folder / "README.md").is_file())


if __name__ == "__main__":
    unittest.main()
