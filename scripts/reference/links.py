"""Finds relative links of Markdown pages, and those that lead nowhere."""

import pathlib
import re
import subprocess
from typing import Iterator, List, Tuple

#: Links [text](target) and ![text](target), with or without a title.
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?)(?:\s+\"[^\"]*\")?\)")


def prose(text: str) -> str:
    """Removes blocks and spans of code from a page, and keeps line numbers."""
    text = re.sub(r"^(```|~~~).*?^\1", lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)[^`].*?\1", "", text)


def relative_links(text: str) -> Iterator[Tuple[int, str]]:
    """Yields (line, target) of every link of a page that is relative, so that it stays within the site."""
    without_code = prose(text)
    for found in LINK.finditer(without_code):
        if not re.match(r"[a-z]+:", found[1]):
            yield without_code.count("\n", 0, found.start()) + 1, found[1]


def anchors(text: str) -> List[str]:
    """Anchors of a page's headings, as GitHub and the site make them."""
    made: List[str] = []
    for heading in re.findall(r"^#{1,6} +(.*?)\s*$", re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL),
                              re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        made.append(anchor if anchor not in made else f"{anchor}-{made.count(anchor)}")
    return made


def pages(root: pathlib.Path) -> List[pathlib.Path]:
    """Markdown files of the tree; in a checkout, those that git does not ignore."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], text=True,
                          capture_output=True, check=False)
    if done.returncode == 0:
        return sorted(path for name in done.stdout.split("\0") if name and (path := root / name).is_file())
    return sorted(path for path in root.rglob("*.md") if not {"build", ".git"} & set(path.relative_to(root).parts))


def dead(page: pathlib.Path, root: pathlib.Path) -> List[str]:
    """Returns a sentence for every relative link of a page that is dead or leads out of the tree."""
    said = []
    for line, target in relative_links(page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        where = f"{page.relative_to(root)}:{line}: '{target}'"
        if root not in [file, *file.parents]:
            said.append(f"{where} leads out of the tree")
        elif not file.exists():
            said.append(f"{where}: there is no such file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            said.append(f"{where}: the page has no such heading")
    return said
