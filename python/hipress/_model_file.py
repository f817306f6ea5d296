"""Model YAMLs (docs/models.md). Measurements write them; the library, and so every tool, reads them."""

import ctypes
import os
import re

from . import _library, _output
from ._engine import InvalidRequest

#: Schema that written files name.
SCHEMA = "hipress.model/1"


def quoted(text: str) -> str:
    """Quotes a text as a YAML scalar, where it needs quotes."""
    if re.fullmatch(r"[A-Za-z_][\w./-]*", text) and text.lower() not in ("null", "true", "false", "yes", "no", "on", "off", "y", "n"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def microseconds(seconds: float) -> str:
    """Formats a duration for a model file."""
    return f"{max(0.0, seconds) * 1e6:.1f}us"


def require_writable(path, *inputs: str) -> None:
    """Raises InvalidRequest if _output.write_whole() could not write there, or would overwrite an input. Leaves no file behind."""
    try:
        _output.require_writable(path)
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"output {os.fspath(path)!r} cannot be written ({getattr(error, 'strerror', None) or error}): give a "
                             "file in a folder that is there and may be written") from None
    for one in inputs:
        if os.path.exists(one) and os.path.exists(path) and os.path.samefile(one, path):
            raise InvalidRequest(f"output {os.fspath(path)} is {one}, which is read: give another name")


def ready_times(path) -> dict:
    """Ready time of each gradient by name, in seconds after the start of backward, in the file's order. Gradients of a bucket are
    ready with the last of them. Raises InvalidRequest, a ValueError, with file and line if the file is not a model, and
    hipress.Error if it cannot be read."""
    from . import _engine
    library = _library.library()
    model, count = ctypes.c_void_p(), ctypes.c_size_t()
    _engine.check(library.hipress_read_model(os.fsencode(path), ctypes.byref(model)))
    try:
        gradients = library.hipress_model_gradients(model, ctypes.byref(count))
        return {gradients[i].name.decode(errors="surrogateescape"): gradients[i].ready_s for i in range(count.value)}
    finally:
        library.hipress_free_model(model)
