"""Model YAMLs (docs/models.md): written from measurements, and read as far as attach() needs them."""

import pathlib
import re

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_GRADIENT = re.compile(r"^\s*- *\{ *name: *(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^']|'')*)'|([^,}]+?)) *[,}](.*)$")
_READY = re.compile(r"\bready: *([0-9.eE+-]+) *(s|ms|us|ns)\b")
_BUCKET = re.compile(r"\bbucket: *(\d+)\b")


def quoted(text: str) -> str:
    """A text as a YAML scalar."""
    if re.fullmatch(r"[A-Za-z_][\w./-]*", text) and text.lower() not in ("null", "true", "false", "yes", "no", "on", "off", "y", "n"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def microseconds(seconds: float) -> str:
    """A duration as models have it."""
    return f"{max(0.0, seconds) * 1e6:.1f}us"


def ready_times(path) -> dict:
    """Seconds after the start of backward by gradient, in the file's order; those of a bucket are ready with the last of them. Of a
    model YAML with a gradient a line, as hipress.capture and hipress-import write it. ValueError, with file and line, for another."""
    times, buckets, listed = {}, {}, False
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line.startswith("gradients:"):
            listed = True
            continue
        if not listed or not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _GRADIENT.match(line)
        if not found:
            raise ValueError(f"{path}:{number}: expected a gradient as '- {{name: fc.weight, elements: 10, ready: 5us}}' in one "
                             f"line, got '{line.strip()}'")
        double, single, plain, rest = found.groups()
        name = re.sub(r"\\(.)", r"\1", double) if double is not None else (single or plain).replace("''", "'")
        ready = _READY.search(rest)
        times[name] = float(ready[1]) * _UNITS[ready[2]] if ready else 0.0
        bucket = _BUCKET.search(rest)
        if bucket:
            buckets.setdefault(int(bucket[1]), []).append(name)
    if not times:
        raise ValueError(f"{path}: no gradients in it; give a model YAML that hipress.capture wrote")
    for names in buckets.values():
        times.update(dict.fromkeys(names, max(times[name] for name in names)))
    return times
