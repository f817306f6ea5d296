"""Writes reference pages in Markdown: commands, requests, results, the Python package and the C interface."""

import ast
import json
import pathlib
import re
import textwrap
from typing import Any, Dict, Iterator, List, Tuple

from reference.help_text import Help


def cell(text: str) -> str:
    """Escapes a text for a row of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").strip()


def code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def command(told: Help) -> str:
    """Page of a command."""
    lines = [f"# {told.command}", "", told.description, "", "```", told.example, "```", ""]
    if told.details:
        lines += ["```", told.details, "```", ""]
    lines += [f"Usage: `{told.usage}`", ""]
    for title, options in told.groups:
        name = "argument" if title == "Positionals" else "option"
        lines += [f"## {title}", "", f"| {name} | takes | what it does |", "|---|---|---|"]
        lines += [f"| {' '.join(map(code, option.names))} | {code(option.takes)} | {cell(option.text)} |" for option in options]
        lines.append("")
    lines += ["Exit status: 0 done, 1 the run failed, 2 the request is wrong, 3 the requirement was not met.", ""]
    return "\n".join(lines)


def bounds(field: Dict[str, Any]) -> str:
    """Describes the type and the accepted values of a schema's field."""
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    said = " or ".join(kinds)
    if "enum" in field:
        said += ": " + ", ".join(f"`{one}`" for one in field["enum"])
    if "minimum" in field or "maximum" in field:
        said += f", {field.get('minimum', '…')} to {field.get('maximum', '…')}"
    return cell(said)


def requests(schemas: Dict[str, Any]) -> str:
    """Page with the members of every request."""
    lines = ["# Members of requests", "",
             "What C, Python and the command line may ask; [requests](../requests.md) says how, and what comes back.", ""]
    for name, schema in schemas.items():
        lines += [f"## {name}", "", schema["description"], "", "| member | type | default | what it says |", "|---|---|---|---|"]
        for key, field in schema["properties"].items():
            default = code(json.dumps(field["default"])) if "default" in field else "required" if key in schema["required"] else ""
            text = field.get("description", "Which request this is")
            lines.append(f"| {code(key)} | {bounds(field)} | {default} | {cell(text)} |")
        lines.append("")
    return "\n".join(lines)


def result_rows(schema: Dict[str, Any], path: str = "") -> Iterator[str]:
    """Yields a row for each key of a schema, and for keys below them, such as `links[].bytes`."""
    dot = "." if path else ""
    below = [(f"{path}{dot}{name}", one, name in schema["required"]) for name, one in schema.get("properties", {}).items()]
    if schema.get("additionalProperties"):
        below.append((f"{path}{dot}*", schema["additionalProperties"], True))
    for name, one, always in below:
        text = one.get("description", "")
        while "items" in one:
            name, one = f"{name}[]", one["items"]
        kinds = one["type"] if isinstance(one["type"], list) else [one["type"]]
        said = "any" if len(kinds) > 2 else " or ".join(kinds)
        yield f"| {code(name)} | {said if always else said + ', not always'} | {escaped(text)} |"
        yield from result_rows(one, name)


def results(schemas: Dict[str, Any]) -> str:
    """Page with the keys of every result."""
    lines = ["# Keys of results", "",
             "What tools print with `--json`, and C and Python get. [Requests](../requests.md) says how to ask. `[]` is each item of a list",
             "and `*` each name in an object; times are in seconds. `{\"request\": \"result_schema\"}` answers with the same as JSON schemas.",
             ""]
    for forms in schemas.values():
        for form in forms:
            lines += [f"## {form['title']}", "", f"{form['description']}.", "", "| key | type | what it says |", "|---|---|---|"]
            lines += [*result_rows(form), ""]
    return "\n".join(lines)


def signature(node: ast.AST, name: str) -> str:
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return "\n".join(textwrap.wrap(f"{name}({arguments}){returns}", 100, subsequent_indent="    ", break_on_hyphens=False))


def is_overload(node: ast.AST) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def escaped(text: str) -> str:
    """Escapes a text for Markdown, except its spans of code."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text))
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts).strip()


def docstring(text: str) -> Iterator[str]:
    """Yields the paragraphs of a docstring, two-column text as a table, and indented text as code."""
    for block in re.split(r"\n\n+(?! )", text):
        lines = block.split("\n")
        opening, _, code_block = block.partition("\n\n    ")
        if re.match(r"[\w.,* ]+?  +\S", lines[0]) and all(re.match(r"\S.*?  +\S|  +\S", line) for line in lines):
            yield "| argument | what it says |\n|---|---|"
            for row in re.findall(r"^(\S.*?)  +(.*(?:\n  +.*)*)", block, re.MULTILINE):
                yield f"| {code(row[0])} | {cell(row[1])} |"
            yield ""
        elif code_block:
            yield f"{escaped(opening)}\n\n```python\n{textwrap.dedent('    ' + code_block)}\n```\n"
        else:
            yield f"{escaped(block)}\n"


def documented(package: pathlib.Path) -> Dict[str, ast.AST]:
    """Definitions of the public functions and classes that the package's __init__.py lists, by name; for an object, its class.
    Raises ValueError for a name without a definition."""
    listed = ast.parse((package / "__init__.py").read_text())
    names = next(ast.literal_eval(node.value) for node in listed.body
                 if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__")
    found = {}
    for file in sorted(package.glob("*.py")):
        body = ast.parse(file.read_text()).body
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names and not is_overload(node):
                found[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and getattr(node.targets[0], "id", "") in names:
                found[node.targets[0].id] = next(one for one in body if getattr(one, "name", "") == node.value.func.id)
    if missing := sorted(set(names) - set(found)):
        raise ValueError(f"public names of {package.name} that no file defines: {', '.join(missing)}")
    return {name: found[name] for name in sorted(names, key=str.lower)}


def python_entry(name: str, node: ast.AST, level: int) -> Iterator[str]:
    """Yields the entry of a function or class: its docstring, and those of a class's public methods."""
    yield f"{'#' * level} {name}\n"
    shown = node
    if isinstance(node, ast.ClassDef):
        shown = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name in ("__init__", "__call__")), None)
    if shown is not None:
        yield f"```python\n{signature(shown, name)}\n```\n"
    if text := ast.get_docstring(node):
        yield from docstring(text)
    if isinstance(node, ast.ClassDef):
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and not one.name.startswith("_") and ast.get_docstring(one):
                yield from python_entry(f"{name}.{one.name}", one, level + 1)


def python(package: pathlib.Path) -> str:
    """Page of the Python package's public interface."""
    lines = ["# The Python package\n",
             "What `hipress` exports. [Training](../pytorch-training.md) and [requests](../requests.md) say how it is used.\n"]
    for name, node in documented(package).items():
        lines += python_entry(name, node, 2)
    return "\n".join(lines)


def declarations(header: str) -> Iterator[Tuple[str, str, str]]:
    """Yields (name, comment, declaration) of everything that a C header documents with /** … */ at the beginning of a line."""
    for found in re.finditer(r"^/\*\*(.*?)\*/\n(.*?)(?=^/\*\*|^#|\Z)", header, re.MULTILINE | re.DOTALL):
        comment = re.sub(r"\n *\* ?", "\n", found[1]).strip()
        declaration = found[2].strip().replace("HIPRESS_API ", "")
        name = re.match(r"typedef \w+ (\w+)", declaration) or re.search(r"(\w+)\(", declaration)
        yield name[1], comment, declaration


def c_interface(header: str) -> str:
    """Page of the C interface, from the comments of runtime/hipress.h."""
    opening = re.match(r"/\*(.*?)\*/", header, re.DOTALL)
    lines = ["# The C interface", "", "What `hipress.h` declares; [the C interface](../c-api.md) says how it is used.", "", "```c",
             re.sub(r"\n \* ?", "\n", opening[1]).strip(), "```", ""]
    for name, comment, declaration in declarations(header):
        lines += [f"## {name}", "", comment.replace("*", "\\*").replace("<", "&lt;"), "", "```c", declaration, "```", ""]
    return "\n".join(lines)


def index(written: List[str]) -> str:
    """Page with links to the others."""
    return "\n".join(["# Reference", "", "Written from what the programs say of themselves.", "",
                      *(f"- [{name}]({name}.md)" for name in written), ""])
