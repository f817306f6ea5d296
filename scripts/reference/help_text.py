"""Parses a command's --help by CLI11: example, description, usage, and groups of options."""

import dataclasses
import pathlib
import re
import subprocess
from typing import List, Tuple

#: Words of the command, by the name of its page.
COMMANDS = {"hipress-plan": ("hipress-plan",), "hipress-sim": ("hipress-sim",), "hipress-sim-sweep": ("hipress-sim", "sweep"),
            "hipress-exec": ("hipress-exec",), "hipress-profile": ("hipress-profile",), "hipress-import": ("hipress-import",),
            "hipress-compll": ("hipress-compll",)}

#: Column at which CLI11 writes the description of an option.
COLUMN = 30


@dataclasses.dataclass
class Option:
    """Option or positional argument of a command."""
    names: Tuple[str, ...]  #: such as ("-o", "--output")
    takes: str  #: type, choices, bounds and default as CLI11 writes them; empty for a flag
    text: str

    @property
    def is_flag(self) -> bool:
        return not self.takes

    @property
    def choices(self) -> List[str]:
        """Accepted values, if they are listed; else empty."""
        found = re.search(r"\{([^}]*)\}", self.takes)
        return found[1].split(",") if found and ":" in self.takes else []


@dataclasses.dataclass
class Help:
    """Parts of a command's --help."""
    name: str  #: name of its page, such as hipress-sim-sweep
    command: str  #: command as typed, such as hipress-sim sweep
    example: str
    description: str  #: first sentence
    details: str  #: text between description and usage, as printed
    usage: str
    groups: List[Tuple[str, List[Option]]]  #: options by title of the group

    @property
    def options(self) -> List[Option]:
        return [option for _, options in self.groups for option in options if option.names[0].startswith("-")]


def option_of(line: str) -> Option:
    """Parses the option at the beginning of a group's line."""
    split = len(line) if len(line) <= COLUMN or line[COLUMN - 1] != " " else COLUMN
    left, text = line[:split].strip(), line[split:].strip()
    names, _, takes = left.partition(" ")
    if found := re.match(r"(--[\w-]+)(\{.*)", names):  # --steady{8}: its value may be left out
        names, takes = found[1], f"{found[2]} {takes}"
    return Option(tuple(names.split(",")), takes.strip(), text)


def parse(name: str, command: str, text: str) -> Help:
    """Parses the text of a --help. Raises ValueError for any other text."""
    head, marker, tail = text.partition("\nUsage: ")
    opening = re.match(r"Example:\n  (.*)\n\n(.*)\n?", head)
    if not marker or not opening:
        raise ValueError(f"{command} --help has no example, description and usage as expected")
    usage, _, rest = tail.partition("\n")
    groups: List[Tuple[str, List[Option]]] = []
    for line in rest.splitlines():
        if re.match(r"\S.*:$", line):
            groups.append((line[:-1], []))
        elif re.match(r"  \S", line) and groups:
            groups[-1][1].append(option_of(line))
        elif line.strip() and groups and groups[-1][1]:
            option = groups[-1][1][-1]
            option.text = f"{option.text} {line.strip()}".strip()
        elif line.strip():
            raise ValueError(f"{command} --help: what is this line? {line!r}")
    return Help(name, command, opening[1], opening[2], head[opening.end():].strip("\n"), usage, groups)


def ask(tools: pathlib.Path, name: str) -> Help:
    """Runs the --help of a command of COMMANDS, from the tools in a folder, and parses it."""
    tool, *words = COMMANDS[name]
    done = subprocess.run([tools / tool, *words, "--help"], text=True, capture_output=True, timeout=60, check=True)
    return parse(name, " ".join(COMMANDS[name]), done.stdout)
