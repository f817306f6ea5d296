"""Tests of the package without torch: search for the library, and errors for a missing one and for other versions."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import hipress
from hipress import _engine, _library

CODE = "import hipress._library as l; l.library()"


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-B", "-c", code], env={**os.environ, **environment}, capture_output=True, text=True,
                          check=False)


class Library(unittest.TestCase):
    def test_a_library_that_is_not_there(self):
        done = run(CODE, HIPRESS_LIBRARY="/nowhere/libhipress.so")
        self.assertEqual(done.returncode, 1)
        self.assertIn("HIPRESS_LIBRARY is '/nowhere/libhipress.so', and there is no such file", done.stderr)

    def test_a_file_that_is_no_library(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(b"not a library")
            file.flush()
            done = run(CODE, HIPRESS_LIBRARY=file.name)
        self.assertIn(f"LibraryError: {file.name} cannot be loaded", done.stderr.replace("hipress._library.", ""))

    def test_a_library_of_another_kind(self):
        with open("/proc/self/maps") as maps:
            found = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)
        done = run(CODE, HIPRESS_LIBRARY=found)
        self.assertIn("is of another version than this package (it lacks hipress_options_init)", done.stderr)

    def test_structures_of_another_size(self):
        class Smaller(ctypes.Structure):
            _fields_ = _library.COptions._fields_[:-1]

        with mock.patch.object(_library, "COptions", Smaller):
            with self.assertRaisesRegex(_library.LibraryError, r"its hipress_options has \d+ bytes and its hipress_call_options \d+; \d+ and \d+ were"):
                _library._load()

    def test_the_package_is_imported_without_torch(self):
        done = run("import sys; sys.modules['torch'] = None\nimport hipress\nhipress.attach(None)")
        self.assertIn("ImportError: hipress.attach, LocalUpdates, verify and capture need PyTorch", done.stderr)


class Spares(unittest.TestCase):
    """Tests that libraries in a wheel are loaded if, and only if, the machine lacks them."""

    def opened(self, lacks):
        """Returns the spare libraries that are loaded on a machine that lacks some, in order, and the error."""
        loaded, said = [], None

        def load(path, mode=0):
            folder, name = os.path.split(path)
            if name == "libhipress.so":
                missing = [one for one in lacks if one not in loaded]
                if missing:
                    raise OSError(f"{missing[0]}: cannot open shared object file")
            elif folder:
                loaded.append(name)
            elif name in lacks:
                raise OSError(f"{name}: cannot open shared object file")

        with mock.patch.object(ctypes, "CDLL", load):
            try:
                _library._open(pathlib.Path("/wheel/lib/hipress/libhipress.so"))
            except OSError as error:
                said = str(error)
        return loaded, said

    def test_what_is_missing_is_given_and_nothing_else(self):
        gcc = ["libgcc_s.so.1", "libstdc++.so.6"]
        verbs = ["libnl-3.so.200", "libnl-route-3.so.200", "libibverbs.so.1"]
        for lacks, given in (([], []), (gcc[-1:], gcc), (verbs[-1:], verbs), ([gcc[-1], verbs[-1]], gcc + verbs)):
            self.assertEqual(self.opened(lacks), (given, None))

    def test_what_nothing_helps_says_what_it_said_alone(self):
        self.assertEqual(self.opened(["libmystery.so"]), ([], "libmystery.so: cannot open shared object file"))


class Package(unittest.TestCase):
    def test_its_version_is_that_of_the_source_tree(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        release, _, commit = hipress.__version__.partition("+")
        self.assertIn(f"project(hipress VERSION {release} ", (root / "CMakeLists.txt").read_text())
        if (root / ".git").exists() and shutil.which("git"):
            self.assertRegex(commit, "^g[0-9a-f]{10}$")

    def test_a_copy_has_the_version_and_commit_of_its_build_or_none(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(pathlib.Path(hipress.__file__).parent, f"{folder}/hipress")
            for built, named in (("", "0+unknown"), ('VERSION = "1.2.3"\nCOMMIT = "1a2b3c4d5e"\n', "1.2.3+g1a2b3c4d5e"),
                                 ('VERSION = "1.2.3"\nCOMMIT = "unknown"\n', "1.2.3")):
                pathlib.Path(folder, "hipress/_built.py").write_text(built)
                if not built:
                    pathlib.Path(folder, "hipress/_built.py").unlink()
                done = run("import hipress; print(hipress.__version__)", PYTHONPATH=folder)
                self.assertEqual(done.stdout, f"{named}\n")

    def test_all_that_it_names_is_there_and_documented(self):
        missing = []
        for name in hipress.__all__:
            try:
                found = getattr(hipress, name)
            except ImportError:
                continue  # no torch
            if callable(found) and not (found.__doc__ or "").strip():
                missing.append(name)
        self.assertEqual(missing, [])
        with self.assertRaisesRegex(AttributeError, "module 'hipress' has no attribute 'atach'"):
            hipress.atach


class EngineAlone(unittest.TestCase):
    """Tests of an engine with one rank, whose mean is what it submits."""

    def engine(self, plan="none", job="alone"):
        gradients = [_library.Gradient("a", (20, 5)), _library.Gradient("b", (3,))]
        return _engine.Engine(gradients, plan=plan, transport="memory", rendezvous=f"local:library-test-{job}")

    @staticmethod
    def average(engine, values):
        arrays = [(ctypes.c_float * len(one))(*one) for one in values]
        tensors = (_library.CTensor * len(arrays))()
        for tensor, array in zip(tensors, arrays):
            tensor.data, tensor.elements = ctypes.addressof(array), len(array)
        engine.submit(len(arrays), (ctypes.c_uint32 * len(arrays))(*range(len(arrays))), tensors)
        engine.wait()
        return [list(array) for array in arrays]

    def test_means_and_a_second_iteration(self):
        engine = self.engine()
        for _ in range(2):
            self.assertEqual(self.average(engine, [[1.5] * 100, [1, 2, 3]]), [[1.5] * 100, [1, 2, 3]])
        engine.close()
        engine.close()
        self.assertTrue(engine.closed)

    def test_errors_are_in_words(self):
        with self.assertRaisesRegex(_engine.InvalidRequest, "no-such-plan"):
            self.engine("no-such-plan")
        engine = self.engine()
        with self.assertRaisesRegex(_engine.InvalidRequest, "'a'.*the tensor has 99 elements"):
            self.average(engine, [[1.0] * 99, [1, 2, 3]])
        engine.abort("enough")
        engine.close()

    def test_a_state_goes_to_a_file_and_back(self):
        first = self.engine("onebit", "first")
        values = [[float(i % 7) - 2 for i in range(100)], [1, -2, 4]]
        self.average(first, values)
        with tempfile.TemporaryDirectory() as folder:
            first.save_state(f"{folder}/state")
            second = self.engine("onebit", "second")
            second.load_state(f"{folder}/state")
            self.assertEqual(self.average(first, values), self.average(second, values))
            # Without the residual, the mean is different.
            third = self.engine("onebit", "third")
            self.assertNotEqual(self.average(third, values), self.average(second, values))
            with self.assertRaisesRegex(_engine.InvalidRequest, "load it under the plan"):
                self.engine("none", "fourth").load_state(f"{folder}/state")
            with open(f"{folder}/state", "r+b") as file:
                file.truncate(40)
            with self.assertRaisesRegex(_engine.InvalidRequest, "state"):
                second.load_state(f"{folder}/state")


if __name__ == "__main__":
    unittest.main()
