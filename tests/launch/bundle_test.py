"""Tests of the bundle that cpack makes, in a root file system that otherwise holds only a static busybox.

Usage: bundle_test.py FOLDER_OF_TOOLS BUILD_FOLDER CPACK
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from processes import LaunchTest, require_programs, without_launchers

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU_CHECK = ROOT / "scripts/gpu_check.sh"
#: Runs a command in namespaces, as their root. Its mounts are visible only there, and end with the last process.
ENTER = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec"]
IN_ROOT = 'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; root=$1; shift; exec chroot "$root" "$@"'
#: Files that belong to the machine and must not be in a bundle.
DRIVERS = ("libcuda.", "libnccl.", "libnvidia-")


def make_root(folder: pathlib.Path) -> None:
    """Makes a root file system with busybox only: no C library, no loader."""
    for name in ("bin", "dev", "proc", "tmp", "opt"):
        (folder / name).mkdir()
    busybox = pathlib.Path(shutil.which("busybox"))
    if "INTERP" in subprocess.run(["readelf", "--program-headers", busybox], capture_output=True, text=True,
                                  check=True).stdout:
        raise RuntimeError(f"{busybox} is not static: install busybox-static")
    shutil.copy(busybox, folder / "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (folder / "bin" / applet).symlink_to("busybox")


class BundleTest(unittest.TestCase):
    build: pathlib.Path
    cpack: str

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hipress_bundle_")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        subprocess.run([cls.cpack, "--config", cls.build / "CPackConfig.cmake", "-B", cls.folder], check=True,
                       stdout=subprocess.DEVNULL)
        archive, = cls.folder.glob("hipress-*.tar.gz")
        cls.root = cls.folder / "a root"  # blanks in the path must not matter
        cls.root.mkdir()
        make_root(cls.root)
        with tarfile.open(archive) as packed:
            packed.extractall(cls.root / "opt")
        cls.bundle, = (cls.root / "opt").iterdir()

    def in_root(self, *command: str, timeout_s: float = 300) -> subprocess.CompletedProcess:
        """Runs a command in the root file system, in /tmp. Names of folders are as seen from inside."""
        shell = ["/bin/sh", "-c", 'cd /tmp && exec "$@"', "sh", *command]
        return subprocess.run([*ENTER, IN_ROOT, "sh", str(self.root), *shell], env={"PATH": "/bin:/usr/bin:/usr/sbin:/sbin"},
                              capture_output=True, text=True, check=False, timeout=timeout_s)

    def tool(self, name: str) -> str:
        return f"/opt/{self.bundle.name}/bin/{name}"

    def test_drivers_are_left_out_and_libraries_are_there(self):
        names = {path.name for path in (self.bundle / "lib").rglob("*")}
        self.assertEqual({name for name in names if name.startswith(DRIVERS)}, set())
        self.assertLessEqual({"libgloo.so.0", "libstdc++.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}, names)

    def test_every_program_starts_with_nothing_installed(self):
        for program in sorted((self.bundle / "libexec/hipress").glob("hipress-*")):
            with self.subTest(program.name):
                done = self.in_root(self.tool(program.name), "--version")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.startswith(program.name), done.stdout)

    def test_all_that_the_check_of_gpus_runs_is_there(self):
        table = re.search(r"^steps=\((.*?)^\)", GPU_CHECK.read_text(), re.DOTALL | re.MULTILINE)[1]
        needs = {program for row in table.split("\n") if row.strip() for program in row.split("|")[2].split()}
        self.assertIn("bench_replay", needs)
        for program in needs - {"compute-sanitizer", "ncu", "python3"}:  # the machine must have those
            self.assertTrue((self.bundle / "bin" / program).exists(), program)

    def test_tests_run_with_nothing_installed(self):
        for program, tests in (("test_kernels", "draws are*,every length*"), ("test_replay", "a digest*"),
                               ("bench_replay", "--version")):
            with self.subTest(program):
                done = self.in_root(self.tool(program), tests)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("No test", done.stdout)

    def test_tests_of_gpus_fail_without_one_where_it_is_required(self):
        start = [self.tool("test_replay"), "GPUs verify as thread ranks*", "--warn", "NoTests"]
        done = self.in_root(*start)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("skipped: no GPU", done.stdout)
        done = self.in_root("env", "HIPRESS_REQUIRE_GPU=1", *start)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("CUDA shows no GPU", done.stdout)

    def test_tests_find_their_programs_in_the_bundle(self):
        share = self.bundle / "share/hipress"
        for name in ("kernels/algorithms/OnebitEncode.pse", "kernels/algorithms/OnebitDecode.pse",
                     "tests/kernels/data/Spread.pse"):
            self.assertTrue((share / name).exists(), name)
        # The program must not contain paths of this source tree.
        program = (self.bundle / "libexec/hipress/test_kernels").read_bytes()
        for name in ("kernels/algorithms", "tests/kernels/data"):
            self.assertNotIn(f"{ROOT}/{name}".encode(), program)

    def test_the_demo_passes_with_nothing_installed(self):
        done = self.in_root(self.tool("hipress-demo"), timeout_s=3000)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        print(done.stdout, file=sys.stderr)
        self.assertEqual(done.stdout.count("verified: yes"), 8)  # two topologies with four plans each
        self.assertTrue((self.root / "tmp/hipress-demo.out/profile.yaml").exists())

    def test_processes_meet_with_nothing_installed(self):
        start = (f'for rank in 0 1; do RANK=$rank WORLD_SIZE=2 {self.tool("hipress-exec")} --input resnet50 --plan all '
                 "--topology ring --rendezvous file:///tmp --timeout 60 & pids=\"$pids $!\"; done; "
                 "for pid in $pids; do wait $pid || exit 1; done")
        done = self.in_root("sh", "-c", start)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verified: yes", done.stdout)

    def test_a_machine_with_a_new_c_library_and_no_ibverbs_lends_the_one_and_is_given_the_other(self):
        for folder in (self.root / "lib64", self.root / "lib/x86_64-linux-gnu"):
            shutil.copytree(self.bundle / "lib/hipress/glibc", folder)
            self.addCleanup(shutil.rmtree, self.root / folder.relative_to(self.root).parts[0])
        done = self.in_root("sh", "-x", self.tool("hipress-exec"), "--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\+ exec /lib64/ld-linux-x86-64.so.2 --library-path \S*/lib/hipress/ibverbs ")

    def test_here_the_machine_s_own_c_library_is_taken_with_the_bundle_s_libraries(self):
        command = [self.bundle / "bin/hipress-sim", "--input", "resnet50", "--plan", "all", "--topology", "ring",
                   "--nnodes", "4"]
        traced = subprocess.run(["sh", "-x", *command], env=without_launchers(), capture_output=True, text=True,
                                check=False)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        last = [line for line in traced.stderr.splitlines() if line.startswith("+ exec")][0]
        self.assertIn("+ exec /lib64/ld-linux-x86-64.so.2", last)
        self.assertIn(f"{self.bundle}/lib/hipress", last)

    def test_what_a_program_of_the_machine_loads_fits_debian_12_and_ubuntu_22_04(self):
        """Checks libhipress.so and the libraries beside it. They must not contain search paths of the machine that built them."""
        newest = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30)}  # Ubuntu 22.04's, the older of the two
        libraries = [path for path in (self.bundle / "lib/hipress").iterdir() if path.is_file() and not path.is_symlink()]
        self.assertTrue(any(path.name.startswith("libhipress.so") for path in libraries))
        for library in libraries:
            said = subprocess.run(["readelf", "-V", "-d", library], capture_output=True, text=True, check=True).stdout
            for family, most in newest.items():
                needed = [tuple(map(int, number.split("."))) for number in re.findall(rf"\b{family}_([\d.]+)", said)]
                self.assertLessEqual(max(needed, default=most), most, library.name)
            for path in re.findall(r"R(?:UN)?PATH\) .*\[(.*)\]", said):
                self.assertEqual(path, "$ORIGIN", library.name)

    def test_a_link_to_a_launcher_runs_it(self):
        link = self.folder / "plan"
        link.symlink_to(self.bundle / "bin/hipress-plan")
        done = subprocess.run([link, "--version"], capture_output=True, text=True, check=False)
        self.assertTrue(done.stdout.startswith("hipress-plan"), done.stderr)


if __name__ == "__main__":
    require_programs("busybox", "unshare", "readelf")
    sys.argv.pop(1)
    BundleTest.build, BundleTest.cpack = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
    unittest.main()
