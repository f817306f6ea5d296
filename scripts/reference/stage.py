"""Fills the folder that MkDocs reads."""

import pathlib
import shutil

from reference import links


def copy(root: pathlib.Path, folder: pathlib.Path) -> int:
    """Copies every page to its place in `folder`, with the files that it links to, and redirects links to folders to their
    README. Returns the number of pages."""
    count = 0
    for page in links.pages(root):
        text = page.read_text(encoding="utf-8")
        for _, target in links.relative_links(text):
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve()
            if name and file.is_dir() and (file / "README.md").is_file():
                led = f"{name.rstrip('/')}/README.md" + (f"#{anchor}" if anchor else "")
                text = text.replace(f"]({target})", f"]({led})")
            elif file.is_file() and file.suffix != ".md":
                place = folder / file.relative_to(root)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)
        place = folder / page.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        count += 1
    return count
