#!/usr/bin/env python3
"""Writes the inputs of scripts/docs.sh from the programs' own help, schemas and comments:

  write_reference.py site FOLDER [--tools build/release/bin]   the pages that MkDocs reads
  write_reference.py man FOLDER [--tools build/release/bin]    man pages, and completions for bash, zsh and fish

Exit status 2 if the tools are missing, 1 if one of them fails."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "python")]

from reference import completions, help_text, man, pages, stage  # noqa: E402


def tools_in(folder: pathlib.Path) -> pathlib.Path:
    missing = sorted({tool for tool, *_ in help_text.COMMANDS.values() if not (folder / tool).is_file()})
    if missing:
        print(f"reference: {folder} has no {', '.join(missing)}: build them by scripts/build.sh demo, or name their folder by "
              "--tools", file=sys.stderr)
        sys.exit(2)
    return folder


def schemas(tools: pathlib.Path, of: str) -> dict:
    """Schemas of all requests, or of all results, from the library of the same build. Raises ValueError if the library is
    missing."""
    library = pathlib.Path(os.environ.setdefault("HIPRESS_LIBRARY", str(tools.parent / "runtime/libhipress.so")))
    if not library.is_file():
        raise ValueError(f"{library} is not there, which says what requests may have: scripts/build.sh release builds it")
    from hipress._call import answer

    return answer({"request": of})


STYLE = ".md-typeset td:first-child code { white-space: nowrap; }\n.md-grid { max-width: 76rem; }\n"


def write_site(folder: pathlib.Path, tools: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    count = stage.copy(ROOT, folder)
    place = folder / "docs/reference"
    place.mkdir(parents=True)
    made = {name: pages.command(help_text.ask(tools, name)) for name in help_text.COMMANDS}
    made["request-members"] = pages.requests(schemas(tools, "schema"))
    made["result-keys"] = pages.results(schemas(tools, "result_schema"))
    made["python"] = pages.python(ROOT / "python/hipress")
    made["c"] = pages.c_interface((ROOT / "runtime/hipress.h").read_text())
    made["README"] = pages.index(list(made))
    for name, text in made.items():
        (place / f"{name}.md").write_text(text, encoding="utf-8")
    (place / "site.css").write_text(STYLE)
    print(f"reference: {count} pages of the tree and {len(made)} of reference in {folder}", file=sys.stderr)


def write_man(folder: pathlib.Path, tools: pathlib.Path) -> None:
    version = re.search(r"^project\(\S+ VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    commands = {name: help_text.ask(tools, name) for name in help_text.COMMANDS}
    files = {f"man/man1/{name}.1": man.page(told, version) for name, told in commands.items()}
    for name, told in commands.items():
        if " " not in told.command:
            files[f"bash-completion/completions/{name}"] = completions.bash(told, commands)
            files[f"zsh/site-functions/_{name}"] = completions.zsh(told, commands)
            files[f"fish/vendor_completions.d/{name}.fish"] = completions.fish(told, commands)
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    print(f"reference: {len(files)} files in {folder}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("site", "man"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the command-line tools")
    arguments = parser.parse_args()
    try:
        (write_site if arguments.what == "site" else write_man)(arguments.folder, tools_in(arguments.tools))
    except (subprocess.SubprocessError, ValueError) as error:
        print(f"reference: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
