"""Tests of the release's version: one place defines it, and the files that repeat it agree: release_test.py [-v]"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Files that repeat the version for readers outside the build, with the pattern of the line.
REPEATED = {"debian/changelog": r"^hipress \((\S+)\)", "CITATION.cff": r"^version: (\S+)$", "CHANGELOG.md": r"^## (\d\S+) "}
MOST_LINES = 40  # largest length of a version's section in CHANGELOG.md


def found(name: str, pattern: str) -> list[str]:
    return re.findall(pattern, (ROOT / name).read_text(), re.MULTILINE)


class ReleaseTest(unittest.TestCase):
    def test_files_repeat_the_version_of_the_build(self):
        version, = found("CMakeLists.txt", r"^project\(hipress VERSION ([\d.]+) ")
        for name, pattern in REPEATED.items():
            with self.subTest(name):
                self.assertEqual(found(name, pattern)[0], version)
        self.assertEqual(found("pyproject.toml", r'^version = '), [])

    def test_each_version_has_a_short_section(self):
        sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
        self.assertGreaterEqual(len(sections), 2)
        for section in sections:
            self.assertLessEqual(len(section.rstrip().splitlines()), MOST_LINES, section[:20])

    def test_versions_that_are_supported_are_listed(self):
        version, = found("CMakeLists.txt", r"^project\(hipress VERSION (\d+\.\d+)")
        self.assertEqual(found("SECURITY.md", r"^\| ([\d.]+) \| yes \|$"), [version])


if __name__ == "__main__":
    unittest.main()
