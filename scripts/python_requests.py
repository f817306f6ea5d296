#!/usr/bin/env python3
"""Writes python/hipress/_requests.py, a function for each request, from the schemas in the built library:
HIPRESS_LIBRARY=build/release/runtime/libhipress.so scripts/python_requests.py [FILE]."""

import pathlib
import sys
import textwrap
import types
from typing import Any, Dict, List

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
if "hipress" not in sys.modules:  # skips __init__.py, which imports the file that is about to be written
    sys.modules["hipress"] = types.ModuleType("hipress")
    sys.modules["hipress"].__path__ = [str(ROOT / "python/hipress")]

from hipress._call import answer  # noqa: E402

OUTPUT = ROOT / "python/hipress/_requests.py"
WIDTH = 132

#: Result of each function, and its positional argument, if any.
FUNCTIONS = {"plan": ("Plan", "input"), "simulate": ("Simulation", "input"), "sweep": ("Sweep", "spec"),
             "replay": ("Replay", "input"), "profile": ("Profile", ""), "import_trace": ("Trace", "trace")}
#: Functions that take `progress`, because their requests report progress.
PROGRESS = {"plan", "sweep", "replay"}
#: Fields that are not arguments, with their constant values: the page is for save_html().
ALWAYS: Dict[str, Dict[str, Any]] = {"plan": {"page": True}}
TYPES = {"string": "Text", "integer": "int", "number": "float", "boolean": "bool", "array": "Sequence[str]",
         "object": "Mapping[str, Any]"}

HEAD = '''"""Requests as functions; written by scripts/python_requests.py from the library's schemas."""

import os
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from hipress._call import Progress, answer
from hipress._results import Plan, Profile, Replay, Simulation, Sweep, Trace

#: A text, or a path for one.
Text = Union[str, "os.PathLike[str]"]
'''


def annotation(field: Dict[str, Any], required: bool) -> str:
    """Type hint of an argument, with its default."""
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    numbers = field.get("items", {}).get("type") == "integer"
    names = ["Sequence[int]" if kind == "array" and numbers else TYPES[kind] for kind in kinds]
    if required:
        return names[0] if len(names) == 1 else f"Union[{', '.join(names)}]"
    if kinds == ["boolean"]:
        return "bool = False"
    return f"Optional[{names[0]}] = None" if len(names) == 1 else f"Union[{', '.join(names)}, None] = None"


def described(name: str, field: Dict[str, Any], column: int) -> str:
    """Lines of a docstring that describe an argument."""
    text = field["description"]
    if "default" in field and field["default"] is not False:
        text += f" [{field['default']}]"
    lines = textwrap.wrap(text, WIDTH - 8 - column, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"    {name:<{column}}  {lines[0]}"] + [" " * (column + 6) + line for line in lines[1:]])


def function(name: str, schema: Dict[str, Any]) -> str:
    """Source of a function."""
    result, first = FUNCTIONS[name]
    always = ALWAYS.get(name, {})
    fields = {key: field for key, field in schema["properties"].items() if key not in {"request", *always}}
    arguments = [f"{first}: {annotation(fields[first], first in schema['required'])}"] if first else []
    arguments += ["*"]
    arguments += [f"{key}: {annotation(field, key in schema['required'])}" for key, field in fields.items() if key != first]
    if name in PROGRESS:
        arguments.append("progress: Optional[Callable[[Progress], Any]] = None")
    opening = f"def {name}("
    signature = textwrap.wrap(", ".join(arguments).replace(" ", "\0").replace(",\0*", ", *").replace(",\0", ", "),
                              WIDTH - len(opening) - 12 - len(result), break_long_words=False, break_on_hyphens=False)
    head = opening + ("\n" + " " * len(opening)).join(signature).replace("\0", " ") + f") -> {result}:"
    column = max(len(key) for key in [*fields, "progress"])
    ask = f"as the tool prints with --json: a {result}, whose attributes are that object's keys."
    intro = textwrap.wrap(f"{schema['description']} Answers {ask} Arguments are the tool's long options; those that are None are "
                          "not given.", WIDTH - 7, break_on_hyphens=False)
    lines = [f'    """{intro[0]}', *(f"    {line}" for line in intro[1:]), ""]
    lines += [described(key, field, column) for key, field in fields.items()]
    if name in PROGRESS:
        called = {"description": "Called now and then with a Progress, perhaps on another thread"}
        lines.append(described("progress", called, column))
    lines += ["", "    InputError for a wrong request, another HipressError for any other failure; KeyboardInterrupt ends the "
              "request.", '    """']
    # Flags that are False are not given.
    flags = {key for key, field in fields.items() if field["type"] == "boolean"}
    members = [f'"request": "{name}"'] + [f'"{key}": {value!r}' for key, value in always.items()]
    members += [f'"{key}": {key} or None' if key in flags else f'"{key}": {key}' for key in fields]
    body_head = f"    return {result}(answer({{"
    calls = textwrap.wrap(", ".join(member.replace(" ", "\0") for member in members), WIDTH - len(body_head) - 16,
                          break_long_words=False, break_on_hyphens=False)
    body = body_head + ("\n" + " " * len(body_head)).join(calls).replace("\0", " ")
    body += "}, progress))" if name in PROGRESS else "}))"
    return "\n".join([head, *lines, body])


def source() -> str:
    """Source of the whole file."""
    schemas = answer({"request": "schema"})
    parts: List[str] = [function(name, schemas[name]) for name in FUNCTIONS]
    return HEAD + "".join(f"\n\n{part}\n" for part in parts)


def main() -> None:
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    output.write_text(source())


if __name__ == "__main__":
    main()
