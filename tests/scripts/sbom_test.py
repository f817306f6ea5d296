"""Tests of the bill of materials of a folder with programs: sbom_test.py [-v]"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/sbom.py"


def library(name: str) -> pathlib.Path:
    """Path of a library of this machine, by its name."""
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return pathlib.Path(next(line.split()[-1] for line in said.splitlines() if line.split()[0] == name)).resolve()


class SbomTest(unittest.TestCase):
    """Tests on a folder with a program that needs zlib, and a copy of zlib."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "packed"
        (self.folder / "lib").mkdir(parents=True)
        (self.folder / "bin").mkdir()
        self.document = pathlib.Path(folder.name) / "sbom.json"
        self.compile("bin/tool", str(library("libz.so.1")))
        shutil.copyfile(library("libz.so.1"), self.folder / "lib/libz.so.1")

    def compile(self, name: str, *options: str) -> None:
        subprocess.run(["cc", "-x", "c", "-", "-o", self.folder / name, "-x", "none", "-Wl,--no-as-needed", *options],
                       input=b"int main(void) { return 0; }", check=True)

    def sbom(self, *arguments: object, status: int = 0) -> str:
        done = subprocess.run([sys.executable, SCRIPT, self.folder, *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "SOURCE_DATE_EPOCH": "1000000000"})
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_it_lists_programs_libraries_and_their_packages(self):
        licences = self.folder / "licenses"
        self.sbom("--output", self.document, "--licenses", licences)
        document = json.loads(self.document.read_text())
        packages = {one["name"]: one for one in document["packages"]}
        self.assertEqual(packages["zlib1g"]["licenseDeclared"], "Zlib")
        self.assertRegex(packages["zlib1g"]["externalRefs"][0]["referenceLocator"], r"^pkg:deb/debian/zlib1g@\d")
        self.assertLessEqual({"hipress", "libcli11-dev", "libeigen3-dev", "nlohmann-json3-dev"}, packages.keys())
        self.assertEqual([file["fileName"] for file in document["files"]], ["./bin/tool", "./lib/libz.so.1"])
        self.assertEqual(document["creationInfo"]["created"], "2001-09-09T01:46:40Z")
        self.assertIn("Mark Adler", (licences / "zlib1g.txt").read_text())
        self.sbom("--check", self.document)

    def test_packages_of_some_builds_are_named(self):
        self.sbom("--output", self.document, "--compiled-in", "libssl-dev")
        document = json.loads(self.document.read_text())
        self.assertIn("libssl-dev", {one["name"] for one in document["packages"]})
        self.assertIn({"spdxElementId": "SPDXRef-Package-hipress", "relationshipType": "STATIC_LINK",
                       "relatedSpdxElement": "SPDXRef-Package-libssl-dev"}, document["relationships"])

    def test_a_planted_library_is_found(self):
        self.sbom("--output", self.document)
        shutil.copyfile(library("libbz2.so.1.0"), self.folder / "lib/libbz2.so.1.0")
        self.assertIn("lib/libbz2.so.1.0 is in the folder and not in the document", self.sbom("--check", self.document, status=1))
        self.assertIn("no row of scripts/sbom.py has the licence of libbz2-1.0", self.sbom("--output", self.document, status=2))

    def test_a_planted_need_is_found(self):
        self.compile("bin/tool", str(library("libz.so.1")), str(library("libbz2.so.1.0")))
        self.sbom("--output", self.document)
        self.assertIn("bin/tool needs libbz2.so.1.0, which is neither in the folder nor part of every Linux",
                      self.sbom("--check", self.document, status=1))

    def test_another_library_of_that_name_is_found(self):
        self.sbom("--output", self.document)
        shutil.copyfile(library("libbz2.so.1.0"), self.folder / "lib/libz.so.1")
        self.assertIn("lib/libz.so.1 has other bytes", self.sbom("--check", self.document, status=1))

    def test_a_library_that_is_gone_is_found(self):
        self.sbom("--output", self.document)
        (self.folder / "lib/libz.so.1").unlink()
        said = self.sbom("--check", self.document, status=1)
        self.assertIn("lib/libz.so.1 is in the document and not in the folder", said)
        self.assertIn("bin/tool needs libz.so.1", said)

    def test_a_folder_without_programs_is_refused(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.assertIn("has no programs", self.sbom("--output", self.document, status=2))


if __name__ == "__main__":
    if not all(map(shutil.which, ("cc", "dpkg-query", "readelf"))):
        print("skipped: needs cc, readelf and Debian's dpkg-query")
        sys.exit(77)
    unittest.main()
