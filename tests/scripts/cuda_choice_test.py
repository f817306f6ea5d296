"""Tests of cmake/HipressCuda.cmake, which decides whether a build has CUDA: cuda_choice_test.py CMAKE [-v]"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Asks as HipressDependencies.cmake does.
ASK = """include({root}/cmake/HipressCuda.cmake)
set(hipress_gpu_devices "{devices}/nvidia[0-9]*")
hipress_cuda_choice(choice)
set(taken "not asked")
if(NOT choice STREQUAL "OFF")
  hipress_takes_nvcc(taken ${{choice}})
endif()
message(STATUS "choice ${{choice}}, taken ${{taken}}")
"""
#: Prints its version as nvcc does.
NVCC = """#!/bin/sh
echo "nvcc: NVIDIA (R) Cuda compiler driver"
echo "Cuda compilation tools, release {release}, V{release}.89"
"""


class CudaChoiceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "ask.cmake").write_text(ASK.format(root=ROOT, devices=self.folder))

    def ask(self, choice: str, release: str | None = None) -> subprocess.CompletedProcess:
        """Configures with an nvcc of that release, or with none."""
        nvcc = self.folder / "nvcc"
        if release:
            nvcc.write_text(NVCC.format(release=release))
            nvcc.chmod(0o755)
        return subprocess.run([CMAKE, f"-DHIPRESS_CUDA={choice}",
                               f"-DCMAKE_CUDA_COMPILER={nvcc if release else 'CMAKE_CUDA_COMPILER-NOTFOUND'}", "-P",
                               self.folder / "ask.cmake"], capture_output=True, text=True, check=False)

    def says(self, said: str, *asked: str) -> None:
        with self.subTest(asked=asked):
            done = self.ask(*asked)
            self.assertEqual((done.returncode, done.stdout), (0, f"-- {said}\n"), done.stderr)

    def refuses(self, said: str, *asked: str) -> None:
        with self.subTest(asked=asked):
            done = self.ask(*asked)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, " ".join(done.stderr.split()))  # cmake wraps lines

    def test_a_toolkit_that_is_new_enough_is_taken(self):
        for release in ("12.4", "12.10", "13.0"):
            for choice in ("AUTO", "ON"):
                self.says(f"choice {choice}, taken TRUE", choice, release)
        self.says("choice OFF, taken not asked", "OFF", "13.0")

    def test_without_one_auto_goes_without_and_on_fails(self):
        self.says("choice AUTO, taken FALSE", "AUTO")
        self.refuses("HIPRESS_CUDA=ON, but no CUDA compiler was found: put nvcc of CUDA 12.4 or later on the PATH", "ON")

    def test_with_an_older_one_auto_warns_and_goes_without_and_on_fails(self):
        for release in ("11.8", "12.0"):
            self.says("choice AUTO, taken FALSE", "AUTO", release)
            self.assertRegex(" ".join(self.ask("AUTO", release).stderr.split()),
                             rf"CUDA {release} \(.*/nvcc\) is older than 12\.4: built without the CUDA back end")
            self.refuses(f"is of CUDA {release}: put nvcc of CUDA 12.4 or later on the PATH", "ON", release)

    def test_gpu_is_auto_where_there_is_a_gpu(self):
        self.says("choice OFF, taken not asked", "GPU", "13.0")
        (self.folder / "nvidiactl").touch()  # a driver without a GPU
        self.says("choice OFF, taken not asked", "gpu", "13.0")
        (self.folder / "nvidia0").touch()
        self.says("choice AUTO, taken TRUE", "GPU", "13.0")
        self.says("choice AUTO, taken FALSE", "GPU")

    def test_the_choice_is_auto_or_a_boolean(self):
        for written, choice in (("auto", "AUTO"), ("on", "ON"), ("1", "ON"), ("True", "ON")):
            self.says(f"choice {choice}, taken TRUE", written, "12.8")
        for written in ("off", "Off", "0", "FALSE", "no"):
            self.says("choice OFF, taken not asked", written, "12.8")
        for written in ("", "2", "cuda", "ONE", "yes please"):
            self.refuses(f"HIPRESS_CUDA is '{written}'; it takes AUTO, GPU, ON or OFF", written, "12.8")


if __name__ == "__main__":
    unittest.main()
