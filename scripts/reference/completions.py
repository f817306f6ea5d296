"""Writes completions of a tool's options, choices and files for bash, zsh and fish."""

from typing import Dict, List

from reference.help_text import Help

#: Help of commands by page name.
Commands = Dict[str, Help]


def words(told: Help) -> List[str]:
    return [name for option in told.options for name in option.names]


def subcommands(told: Help, commands: Commands) -> Dict[str, Help]:
    """Subcommands of a tool, by their names."""
    return {other.command.split()[1]: other for other in commands.values() if other.command.split()[0] == told.command
            and " " in other.command}


def cases(told: Help) -> str:
    """Cases of a bash completion: values of the option before the cursor."""
    rows = [f"    {'|'.join(option.names)}) COMPREPLY=($(compgen -W '{' '.join(option.choices)}' -- \"$current\")); return ;;"
            for option in told.options if option.choices]
    rows += ["    " + "|".join(name for option in told.options if not option.is_flag and not option.choices
                              for name in option.names) + ") COMPREPLY=($(compgen -f -- \"$current\")); return ;;"]
    return "\n".join(rows)


def bash(told: Help, commands: Commands) -> str:
    """Text of a file for /usr/share/bash-completion/completions."""
    function = "_" + told.name.replace("-", "_")
    below = subcommands(told, commands)
    inner = ""
    for word, other in below.items():
        inner += f"""  if [[ ${{COMP_WORDS[1]}} == {word} ]]; then
    case $previous in
{cases(other)}
    esac
    if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '{' '.join(words(other))}' -- "$current")); return; fi
    COMPREPLY=($(compgen -f -- "$current")); return
  fi
"""
    first = ""
    if below:
        first = ("  if ((COMP_CWORD == 1)) && [[ $current != -* ]]; then\n"
                 f"    COMPREPLY=($(compgen -W '{' '.join(below)}' -- \"$current\")); return\n  fi\n")
    return f"""# Completions of {told.name} for bash, written by scripts/docs.sh --man from its --help.
{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
{inner}{first}  case $previous in
{cases(told)}
  esac
  if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '{' '.join(words(told))}' -- "$current")); return; fi
  COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F {function} {told.name}
"""


def quoted(text: str) -> str:
    """Escapes a text for single quotes of zsh or fish."""
    return text.replace("\\", "\\\\").replace("'", "'\\''")


def zsh(told: Help, commands: Commands) -> str:
    """Text of a file _TOOL for a folder of zsh's fpath."""
    rows = []
    for option in told.options:
        text = quoted(option.text).replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
        value = "" if option.is_flag else f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
        rows += [f"  '*{name}[{text}]{value}'" for name in option.names]
    below = subcommands(told, commands)
    rows.append(f"  '1:command or file:_alternative \"commands:command:({' '.join(below)})\" \"files:file:_files\"'" if below
                else "  '*:file:_files'")
    return f"#compdef {told.name}\n# Written by scripts/docs.sh --man.\n_arguments \\\n" + " \\\n".join(rows) + "\n"


def fish(told: Help, commands: Commands) -> str:
    """Text of a file for fish's folder of completions."""
    rows = [f"complete -c {told.name} -n '__fish_use_subcommand' -a '{word}' -d '{quoted(other.description)}'"
            for word, other in subcommands(told, commands).items()]
    for option in told.options:
        flags = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        value = "" if option.is_flag else f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r"
        rows.append(f"complete -c {told.name} {flags}{value} -d '{quoted(option.text)}'")
    return f"# Completions of {told.name} for fish, written by scripts/docs.sh --man.\n" + "\n".join(rows) + "\n"
