#!/usr/bin/env python3
"""Says where C++ and CUDA sources are not as clang-format (.clang-format) and clang-tidy (.clang-tidy) want them.

    scripts/lint.py                     all sources; minutes per core
    scripts/lint.py --change main       those that differ from a commit, a branch or a tag
    scripts/lint.py --format            with clang-format alone, in seconds
    scripts/lint.py io/yaml.cpp         these files

clang-tidy reads in --build (default build/release) how a file is compiled, so configure that before. Files that no build
compiles, as headers, are looked at through a source that includes them. --jobs says how many clang-tidys run at a time.

Exit status: 0 all is well; 1 something was found; 2 the request is wrong; 3 skipped, with the reason."""

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
#: g++'s precompiled header, which clang cannot read.
PRECOMPILED = re.compile(r" -include (?:[^ \\]|\\.)*/cmake_pch\.hxx| -Winvalid-pch")


class Refused(Exception):
    """The request is wrong."""


class Skipped(Exception):
    """Something is not installed."""


def tool(name: str) -> str:
    """The program of VERSION: other versions format otherwise and find other things."""
    for candidate in (f"{name}-{VERSION}", name):
        path = shutil.which(candidate)
        if path and f"version {VERSION}." in subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout:
            return path
    raise Skipped(f"there is no {name} {VERSION}; scripts/setup.sh installs it from Debian's packages")


def git(*arguments: str) -> list[str]:
    """The names of files that git answers with."""
    try:
        done = subprocess.run(["git", *arguments, "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Skipped(f"there is no git: {error}") from None
    if done.returncode == 0:
        return [name for name in done.stdout.split("\0") if name]
    said = f"git {' '.join(arguments)}: {(done.stderr.strip().splitlines() or ['failed'])[0]}"
    raise Refused(said) if (ROOT / ".git").exists() else Skipped(f"this is no checkout ({said})")


def chosen(arguments: argparse.Namespace) -> list[pathlib.Path]:
    """The sources that are looked at."""
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
    for start in range(0, len(files), 100):  # a command line holds so many for certain
        done = subprocess.run([formatter, "--dry-run", *files[start:start + 100]], cwd=ROOT, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise Refused(f"clang-format: {done.stderr.strip()}")
        found.update(dict.fromkeys(re.findall(r"^(.*?):\d+:\d+: warning: code should be clang-formatted", done.stderr,
                                              re.MULTILINE)))
    return [os.path.relpath(file) for file in found]


def commands(build: pathlib.Path) -> dict[pathlib.Path, dict]:
    """How each source is compiled, the first time where that is several times, as for instruction sets."""
    database = build / "compile_commands.json"
    if not database.is_file():
        raise Refused(f"{build} has no compile_commands.json: configure it (scripts/build.sh release does), or give --build")
    found: dict[pathlib.Path, dict] = {}
    for entry in json.loads(database.read_text()):
        file = pathlib.Path(entry["file"])
        if file.suffix == ".cpp" and ROOT in file.parents and build not in file.parents:
            found.setdefault(file, {**entry, "command": PRECOMPILED.sub("", entry["command"])})
    return found


def through(files: list[pathlib.Path], compiled: dict[pathlib.Path, dict]) -> list[pathlib.Path]:
    """Sources that are compiled, one at least for each of these files that some source includes directly."""
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
    """What clang-tidy says of these sources and the headers that they include; of each place once."""
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
