"""Finds the commands of the pages, and lists those that tests run and the reasons why others are not run. Commands stand in blocks
of sh. The default test, or a long test of the page, runs a page's commands in order in one temporary folder (`run`). A block that
no test can run is a row of NOT_RUN; `faults` still checks its programs, options and files.

    documented_pages.py --long    prints the pages that have a long test, for CMake
"""

import dataclasses
import functools
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Dict, Iterator, List, Optional, Set, Tuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from reference import links  # noqa: E402  (found through the path above)


@dataclasses.dataclass(frozen=True)
class Page:
    """Conditions under which the blocks of a page are run."""
    long: bool = False  #: takes more than some seconds, so that it has a test of its own under the label long
    needs: Tuple[str, ...] = ()  #: Python modules that its commands import
    test: str = ""  #: the file that runs the page, if it is not documented_test.py


TRAINING = "tests/python/documented_test.py"
#: Every page with a block that is run.
PAGES = {
    "README.md": Page(),
    "docs/arithmetic.md": Page(),
    "docs/broadcast.md": Page(long=True, needs=("matplotlib",)),
    "docs/c-api.md": Page(test="tests/package/build_consumer.cmake"),
    "docs/cluster.md": Page(long=True),
    "docs/collectives.md": Page(),
    "docs/evaluation.md": Page(long=True),
    "docs/replay.md": Page(),
    "docs/how-to/algorithm.md": Page(long=True),
    "docs/how-to/ask.md": Page(needs=("matplotlib",)),
    "docs/how-to/cluster.md": Page(),
    "docs/how-to/fsdp.md": Page(),
    "docs/how-to/model.md": Page(),
    "docs/how-to/slow-links.md": Page(),
    "docs/how-to/trace.md": Page(),
    "docs/learning.md": Page(long=True, needs=("torch", "numpy")),
    "docs/local-updates.md": Page(long=True, needs=("torch", "numpy")),
    "docs/low-rank.md": Page(needs=("matplotlib",)),
    "docs/mxnet.md": Page(test="tests/compll/wrappers/mxnet_test.py"),
    "docs/pictures.md": Page(test="tests/scripts/pictures_test.py"),
    "docs/planner.md": Page(long=True),
    "docs/profiler.md": Page(),
    "docs/pytorch-training.md": Page(test=TRAINING),
    "docs/pytorch.md": Page(test="tests/compll/wrappers/pytorch_test.py"),
    "docs/sharded-training.md": Page(long=True, needs=("torch", "numpy")),
    "docs/simulator.md": Page(long=True, needs=("matplotlib",)),
    "docs/sosp21.md": Page(long=True, needs=("matplotlib",)),
    "docs/sparse.md": Page(long=True, needs=("matplotlib",)),
    "docs/tensorflow.md": Page(test="tests/compll/wrappers/tensorflow_test.py"),
    "docs/traces.md": Page(),
    "docs/tutorial.md": Page(test=TRAINING),
    "kernels/compll/language.md": Page(test="tests/compll/tutorial_test.py"),
}


@dataclasses.dataclass(frozen=True)
class Reason:
    """Reason why a block is not run."""
    text: str
    test: str = ""  #: the file that tests the same in another way
    given: Tuple[str, ...] = ()  #: files that it reads and that the reader brings
    makes: Tuple[str, ...] = ()  #: files that it writes under names of its own


BUILDS = Reason("sets up with root's packages and builds, minutes or hours", test="tests/scripts/setup_test.py")
MEASURES = Reason("measures in real time on network namespaces, which only root makes", test="tests/scripts/validate_test.py")
BENCHMARK = Reason("measures for minutes", test="bench/CMakeLists.txt")
SLURM = Reason("needs a Slurm", test="tests/launch/slurm_test.py")
REDIS = Reason("needs a Slurm of several nodes and a Redis", test="tests/launch/redis_test.py")
BUNDLE = Reason("builds the bundle and takes it to a cluster", test="tests/launch/bundle_test.py",
                makes=("build/release/hipress-0.2.0-linux-x86_64.tar.gz", "hipress-0.2.0-linux-x86_64.tar.gz"))
PACKAGES = Reason("compiles everything, for minutes", test="tests/launch/wheel_test.py")
GPU = Reason("needs a GPU", test="tests/scripts/gpu_kit_test.py",
             makes=("gpu_kit/run.sh", "gpu_check.out/gpu_check.json"))
#: Blocks that are not run, by page: the beginning of the first line, and the reason.
NOT_RUN: Dict[str, Dict[str, Reason]] = {
    "README.md": {"scripts/demo.sh": BUILDS},
    "CONTRIBUTING.md": {"scripts/setup.sh": BUILDS, "scripts/test.sh --sanitize": BUILDS},
    "tests/README.md": {"scripts/test.sh": BUILDS},
    "docs/broadcast.md": {"scripts/validate.py": MEASURES},
    "docs/cluster.md": {
        "cmake --preset release": BUNDLE, "srun": SLURM, "sbatch": SLURM, "job=$(sbatch": SLURM,
        "mpirun": Reason("needs several machines", test="tests/launch/mpirun_test.py"),
        "torchrun": Reason("needs several machines and GPUs", test="tests/launch/torchrun_test.py"),
        "printf 'bind": REDIS, "(umask 077": REDIS},
    "docs/demo.md": {"scripts/demo.sh": BUILDS,
                     "GLIBC_TUNABLES": Reason("replays with the profile of the demo", test="tests/scripts/demo_test.py",
                                              given=("build/demo/profile.yaml",))},
    "docs/evaluation.md": {"scripts/validate.sh": MEASURES, "scripts/test.sh": BUILDS, "build/release/bin/bench": BENCHMARK,
                           "scripts/validate.py": MEASURES},
    "docs/gpu.md": {"scripts/gpu_kit.sh": GPU,
                    "scripts/kernel_gate.py": Reason("needs a CUDA toolkit", test="tests/scripts/kernel_gate_test.py")},
    "docs/how-to/slurm.md": {"sbatch": SLURM},
    "docs/install.md": {"pip wheel": PACKAGES, "dpkg-buildpackage": PACKAGES,
                        "unzip": dataclasses.replace(PACKAGES, makes=("unpacked/hipress/share/hipress/sbom.spdx.json",))},
    "docs/pytorch-training.md": {
        "pip install": Reason("compiles everything, for minutes"),
        "torchrun": Reason("Debian's torchrun fails with its Python", test="tests/launch/torchrun_test.py")},
    "docs/sharded-training.md": {"hipress-import": Reason("needs a trace of an FSDP job", test="tests/traces/sharded_test.cpp",
                                                          given=("rank0.json.gz", "gpus.yaml"))},
    "docs/simulator.md": {"hipress-sim sweep examples/sweep.yaml --output sweep.csv --slurm": Reason(
        "needs a Slurm", test="tests/scripts/sweep_test.py")},
    "docs/tutorial.md": {"scripts/build.sh": BUILDS},
    "docs/validation.md": {"scripts/validate.sh": MEASURES},
}

#: Subcommands of tools, which have options of their own.
SUBCOMMANDS = {("hipress-sim", "sweep"), ("hipress-sim", "collectives"), ("hipress-import", "collectives"),
               ("hipress-import", "topology")}
#: Scripts whose experiments have options of their own.
EXPERIMENTING = {"validate.py", "validate.sh"}
#: Modules of the Python package that are programs.
MODULES = {("python3", "-m", f"hipress.{module}") for module in ("capture", "pilot", "plot")}
#: Programs that are not ours, with the option that lists their options; None: options are not checked.
FOREIGN = {"cmake": "--help", "ctest": "--help", "srun": "--help", "sbatch": "--help", "mpirun": "--help", "torchrun": None,
           "tar": "--help", "scp": None, "pip": None, "redis-server": None, "c++": None, "cc": None, "dpkg-buildpackage": None, "apt-get": None, "unzip": None, "cpack": "--help",
           "python3": None, "sh": None}
#: Commands of the shell, and programs of every system.
ORDINARY = {"cat", "cd", "cp", "echo", "export", "for", "head", "mkdir", "printf", "sed", "umask", "wait", "man"}
#: Options whose value is a file or folder that is written.
OUTPUTS = {"--output", "--json", "--trace", "--report", "--plot", "--log", "--means", "--export-chakra"}
#: Words that count as files.
FILE = re.compile(r"(?!-)[\w./-]+\.(ya?ml|json|csv|txt|gz|zst|png|pse|sbatch|py|sh|et|f32|c|so|cpp)")


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code on a page."""
    page: str
    line: int
    language: str  #: as the fence says; "indented": there is none
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def reason(self) -> Optional[Reason]:
        """Reason why the block is not run; None if it is run."""
        for beginning, reason in NOT_RUN.get(self.page, {}).items():
            if self.text.startswith(beginning):
                return reason
        return None


def blocks(page: str, text: Optional[str] = None) -> List[Block]:
    """All blocks of code of a page, in order."""
    lines = ((ROOT / page).read_text(encoding="utf-8") if text is None else text).splitlines()
    found, begin, language = [], 0, None
    for number, line in enumerate([*lines, ""], 1):
        if fence := re.match(r" *```(\S*)", line):
            if language in (None, "indented"):
                begin, language = number, fence[1]
            else:
                found.append(Block(page, begin, language, "\n".join(lines[begin:number - 1])))
                language = None
        elif language is None and line.startswith("    ") and (number == 1 or not lines[number - 2].strip()):
            begin, language = number, "indented"
        elif language == "indented" and line.strip() and not line.startswith("    "):
            found.append(Block(page, begin, language, "\n".join(text[4:] for text in lines[begin - 1:number - 1]).strip()))
            language = None
    if language == "indented":
        found.append(Block(page, begin, language, "\n".join(text[4:] for text in lines[begin - 1:]).strip()))
    return found


def pages() -> List[str]:
    """All pages of the tree that can have commands. CHANGELOG.md has none."""
    return [str(page.relative_to(ROOT)) for page in links.pages(ROOT) if page.name != "CHANGELOG.md"]


def is_program(word: str) -> bool:
    """True for the name of a program of this project, or of one with which pages start such programs."""
    return bool(re.fullmatch(r"(build/release/bin/)?(hipress-\w+|bench_\w+)|(scripts|examples|bench)/[\w/]+\.(sh|py)", word)) or \
        word in FOREIGN


def commands(text: str) -> Iterator[List[str]]:
    """Simple commands of a script, each as a list of words, without comments, here-documents, leading assignments, and the
    operators between commands."""
    text = re.sub(r"<<'?(\w+)'?(.*)\n(?:.*\n)*?\1(\n|$)", r"\2\n", text.replace("\\\n", " "))
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: List[str] = []
        for token in [*lexer, ";"]:
            if re.fullmatch(r"[;&|()]+", token):
                while words and (re.match(r"\w+=", words[0]) or words[0] in ("do", "done", "then")):
                    words.pop(0)
                if words:
                    yield words
                words = []
            else:
                words.append(token)


@functools.lru_cache(maxsize=None)
def options_of(tools: pathlib.Path, program: Tuple[str, ...]) -> Optional[Set[str]]:
    """Options in a program's help; None if its help cannot be printed."""
    name = program[0].split("/")[-1]
    if name in FOREIGN and program not in MODULES:
        if FOREIGN[name] is None or not shutil.which(name):
            return None
        asked: List[str] = [name, FOREIGN[name]]
    elif re.match("hipress-|bench_", name):
        asked = [str(tools / name), *program[1:], "--help"]
    elif name.endswith(".sh"):
        text = (ROOT / program[0]).read_text(encoding="utf-8")
        behind = {"validate.sh": ("scripts/validate.py", *program[1:]), "demo.sh": ("scripts/demo.py",), "test.sh": ("ctest",)}.get(name)
        return set(re.findall(r"--[\w-]+", text)) | ((options_of(tools, behind) or set()) if behind else set())
    else:
        words = list(program[1:]) if name == "python3" else [str(ROOT / program[0]), *program[1:]]
        asked = [sys.executable, "-B", *words, "--help"]
    done = subprocess.run(asked, text=True, capture_output=True, timeout=60, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    if "ModuleNotFoundError" in done.stderr or name in FOREIGN and done.returncode != 0:  # srun without a slurm.conf
        return None
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", done.stdout + done.stderr))


def split(words: List[str]) -> List[List[str]]:
    """Splits a command into the words of a launcher and those of the program that it starts."""
    for index, word in enumerate(words[1:], 1):
        if words[0] in ("srun", "mpirun", "torchrun", "python3") and re.match("hipress-|-m$", word):
            return [words[:index], words[index:]] if word != "-m" else [words]
    return [words]


def unknown(words: List[str], tools: pathlib.Path) -> List[str]:
    """Sentences about an unknown program or unknown options of a command."""
    name = words[0].split("/")[-1]
    if name in ORDINARY or "$" in words[0] or re.fullmatch(r"hipress-(demo|gpu-check)|gpu_kit/run\.sh", words[0]):
        return []
    if not is_program(words[0]):
        return [f"{words[0]} is no program that this test knows"]
    if re.match("hipress-|bench_", name) and not (tools / name).is_file():
        return [f"{name} is no tool"] if name.startswith("hipress-") else []  # benchmarks need not be built
    if name.endswith((".sh", ".py")) and not (ROOT / words[0]).is_file():
        return [f"{words[0]} is not there"]
    program, rest = (words[0],), words[1:]
    if rest[:1] and ((name, rest[0]) in SUBCOMMANDS or name in EXPERIMENTING and rest[0][0] != "-"):
        program, rest = (words[0], rest[0]), rest[1:]
    elif tuple(words[:3]) in MODULES:
        program, rest = tuple(words[:3]), rest[2:]
        script = next((index for index, word in enumerate(rest) if word.endswith(".py")), len(rest))
        rest = rest[:script]
    elif name == "cmake" and "--preset" in rest:
        preset = rest[rest.index("--preset") + 1]
        if f'"name": "{preset}"' not in (ROOT / "CMakePresets.json").read_text(encoding="utf-8"):
            return [f"{preset} is no preset"]
    known = options_of(tools, program)
    if known is None:
        return []
    given = [word.partition("=")[0] for word in rest if re.match(r"--[a-z]", word)]
    return [f"{' '.join(program)} has no option {option}" for option in given if option not in known]


def missing(words: List[str], made: Set[str]) -> List[str]:
    """Files that a command reads although they are neither in the tree nor in `made`. Adds the files that the command makes to
    `made`."""
    lost = []
    for before, word in zip(["", *words], words):
        if before in OUTPUTS or before in (">", ">>") or before == "tee":
            made.add(word)
        elif before not in ("--plan", "--rendezvous") and FILE.fullmatch(word) and word not in made and \
                not (ROOT / word).exists():
            lost.append(f"{word} is neither there nor made before")
    return lost


def faults(page: str, tools: pathlib.Path) -> List[str]:
    """Sentences about faults in those commands of a page that are not run."""
    said = []
    made: Set[str] = set()
    for block in blocks(page):
        if block.language != "sh":
            continue
        made.update(block.reason.makes + block.reason.given if block.reason else ())
        for words in commands(block.text):
            lost = missing(words, made)
            if block.reason:
                said += [f"{block.where}: {fault}" for part in split(words) for fault in unknown(part, tools)]
                said += [f"{block.where}: {fault}" for fault in lost]
    return said


def script_of(page: str) -> str:
    """Script of a page's blocks that are run."""
    return "\n".join(block.text for block in blocks(page) if block.language == "sh" and not block.reason)


def lacking(page: str) -> Optional[str]:
    """First Python module that the page's commands need and this python3 lacks; None if it lacks none."""
    for module in PAGES[page].needs:
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
            return module
    return None


def run(page: str, place: pathlib.Path, tools: pathlib.Path, timeout_s: float = 1500) -> str:
    """Runs a page's blocks in an empty folder, to which it adds links to the tree's folders. Returns their output. Raises
    AssertionError, with all the output, if a command fails."""
    for name in ("scripts", "tests", "models", "profiler", "kernels", "python", "bench"):
        (place / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "examples", place / "examples")  # copied, because a command changes into it and back
    (place / "build").mkdir()
    (place / "build/release").symlink_to(tools.parent)
    (place / "bin").mkdir()
    # A link would not do: a virtual environment's python3 finds its environment by its own path.
    (place / "bin/python3").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (place / "bin/python3").chmod(0o755)
    environment = {**os.environ, "PATH": f"{place}/bin:{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python"),
                   "HIPRESS_LIBRARY": str(tools.parent / "runtime/libhipress.so"), "HIPRESS_CACHE": str(place / "cache")}
    with tempfile.TemporaryFile("w+") as printed, subprocess.Popen(
            ["bash", "-euo", "pipefail", "-xc", script_of(page)], cwd=place, stdout=subprocess.PIPE, stderr=printed, text=True,
            env=environment, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if process.returncode != 0:
            printed.seek(0)
            raise AssertionError(f"{page}: exit status {process.returncode}\n{output}\n{printed.read()}")
    return output


if __name__ == "__main__":
    print(";".join(name for name, page in PAGES.items() if page.long and not page.test), end="")
