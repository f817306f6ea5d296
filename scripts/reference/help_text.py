"""The --help of a command, parsed: what CLI11 prints is example, description, usage, and groups of options."""

import dataclasses
import pathlib
import re
import subprocess
from typing import List, Tuple

#: Name of the page: the words that run the command's help.
COMMANDS = {"hipress-plan": ("hipress-plan",), "hipress-sim": ("hipress-sim",), "hipress-sim-sweep": ("hipress-sim", "sweep"),
            "hipress-exec": ("hipress-exec",), "hipress-profile": ("hipress-profile",), "hipress-import": ("hipress-import",),
            "hipress-compll": ("hipress-compll",)}

#: Where CLI11 writes what an option does.
COLUMN = 30


@dataclasses.dataclass
class Option:
    """An option or a positional argument."""
    names: Tuple[str, ...]  #: ("-o", "--output")
    takes: str  #: its type, choices, bounds and default as CLI11 writes them; empty: a flag
    text: str

    @property
    def is_flag(self) -> bool:
        return not self.takes

    @property
    def choices(self) -> List[str]:
        """What it takes, where that is a list; empty: anything."""
        found = re.search(r"\{([^}]*)\}", self.takes)
        return found[1].split(",") if found and ":" in self.takes else []


@dataclasses.dataclass
class Help:
    """What a command says of itself."""
    name: str  #: of its page: hipress-sim-sweep
    command: str  #: as it is typed: hipress-sim sweep
    example: str
    description: str  #: its first sentence
    details: str  #: what follows up to the usage, as it is printed
    usage: str
    groups: List[Tuple[str, List[Option]]]  #: by title

    @property
    def options(self) -> List[Option]:
        return [option for _, options in self.groups for option in options if option.names[0].startswith("-")]


def option_of(line: str) -> Option:
    """The option that a line of a group begins with."""
    split = len(line) if len(line) <= COLUMN or line[COLUMN - 1] != " " else COLUMN
    left, text = line[:split].strip(), line[split:].strip()
    names, _, takes = left.partition(" ")
    if found := re.match(r"(--[\w-]+)(\{.*)", names):  # --steady{8}: its value may be left out
        names, takes = found[1], f"{found[2]} {takes}"
    return Option(tuple(names.split(",")), takes.strip(), text)


def parse(name: str, command: str, text: str) -> Help:
    """ValueError for a text that is not such a help."""
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
    """The help of a command of COMMANDS, from the tools in a folder."""
    tool, *words = COMMANDS[name]
    done = subprocess.run([tools / tool, *words, "--help"], text=True, capture_output=True, timeout=60, check=True)
    return parse(name, " ".join(COMMANDS[name]), done.stdout)
