"""Tests of the wheel, in a virtual environment: wheel_test.py FOLDER_OF_TOOLS [--wheel FILE] [-v]

Without a file, the wheel is built in build/wheel first, which takes minutes the first time."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 25_000_000
MOST_INSTALL_S = 20
#: Versions in Ubuntu 22.04; the wheel's name has that of GLIBC.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30)}
PLATFORM = "manylinux_2_35_x86_64"


def build(folder: pathlib.Path) -> pathlib.Path:
    subprocess.run([sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "-q", "-w", folder, "-C", "build-dir=build/wheel"],
                   cwd=ROOT, env={**os.environ, "_PYTHON_HOST_PLATFORM": PLATFORM}, check=True)
    return next(folder.glob("hipress-*.whl"))


class WheelTest(unittest.TestCase):
    wheel: pathlib.Path | None = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hipress_wheel_")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.wheel = cls.wheel or build(cls.folder)
        cls.prefix = cls.folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", cls.prefix], check=True)
        began = time.monotonic()
        subprocess.run([cls.prefix / "bin/pip", "install", "-q", "--no-index", "--no-deps", cls.wheel], check=True)
        cls.install_s = time.monotonic() - began
        cls.package = next(cls.prefix.glob("lib/python*/site-packages/hipress"))

    def run_there(self, *command: str) -> subprocess.CompletedProcess:
        """Runs a command of the environment. It finds neither this source tree nor a compiler."""
        return subprocess.run([self.prefix / "bin" / command[0], *command[1:]], cwd=self.folder, env={"PATH": "/nonexistent"},
                              capture_output=True, text=True, check=False)

    def test_it_is_small_and_soon_there(self):
        self.assertLessEqual(self.wheel.stat().st_size, MOST_BYTES)
        print(f"{self.wheel.name}: {self.wheel.stat().st_size / 1e6:.1f} MB, installed in {self.install_s:.1f} s", file=sys.stderr)
        self.assertLessEqual(self.install_s, MOST_INSTALL_S)

    def test_its_name_says_how_old_the_c_library_may_be(self):
        self.assertTrue(self.wheel.name.endswith(f"-py3-none-{PLATFORM}.whl"))
        for library in self.package.rglob("*"):
            if library.is_file() and library.read_bytes()[:4] == b"\x7fELF":
                said = subprocess.run(["readelf", "-VW", library], capture_output=True, text=True, check=True).stdout
                for family, most in NEWEST.items():
                    needed = [tuple(map(int, number.split("."))) for number in re.findall(rf"\b{family}_([\d.]+)", said)]
                    self.assertLessEqual(max(needed, default=most), most, library.name)

    def test_it_brings_no_library_that_python_may_have_loaded_in_an_older_version(self):
        # hashlib loads Ubuntu 22.04's libcrypto.so.3, of OpenSSL 3.0.2; Debian 12's libssl.so.3 needs symbols of 3.0.3.
        self.assertEqual([path.name for path in (self.package / "lib/hipress").iterdir()
                          if path.name.startswith(("libcrypto", "libssl"))], [])

    @unittest.skipUnless(shutil.which("auditwheel"), "needs auditwheel, from PyPI")
    def test_auditwheel_agrees(self):
        done = subprocess.run(["auditwheel", "show", self.wheel], capture_output=True, text=True, check=False)
        self.assertIn(PLATFORM, done.stdout.replace("\n", " ").split("constrains")[-1], done.stdout)

    def test_it_answers_and_names_its_commit(self):
        done = self.run_there("hipress-plan", "--input", "llama3_8b", "--machine", "p5.48xlarge", "--hosts", "1,2,4", "--batch", "2",
                              "--seq", "8192", "--dtype", "mixed", "--checkpoint", "full", "--schedule", "fsdp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("more hosts pay up to 4"), done.stdout)
        done = self.run_there("python", "-m", "hipress")
        self.assertRegex(done.stdout, r"^hipress \d+\.\d+\.\d+(\+g[0-9a-f]{10})?: ")
        done = self.run_there("python", "-c", "import hipress; print(hipress.plan('vgg19', profile='a100-10g', nnodes=4).advice)")
        self.assertEqual(done.stdout, "compress\n", done.stderr)

    def test_every_tool_is_there_with_completions_and_a_man_page(self):
        tools = sorted(path.name for path in (self.package / "bin").iterdir())
        self.assertIn("hipress-plan", tools)
        for tool in tools:
            self.assertTrue(self.run_there(tool, "--version").stdout.startswith(tool), tool)
            self.assertEqual(self.run_there("python", "-m", "hipress", tool.removeprefix("hipress-"), "--version").returncode, 0)
            for name in (f"bash-completion/completions/{tool}", f"fish/vendor_completions.d/{tool}.fish", f"man/man1/{tool}.1"):
                self.assertTrue((self.prefix / "share" / name).is_file(), name)

    def test_it_names_no_folder_of_the_machine_that_built_it(self):
        with zipfile.ZipFile(self.wheel) as packed:
            for name in packed.namelist():
                self.assertNotIn(str(ROOT).encode(), packed.read(name), name)

    def test_its_bill_of_materials_is_that_of_its_files(self):
        share = self.package / "share/hipress"
        subprocess.run([sys.executable, ROOT / "scripts/sbom.py", self.package, "--check", share / "sbom.spdx.json"], check=True)
        packages = {one["name"] for one in json.loads((share / "sbom.spdx.json").read_text())["packages"]}
        self.assertLessEqual({"libssl-dev", "libyaml-cpp0.7", "zlib1g"}, packages)
        for name in packages - {"hipress", "cuda-cudart"}:
            self.assertTrue((share / f"licenses/{name}.txt").is_file(), name)

    def test_removed_it_leaves_nothing(self):
        shutil.copytree(self.prefix, self.folder / "copy", symlinks=True)
        python = [self.folder / "copy/bin/python3", "-m", "pip"]
        subprocess.run([*python, "uninstall", "-q", "-y", "hipress"], check=True)
        self.assertEqual([path for path in (self.folder / "copy").rglob("*hipress*") if "__pycache__" not in path.parts], [])


if __name__ == "__main__":
    sys.argv.pop(1)
    if "--wheel" in sys.argv:
        at = sys.argv.index("--wheel")
        WheelTest.wheel = pathlib.Path(sys.argv[at + 1]).resolve()
        del sys.argv[at:at + 2]
    unittest.main()
