"""Tests of the project's rules that a compiler does not check: layers, names, and the wording of comments."""

import ast
import io
import os
import pathlib
import re
import tokenize
import unittest
from typing import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Folders with a library, in the order in which CMake adds them. Each may use the folders before it.
LAYERS = re.findall(r"^add_subdirectory\((\w+)\)  ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
#: Folders that a folder must not use although the order would allow it: the expansion of plans must not depend on hardware.
FORBIDDEN = {"casync": {"kernels", "transport"}}
#: Every folder of the project.
FOLDERS = sorted(folder.name for folder in ROOT.iterdir()
                 if folder.is_dir() and any(folder.iterdir()) and folder.name[0] != "." and folder.name not in ("build", "dist"))

#: Comments, characters, raw and ordinary strings of C++. One pattern finds all of them, so that none counts as a part of another.
LITERAL = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)'|"
                     r'R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:[^"\\\n]|\\.)*)"', re.DOTALL)
#: Source whose strings are options of NVIDIA's compiler.
OTHERS_OPTIONS = {"kernels/user/nvrtc.cpp"}

#: Beginnings of comments that delay the main clause, and phrases for which there is a plainer word.
RELATIVE = re.compile(r"///?<?!? ?(?:What|How|Whether|Of|That|Where)\b")
AT_ANY_PLACE = re.compile(r"///< ?(?:of|what|how|whether|that|where)\b|//.*\b(?:is none|nobody|as far as|at the least|so many)\b")
#: Phrases in comments of several lines: "is no plan", "is another." for a different one, errors without a verb, "from `x` on", "The
#: same".
PHRASE = re.compile(r"(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b|such\b|other\b)\w|"
                    r"\b(?:is|are) another[.,;:)]|\banother (?:than|number of|kind|type|format|version)\b|"
                    r"(?:^//[/<]*|[.;]) (?:\w+::)*(?:[A-Z]\w*Error|[a-z_]+_(?:error|argument)) (?:if|for|when|unless|that)\b|"
                    r"\bfrom `[^`]+` on\b|^//[/<]* The same\b")
#: Folders whose comments still have such phrases, with the largest allowed number.
UNREVISED: dict[str, int] = {}

#: Such beginnings and phrases in docstrings and comments of Python, without quotation marks and number signs.
RELATIVE_IN_PYTHON = re.compile(r"(?:What|How|Whether|Of|That|Where|Which|Who|Whom|Whose|As|In|By|So)\b", re.IGNORECASE)
PHRASE_IN_PYTHON = re.compile(r"\b(?:is none|nobody|as far as|at the least|so many)\b")
#: Folders of Python in which no docstring or comment may have them.
PYTHON_FOLDERS = ("python/hipress", "bench", "examples", "scripts/sosp21", "tests/python")
#: Files whose docstrings are made of other sources' texts, the schemas of requests.
GENERATED_PYTHON = {"python/hipress/_requests.py"}


def phrases_in_comments(text: str) -> list[str]:
    """Comments of a C++ source with a phrase of PHRASE. Consecutive lines of comments are one comment."""
    comments, last = [], -1
    for literal in LITERAL.finditer(text):
        if literal[0].startswith("//"):
            if last >= 0 and re.fullmatch(r"\n[ \t]*", text[last:literal.start()]):
                comments[-1] += " " + literal[0].lstrip("/< ")
            else:
                comments.append(literal[0])
            last = literal.end()
    return [comment for comment in comments if PHRASE.search(comment)]


def relative_comments(path: pathlib.Path) -> list[str]:
    """Comments and their paragraphs with a beginning of RELATIVE or a phrase of AT_ANY_PLACE. Further lines may begin with any
    word."""
    found, before = [], ""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        text = line.strip()
        continued = text.startswith("//") and before.startswith("//") and before.strip("/") != ""
        if AT_ANY_PLACE.search(text) or (RELATIVE.match(text) and not continued):
            found.append(f"{path.relative_to(ROOT)}:{number}: {text}")
        before = text
    return found


def comments_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yields (line, text) of every docstring and comment of a Python source. Full lines of one comment are one text."""
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                yield one.lineno, one.value.value.strip()
    lines, block, last = text.splitlines(), (0, ""), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        number, said = token.start[0], token.string.lstrip("#: ")
        is_full_line = lines[number - 1].lstrip().startswith("#")
        if is_full_line and last == number - 1:
            block = block[0], f"{block[1]} {said}"
        else:
            yield block
            block = number, said
        last = number if is_full_line else 0
    yield block


def relative_in_python(name: str, text: str) -> list[str]:
    """Lists docstrings and comments of a Python source that begin with a relative clause or a preposition, or have such a phrase."""
    return [f"{name}:{number}: {said.splitlines()[0]}" for number, said in sorted(comments_of_python(text))
            if RELATIVE_IN_PYTHON.match(said) or (name not in GENERATED_PYTHON and PHRASE_IN_PYTHON.search(said))]


def unnamed_names(text: str) -> set[str]:
    """Constants and types that a source defines at the top level of an unnamed namespace."""
    found, inside = set(), False
    for line in text.splitlines():
        if line == "namespace {":
            inside = True
        elif line == "}  // namespace":
            inside = False
        elif inside:
            constant = re.match(r"(?:constexpr|const) [^=({]*?(\w+)(?:\[\w*\])?(?: =|\{)", line)
            kind = re.match(r"(?:class|struct|enum class|enum) (\w+)(?!;)\b[^;]*$", line)
            found |= {match[1] for match in (constant, kind) if match}
    return found


def included_by(path: pathlib.Path, text: str):
    """Files of the project that a source with this text includes, relative to the root, whichever way the directives are
    written."""
    for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE):
        for found in (path.parent / name, ROOT / name):
            if found.is_file():
                yield pathlib.Path(os.path.relpath(found.resolve(), ROOT))
                break


def circle(arrows: dict) -> list:
    """A cycle of a graph, {node: set of nodes}: its nodes in order, with the first again at the end. Empty if there is no cycle."""
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
    """Graph of includes, {place: set of places}, between the places that place_of(path) assigns to files."""
    arrows = {}
    for path in files:
        for included in included_by(path, path.read_text()):
            here, there = place_of(path.relative_to(ROOT)), place_of(included)
            if here != there:
                arrows.setdefault(here, set()).add(there)
    return arrows


def unit(path) -> str:
    """Unit of a source and its header. The header of an interface that several files implement is a unit of its own."""
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
        """Looks for `folder/file.hpp` from the root, the page's folder, and the folder that a page of docs/ describes."""
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
        """Names are "folder: what holds". After the colon the sentence continues in lower case, except for names such as CUDA."""
        named = {path: re.findall(r'TEST_CASE\(\s*"([^"]*)"', path.read_text()) for path in (ROOT / "tests").rglob("*.cpp")}
        named |= {path: re.findall(r'add_test\(NAME "\w+: ([^"]*)"', path.read_text())
                  for path in (ROOT / "tests").rglob("CMakeLists.txt")}
        self.assertGreater(sum(map(len, named.values())), 1000)
        for path, names in named.items():
            for name in names:
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertNotRegex(name, r"^[A-Z][a-z]*(-[a-z]+)?,? ")

    def test_files_of_tests_have_one_form_of_name(self):
        self.assertEqual([str(path) for path in (ROOT / "tests").rglob("test_*") if path.suffix in (".cpp", ".py")], [])

    def test_only_tools_know_a_command_line(self):
        for folder in LAYERS[:-1]:
            for path in (ROOT / folder).rglob("*pp"):
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertNotRegex(path.read_text(), r"#include <(CLI|spdlog)/")

    def test_libraries_name_no_option_of_a_command_line(self):
        """Libraries name fields, `like_this`, which tools print as options (io/spelling.hpp)."""
        for folder in LAYERS[:-1]:
            for path in sorted((ROOT / folder).rglob("*")):
                name = str(path.relative_to(ROOT))
                if path.suffix not in {".cpp", ".hpp", ".cu", ".cuh", ".h"} or name in OTHERS_OPTIONS:
                    continue
                found = [literal["raw"] or literal["text"] or "" for literal in LITERAL.finditer(path.read_text())]
                with self.subTest(file=name):
                    self.assertEqual([text for text in found if re.search(r"--[a-z{]", text)], [])

    def test_comments_begin_with_a_noun_or_a_verb(self):
        for folder in (*LAYERS, "bench", "tests"):
            found = [line for path in sources(folder) for line in relative_comments(path)]
            with self.subTest(folder=folder):
                self.assertLessEqual(len(found), UNREVISED.get(folder, 0), "\n".join(found))

    def test_comments_have_no_phrases_that_are_read_twice(self):
        for folder in LAYERS:
            for path in sources(folder):
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertEqual(phrases_in_comments(path.read_text()), [])

    def test_phrases_in_comments_are_found(self):
        text = ('/// Throws if it\n/// is no file. There is no other.\nint a;  ///< is another.\n\n// The same for b.\nint b;\n'
                '/// Reads it; io::InputError if\n/// it is missing.\nint c;  // from `x` on\nconst char* d = "// is no text";\n')
        self.assertEqual([comment.lstrip("/< ").split()[0] for comment in phrases_in_comments(text)],
                         ["Throws", "is", "The", "Reads", "from"])

    def test_docstrings_begin_with_a_noun_or_a_verb(self):
        for folder in PYTHON_FOLDERS:
            paths = sorted((ROOT / folder).glob("*.py"))
            self.assertGreater(len(paths), 1, folder)
            for path in paths:
                name = str(path.relative_to(ROOT))
                with self.subTest(file=name):
                    self.assertEqual(relative_in_python(name, path.read_text()), [])

    def test_relative_docstrings_and_comments_are_found(self):
        text = ('"""What it does."""\n#: Number of steps,\n#: of a rank.\nSTEPS = 1  # of each\n\n\n'
                'def at_once(x):\n    """Sends so many bytes."""\n    # Waits\n    return "What"  #: as the caller wants\n')
        self.assertEqual([line.split(": ")[0] for line in relative_in_python("a.py", text)], ["a.py:1", "a.py:4", "a.py:8", "a.py:10"])

    def test_names_in_unnamed_namespaces_are_unique_in_their_folder(self):
        """Checks constants and types, because unity builds compile several files of a folder as one."""
        for folder in LAYERS:
            places = {}
            for path in sources(folder):
                if path.suffix == ".cpp" and "topologies" not in path.parts and not path.name.startswith("isa_"):
                    for name in unnamed_names(path.read_text()):
                        places.setdefault(name, set()).add(str(path.relative_to(ROOT)))
            # Each tool is a program of its own.
            shared = {name: files for name, files in places.items()
                      if len({file.rsplit("/", 1)[0] if folder == "tools" else folder for file in files}) < len(files)}
            with self.subTest(folder=folder):
                self.assertEqual(shared, {})

    def test_every_folder_has_a_map(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                self.assertTrue((ROOT / folder / "README.md").is_file())


if __name__ == "__main__":
    unittest.main()
