"""Tests of the tools with inputs that are no files, outputs that cannot be written, and machines without memory or disk space:
edges_test.py FOLDER_OF_TOOLS"""

import os
import pathlib
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

TOOLS = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAN = ("hipress-plan", "--nnodes", "4")
SIM = ("hipress-sim", "--plan", "all", "--nnodes", "4")
EXEC = ("hipress-exec", "--plan", "all", "--nnodes", "2")
PROGRAM = ROOT / "kernels/algorithms/TerngradEncode.pse"

# Every option that names an output, at the end of a command that would take long, in vain if the output cannot be written.
OUTPUTS = (
    (*PLAN, "--input", "vgg19", "--search", "timeline", "--budget", "600", "--output"),
    (*SIM, "--input", "vgg19", "--trace"),
    ("hipress-sim", "sweep", ROOT / "examples/sweep.yaml", "--output"),
    (*EXEC, "--input", "vgg19", "--trace"),
    ("hipress-profile", "--output"),
    ("hipress-import", ROOT / "tests/data/traces/feeder.chakra.et.gz", "--output"),
)

COUNTS = (
    (*PLAN, "--input", "vgg19", ("--nnodes", "--evaluations", "--seed", "--jobs", "--replicas")),
    (*SIM, "--input", "vgg19", ("--nnodes", "--seed", "--replicas", "--jobs", "--steady")),
    ("hipress-sim", "sweep", ROOT / "examples/sweep.yaml", ("--jobs",)),
    (*EXEC, "--input", "vgg19", ("--nnodes", "--iterations", "--warmup", "--seed")),
    ("hipress-profile", ("--nnodes", "--passes")),
)

# Every option that names an input file, at the end of a command with the tool's other required options.
INPUTS = (
    (*PLAN, "--input"),
    (*PLAN, "--input", "vgg19", "--profile"),
    (*PLAN, "--input", "vgg19", "--cluster"),
    (*PLAN, "--input", "vgg19", "--profile", "sosp21", "--explain", "--plan"),
    (*SIM, "--input"),
    ("hipress-sim", "--input", "vgg19", "--nnodes", "4", "--plan"),
    ("hipress-sim", "sweep", "--output", "/dev/null"),
    (*EXEC, "--input"),
    ("hipress-exec", "--input", "vgg19", "--nnodes", "2", "--plan"),
    ("hipress-profile", "--anew", "links", "--output", "/dev/null", "--base"),
    ("hipress-compll",),
    ("hipress-import",),
)


class EdgesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, command, **more) -> subprocess.CompletedProcess:
        tool, *arguments = command
        return subprocess.run([TOOLS / tool, *arguments], cwd=self.folder, text=True, capture_output=True, timeout=60,
                              check=False, **more)

    def refuses(self, command, *words: str):
        done = self.run_tool(command)
        with self.subTest(command=command, stderr=done.stderr):
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            for word in words:
                self.assertIn(word, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_outputs_are_checked_before_the_work(self):
        for command in OUTPUTS:
            self.refuses((*command, ""), "empty")
            self.refuses((*command, "x" * 300), "File name too long", "give a shorter name")
            self.refuses((*command, self.folder), "is a folder")
            self.refuses((*command, "none/x"), "choose a folder that exists")
            self.refuses((*command, "/proc/x"), "choose a folder that exists")
        self.refuses(("hipress-compll", PROGRAM, "-b", "--target", "cpp", "-o", "/proc"), "choose a folder that exists")
        self.refuses(("hipress-compll", PROGRAM, "-w", "-r", "-f", "pytorch", "-o", "/proc"), "choose a folder that")

    def test_counts_are_whole_and_within_their_range(self):
        for *command, options in COUNTS:
            for option in options:
                for wrong in ("-1", "99999999999999999999", "-18446744073709551613", "010", "3.5"):
                    self.refuses((*command, f"{option}={wrong}"), f"{option}: must be a whole number", f"'{wrong}'")

    def test_only_files_and_pipes_are_inputs(self):
        for command in INPUTS:
            self.refuses((*command, "/dev/zero"), "/dev/zero: is a device or terminal, give a regular file or a pipe")
            self.refuses((*command, "/tmp/"), "/tmp/: is a folder")

    def test_what_cannot_be_read_is_not_empty(self):
        for command in INPUTS:
            # Nothing is mapped at address 0 of a process, so reading there fails as on a bad disk.
            self.refuses((*command, "/proc/self/mem"), "/proc/self/mem: cannot be read: Input/output error")

    def test_the_log_of_the_kernel_does_not_hang(self):
        self.refuses((*PLAN, "--input", "/proc/kmsg"), "/proc/kmsg: ")

    def test_pipes_are_inputs(self):
        shell = 'exec "$0" --nnodes 4 --input'
        for script in (f"{shell} <(echo a,1000; sleep 0.1; echo b,2000)", f"(echo a,1000; echo b,2000) | {shell} /dev/stdin",
                       f"mkfifo pipe; (echo a,1000; echo b,2000) >pipe & {shell} pipe"):
            done = subprocess.run(["bash", "-c", script, TOOLS / "hipress-plan"], cwd=self.folder, text=True,
                                  capture_output=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)
            plan = self.folder / "SeCoPaPlan.txt"
            self.assertEqual([line.split(",")[0] for line in plan.read_text().splitlines()], ["a", "b"])
            plan.unlink()

    def test_memory_that_runs_out_cuts_no_model_short(self):
        model = self.folder / "model.csv"
        model.write_text("".join(f"gradient_with_a_rather_long_name_{number},{number + 1}\n" for number in range(5120)))
        command = (*PLAN, "--input", model)
        if "Sanitizer" in self.limited(command, 40000).stderr:
            self.skipTest("sanitizers need more address space")
        (self.folder / "SeCoPaPlan.txt").unlink(missing_ok=True)
        # With less memory, the system's loader fails with messages of its own.
        least = next(kibibytes for kibibytes in range(8000, 100000, 500)
                     if self.limited((TOOLS / "hipress-plan", "--version"), kibibytes).returncode == 0)
        statuses = set()
        for kibibytes in (*range(least, least + 16000, 500), 60000, 100000, 400000):
            done = self.limited(command, kibibytes)
            plan = self.folder / "SeCoPaPlan.txt"
            with self.subTest(kibibytes=kibibytes, stderr=done.stderr):
                statuses.add(done.returncode)
                if done.returncode == 0:
                    self.assertEqual(len(plan.read_text().splitlines()), 5120)
                    plan.unlink()
                else:
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr, r"hipress-plan: .*out of memory.*ulimit -v")
                    self.assertFalse(plan.exists())
        self.assertEqual(statuses, {0, 1})

    def test_threads_that_cannot_start_are_done_without(self):
        command = (*PLAN, "--input", "vgg19", "--profile", "sosp21", "--budget", "1", "--jobs", "1024", "--output", "plan.yaml")
        stack, room = 256 << 20, 1 << 30

        def limit() -> None:
            """Limits memory so that three stacks fit; the rest is less than a fourth stack, but more than the tool takes."""
            resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
            resource.setrlimit(resource.RLIMIT_AS, (room, room))

        # Several arenas of malloc would take the rest.
        done = self.run_tool(command, preexec_fn=limit, env={**os.environ, "MALLOC_ARENA_MAX": "1"})
        if "Sanitizer" in done.stderr:
            self.skipTest("sanitizers need more address space")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "plan.yaml").exists())

    def limited(self, command, kibibytes: int) -> subprocess.CompletedProcess:
        limit = kibibytes * 1024
        return self.run_tool(command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

    def test_a_full_disk_is_a_failed_run(self):
        room = 1000  # bytes; each of these files has more
        for command in ((*PLAN, "--input", "vgg19", "--profile", "sosp21", "--evaluations", "1", "--output"),
                        (*SIM, "--input", "vgg19", "--trace")):
            old = self.folder / "old.yaml"
            old.write_text("old")
            old.chmod(0o600)
            done = self.run_tool((*command, old),
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("old.yaml: cannot be written: File too large: ", done.stderr)
            self.assertEqual((old.read_text(), list(self.folder.iterdir())), ("old", [old]))
            # With enough space, the file is replaced and keeps its mode.
            self.assertEqual(self.run_tool((*command, old)).returncode, 0)
            self.assertEqual(stat.S_IMODE(old.stat().st_mode), 0o600)
            old.unlink()

    def test_a_read_only_file_system_is_named_before_the_work(self):
        mounted = 'mount -t tmpfs -o ro tmpfs "$0" && cd "$0" && exec "$@"'
        read_only = ("unshare", "--mount", "sh", "-c", mounted, str(self.folder))
        if subprocess.run([*read_only, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("only root may mount")
        cases = [((tool, *arguments, "out"), {}, "out: cannot be written (choose a folder that exists and is writable)")
                 for tool, *arguments in OUTPUTS]
        cases += [((*command, "--input", "vgg19", "--algorithm", PROGRAM), {"HIPRESS_CACHE": str(self.folder / "cache")},
                   "set HIPRESS_CACHE to a folder of yours") for command in (PLAN, SIM, EXEC)]
        for (tool, *arguments), environment, words in cases:
            done = subprocess.run([*read_only, TOOLS / tool, *arguments], text=True, capture_output=True, timeout=60, check=False,
                                  env={**os.environ, **environment})
            with self.subTest(tool=tool, arguments=arguments):
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(words, done.stderr)
                self.assertIn("Read-only file system", done.stderr)

    def test_a_signal_leaves_no_temporary_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            tool = subprocess.Popen([TOOLS / SIM[0], *SIM[1:], "--input", "bert_large", "--trace", "trace.json"],
                                    cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with tool:
                # The signal has to come while the trace is written; otherwise this test shows nothing.
                while tool.poll() is None and not os.listdir(self.folder):
                    time.sleep(0.0002)
                tool.send_signal(number)
                status = tool.wait(timeout=60)
            self.assertIn(status, (-number, 0))
            self.assertIn(os.listdir(self.folder), ([], ["trace.json"]))
            (self.folder / "trace.json").unlink(missing_ok=True)


if __name__ == "__main__":
    unittest.main()
