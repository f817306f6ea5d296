"""Writes man pages of section 1 from the help of commands."""

from reference.help_text import COMMANDS, Help


def escaped(text: str) -> str:
    """Escapes a text for troff: backslashes, dashes, and lines that would begin a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line for line in text.split("\n"))


def page(told: Help, version: str) -> str:
    """Man page of a command; `version` is a text such as 0.1.0."""
    lines = [f'.TH "{told.name.upper()}" 1 "" "HiPress planner {version}" "User commands"', ".SH NAME",
             f"{escaped(told.name)} \\- {escaped(told.description[:1].lower() + told.description[1:].rstrip('.'))}", ".SH SYNOPSIS",
             f".B {escaped(told.command)}", escaped(told.usage.removeprefix(told.command).strip()), ".SH DESCRIPTION",
             escaped(told.description)]
    if told.details:
        lines += [".PP", ".nf", escaped(told.details), ".fi"]
    for title, options in told.groups:
        lines.append(f".SH {escaped(title.upper())}")
        for option in options:
            names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in option.names)
            lines += [".TP", f"{names} {escaped(option.takes)}".rstrip(), escaped(option.text)]
    lines += [".SH EXAMPLE", ".nf", escaped(told.example), ".fi", ".SH EXIT STATUS",
              "0: done. 1: the run failed. 2: the request is wrong. 3: the requirement was not met.", ".SH SEE ALSO"]
    lines.append(",\n".join(f".BR {escaped(other)} (1)" for other in COMMANDS if other != told.name).replace(",\n.BR", "\n.BR"))
    return "\n".join(lines) + "\n"
