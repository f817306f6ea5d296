#!/usr/bin/env python3
"""Runs the algorithm at the end of language.md with the commands that are printed there.

usage: tutorial_test.py LANGUAGE.md FOLDER-OF-THE-TOOLS CACHE
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def main(page, tools, cache):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    program, commands = re.findall(r"```(?:sh)?\n(.*?)```", text.split("## An algorithm of one's own")[1], re.S)
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", HIPRESS_CACHE=cache)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "tern.pse").write_text(program, encoding="utf-8")
        for command in commands.strip().splitlines():
            print("$", command, flush=True)
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, check=False,
                                  stdout=subprocess.PIPE, text=True)
            print(done.stdout, flush=True)
            if done.returncode != 0:
                sys.exit(f"exit status {done.returncode}")
        if "verified: yes" not in done.stdout:
            sys.exit("the last command verified nothing")


if __name__ == "__main__":
    main(*sys.argv[1:])
