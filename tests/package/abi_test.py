"""Compares the binary interface of libhipress.so with the release's: abi_test.py LIBRARY [--write] [-v]

hipress.abi is abidw's dump of a library that has the functions of hipress.h and does nothing. --write may write it after additions.
A change of a function or structure needs a new soname first."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "runtime/hipress.h"
KEPT = ROOT / "tests/package/hipress.abi"


def prototypes(header: str) -> list[str]:
    return re.findall(r"^HIPRESS_API [^;]*(?=;)", header, re.MULTILINE)


def built(header: str, folder: pathlib.Path) -> pathlib.Path:
    """Builds a library with the functions of a header."""
    (folder / "hipress.h").write_text(header)
    (folder / "functions.c").write_text('#include "hipress.h"\n' + "".join(f"{one} {{ __builtin_trap(); }}\n" for one in
                                                                           prototypes(header)))
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-Wl,-soname,libhipress.so.0", "functions.c", "-o", "libhipress.so"], cwd=folder,
                   check=True)
    return folder / "libhipress.so"


def dump(library: pathlib.Path, output: pathlib.Path) -> None:
    subprocess.run(["abidw", "--no-corpus-path", "--no-show-locs", "--no-comp-dir-path", "--type-id-style", "hash", "--out-file", output,
                    library], check=True)


class AbiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compared(self, header: str) -> tuple[int, str]:
        """Returns the status and the report of abidiff for the release and a header."""
        done = subprocess.run(["abidiff", "--no-show-locs", KEPT, built(header, self.folder)], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def test_the_interface_is_that_of_the_release(self):
        status, said = self.compared(HEADER.read_text())
        self.assertEqual(status, 0, f"{said}\nIf this only adds: {__file__} LIBRARY --write")

    def test_the_library_exports_the_functions_of_the_header_and_no_others(self):
        said = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        exported = {line.split()[-1].split("@")[0] for line in said.splitlines() if line.split()[1] in "TBDRVWi"}
        named = {re.search(r"(\w+)\(", one)[1] for one in prototypes(HEADER.read_text())}
        self.assertEqual(exported, named)

    def test_a_member_in_the_middle_and_a_function_that_is_gone_are_found(self):
        header = HEADER.read_text()
        for old, new, words in (("  int rank;  ", "  int64_t rank;  ", "hipress_options"),
                                ("HIPRESS_API void hipress_abort(", "static void hipress_abort(", "hipress_abort")):
            self.assertEqual(header.count(old), 1)
            status, said = self.compared(header.replace(old, new))
            self.assertTrue(status & ~3, said)
            self.assertIn(words, said)


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    if not shutil.which("abidiff") or not shutil.which("cc"):
        print("skipped: needs abidiff, of Debian's package abigail-tools, and cc")
        sys.exit(77)
    if sys.argv[1:] == ["--write"]:
        with tempfile.TemporaryDirectory() as made:
            dump(built(HEADER.read_text(), pathlib.Path(made)), KEPT)
        sys.exit()
    unittest.main()
