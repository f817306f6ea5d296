"""The architecture's rules that a compiler does not check."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Folders with a library, each of which may use those before it: the order in which they are added.
LAYERS = re.findall(r"^add_subdirectory\((\w+)\)  ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
#: What the order alone would allow: the expansion of plans knows no hardware.
FORBIDDEN = {"casync": {"kernels", "transport"}}

#: Comments, characters, raw and ordinary strings of C++, so that none of these is taken for part of another.
LITERAL = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)'|"
                     r'R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:[^"\\\n]|\\.)*)"', re.DOTALL)
#: Its strings are options of NVIDIA's compiler.
OTHERS_OPTIONS = {"kernels/cuda/nvrtc.cpp"}


def includes(folder: str):
    """(file, included folder) for every include of a project header in a folder's C++ and CUDA sources."""
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in {".cpp", ".hpp", ".cu", ".cuh"}:
            for included in re.findall(r'^#include "(\w+)/', path.read_text(), re.MULTILINE):
                yield path.relative_to(ROOT), included


class HouseTest(unittest.TestCase):
    def test_layers_are_read(self):
        self.assertEqual((LAYERS[0], "sim" in LAYERS, LAYERS[-1]), ("io", True, "tools"))

    def test_folders_include_only_what_lies_above_them(self):
        for position, folder in enumerate(LAYERS):
            allowed = set(LAYERS[: position + 1]) - FORBIDDEN.get(folder, set())
            for path, included in includes(folder):
                with self.subTest(file=str(path)):
                    self.assertIn(included, allowed)

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
        for folder in ROOT.iterdir():
            if folder.is_dir() and any(folder.iterdir()) and folder.name[0] != "." and folder.name != "build":
                with self.subTest(folder=folder.name):
                    self.assertTrue((folder / "README.md").is_file())


if __name__ == "__main__":
    unittest.main()
