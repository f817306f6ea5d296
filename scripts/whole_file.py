"""Files that are written whole or not at all, so that an interrupted script leaves no half file."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """A name beside `path`, with its suffix, to write to. The file takes the place of `path` when the block ends, and
    is removed if that is by an exception. A symbolic link stays, its target is replaced; a device or pipe has no
    other name, so that it is `path` itself. OSError if the file cannot be written."""
    path = pathlib.Path(path)
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    temporary = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: str | os.PathLike, value: object) -> None:
    """OSError if the file cannot be written."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
