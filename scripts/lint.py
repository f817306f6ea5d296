#!/usr/bin/env python3
"""Lists places in C++ and CUDA sources that break the rules of clang-format (.clang-format) or clang-tidy (.clang-tidy).

    scripts/lint.py                     all sources; minutes per core
    scripts/lint.py --change main       those that differ from a commit, a branch or a tag
    scripts/lint.py --format            with clang-format alone, in seconds
    scripts/lint.py io/yaml.cpp         these files

clang-tidy reads compile commands from --build (default build/release), so configure that first. Headers and other files that no
build compiles are checked through a source that includes them. --jobs is the number of concurrent clang-tidys.

Exit status: 0 nothing was found; 1 something was found; 2 the request is wrong; 3 skipped, with the reason."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
VERSION = 14
SOURCES = {".cpp", ".hpp", ".cu", ".cuh"}
#: Options for g++'s precompiled header, which clang cannot read.
PRECOMPILED = re.compile(r" -include (?:[^ \\]|\\.)*/cmake_pch\.hxx| -Winvalid-pch")


class Refused(Exception):
    """Error: the request is wrong."""


class Skipped(Exception):
    """Error: a tool is not installed."""


def tool(name: str) -> str:
    """Path of a program of version VERSION, because rules differ between versions. Raises Skipped if it is missing."""
    for candidate in (f"{name}-{VERSION}", name):
        path = shutil.which(candidate)
        if path and f"version {VERSION}." in subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout:
            return path
    raise Skipped(f"there is no {name} {VERSION}; scripts/setup.sh installs it from Debian's packages")


def git(*arguments: str) -> list[str]:
    """Names of files that a git command prints. Raises Refused if it fails, and Skipped without git or a checkout."""
    try:
        done = subprocess.run(["git", *arguments, "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Skipped(f"there is no git: {error}") from None
    if done.returncode == 0:
        return [name for name in done.stdout.split("\0") if name]
    said = f"git {' '.join(arguments)}: {(done.stderr.strip().splitlines() or ['failed'])[0]}"
    raise Refused(said) if (ROOT / ".git").exists() else Skipped(f"this is no checkout ({said})")


def chosen(arguments: argparse.Namespace) -> list[pathlib.Path]:
    """Sources to check. Raises Refused for a file that does not exist."""
    if arguments.files:
        files = [pathlib.Path(name).resolve() for name in arguments.files]
        for file in files:
            if not file.is_file():
                raise Refused(f"there is no file {file}")
    else:
        names = git("ls-files", "--others", "--exclude-standard")
        names += git("diff", "--name-only", arguments.change) if arguments.change else git("ls-files")
        files = [ROOT / name for name in sorted(set(names))]
    return [file for file in files if file.suffix in SOURCES and file.is_file()]


def badly_formatted(files: list[pathlib.Path]) -> list[str]:
    formatter = tool("clang-format")
    found: dict[str, None] = {}
    for start in range(0, len(files), 100):  # the length of a command line is limited
        done = subprocess.run([formatter, "--dry-run", *files[start:start + 100]], cwd=ROOT, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise Refused(f"clang-format: {done.stderr.strip()}")
        found.update(dict.fromkeys(re.findall(r"^(.*?):\d+:\d+: warning: code should be clang-formatted", done.stderr,
                                              re.MULTILINE)))
    return [os.path.relpath(file) for file in found]


def parts(source: pathlib.Path) -> list[pathlib.Path]:
    """Sources that a unity source of CMake includes; none for other sources, and for unity sources that were not made yet."""
    if source.parent.name != "Unity" or not source.is_file():
        return []
    return [pathlib.Path(name) for name in re.findall(r'^#include "(/.*)"', source.read_text(encoding="utf-8"), re.MULTILINE)]


def commands(build: pathlib.Path) -> dict[pathlib.Path, dict]:
    """Compile command of each source; sources of a unity build have that of their unity source. A source with several commands, for
    example for instruction sets, has the first. Raises Refused without a database."""
    database = build / "compile_commands.json"
    if not database.is_file():
        raise Refused(f"{build} has no compile_commands.json: configure it (scripts/build.sh release does), or give --build")
    found: dict[pathlib.Path, dict] = {}
    for entry in json.loads(database.read_text()):
        source = pathlib.Path(entry["file"])
        for file in parts(source) or [source]:
            if file.suffix == ".cpp" and ROOT in file.parents and build not in file.parents:
                command = PRECOMPILED.sub("", entry["command"]).replace(str(source), str(file))
                found.setdefault(file, {**entry, "file": str(file), "command": command})
    return found


def through(files: list[pathlib.Path], compiled: dict[pathlib.Path, dict]) -> list[pathlib.Path]:
    """Compiled sources that cover the files: the files themselves, or, for a file that is not compiled, a source that includes it
    directly."""
    sources = {file for file in files if file in compiled}
    including: dict[str, list[pathlib.Path]] = {}
    if any(file not in compiled for file in files):
        for source in sorted(compiled):
            for name in re.findall(r'^#include "([\w./]+)"', source.read_text(encoding="utf-8"), re.MULTILINE):
                including.setdefault(name, []).append(source)
    for file in files:
        users = including.get(str(file.relative_to(ROOT)), []) if file not in compiled and ROOT in file.parents else []
        own = file.with_suffix(".cpp")
        if users and sources.isdisjoint(users):
            sources.add(own if own in users else users[0])
    return sorted(sources)


def findings(sources: list[pathlib.Path], compiled: dict[pathlib.Path, dict], jobs: int) -> list[str]:
    """Findings of clang-tidy in these sources and their headers, each place once."""
    checker = tool("clang-tidy")
    said: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(list(compiled.values())))

        def check(source: pathlib.Path) -> list[str]:
            done = subprocess.run([checker, "-p", folder, "--quiet", source], cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode != 0 and not done.stdout.strip():
                return [f"{source}: {done.stderr.strip()}"]
            return re.split(r"\n(?=/)", done.stdout.strip()) if done.stdout.strip() else []

        for found in pool.map(check, sources):
            for text in found:
                if text not in said:
                    print(text, flush=True)
                said[text] = None
    return [text for text in said if ": note: " not in text.partition("\n")[0]]


def lint(arguments: argparse.Namespace) -> int:
    if arguments.files and arguments.change:
        raise Refused("give --change or files, not both")
    begun = time.monotonic()
    files = chosen(arguments)
    formatted = badly_formatted(files)
    for file in formatted:
        print(f"{file}: not as clang-format writes it: clang-format -i {file}", flush=True)
    summary = f"{len(files)} files, {len(formatted)} of them badly formatted"
    found: list[str] = []
    if not arguments.format:
        build = arguments.build.resolve()
        compiled = commands(build)
        sources = through(files, compiled)
        found = findings(sources, compiled, arguments.jobs)
        summary += f"; {len(found)} findings in what {len(sources)} of them are compiled of"
    print(f"lint: {summary}; {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return 1 if formatted or found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--change", metavar="BASE", help="look at what differs from BASE alone")
    parser.add_argument("--format", action="store_true", help="leave clang-tidy out")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="COUNT")
    try:
        return lint(parser.parse_args())
    except Refused as error:
        print(f"lint: {error}", file=sys.stderr)
        return 2
    except Skipped as error:
        print(f"lint: skipped: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
