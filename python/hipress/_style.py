"""Common parts of pictures: styles of plans, panels and titles. Lines differ in marker and dash, and bars in hatch, as well as in
colour, so that pictures are legible in black and white and to colour-blind readers."""

import dataclasses
import math
import os
import pathlib
import textwrap
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from hipress._output import replacing

#: Plans that all others are compared with.
BASELINES = ("ddp", "ddp_fp16")
#: Okabe and Ito's colours, which colour-blind people can distinguish, without those of BASELINES.
COLOURS = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "oDvP*X"
DASHES = ("-", (0, (5, 1)), (0, (3, 1, 1, 1)))
#: Style of a band around the line of the same colour.
BAND = {"alpha": 0.18, "linewidth": 0}
MS = 1e3


class PictureError(ValueError):
    """Failure to draw a picture, with the remedy."""


@dataclasses.dataclass
class Picture:
    """Figure that matplotlib has drawn, with the axes of its first panel and its statements in words, a sentence each."""

    figure: Any
    axes: Any
    said: List[str] = dataclasses.field(default_factory=list)


def pyplot() -> Any:
    """Imports matplotlib.pyplot. Raises ImportError without it; the message says what to install."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(f"{error}; pictures need matplotlib: install Debian's python3-matplotlib, or matplotlib from PyPI, for "
                          "this interpreter") from error
    return matplotlib.pyplot


def into_files() -> None:
    """Makes matplotlib draw without a display from now on. Raises ImportError as pyplot() does."""
    pyplot().switch_backend("Agg")


def form_of(path: Union[str, "os.PathLike[str]"]) -> str:
    """Form of a picture by the suffix of its path, such as "png". Raises PictureError if matplotlib does not write this form, and
    ImportError without matplotlib."""
    pyplot()
    from matplotlib.backend_bases import FigureCanvasBase

    form = pathlib.Path(path).suffix[1:].lower()
    if form not in FigureCanvasBase.get_supported_filetypes():
        raise PictureError(f"{path}: its suffix says no form of a picture; give a name that ends in .png, .svg or .pdf")
    return form


def save(figure: Any, path: Union[str, "os.PathLike[str]"], dpi: int = 120) -> None:
    """Writes the figure whole or not at all, and closes it. Raises PictureError or ImportError as form_of() does, and OSError if
    the file cannot be written."""
    import matplotlib

    form = form_of(path)
    # Texts of an SVG stay texts, and equal pictures give equal files.
    with replacing(path) as temporary, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "hipress"}):
        figure.savefig(temporary, dpi=dpi, format=form, **({"metadata": {"Date": None}} if form == "svg" else {}))
    pyplot().close(figure)


def own_axes(axes: Optional[Any]) -> Any:
    """Returns the axes, or those of a new figure for None."""
    return pyplot().subplots(layout="constrained")[1] if axes is None else axes


def styles(names: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    """Style of the line of each name. `ddp` is always black and dashed, `ddp_fp16` blue and dotted, and both lie in front. Lines of
    the other plans become thinner in turn, down to a limit, so that coinciding lines are all visible."""
    found: Dict[str, Dict[str, Any]] = {
        "ddp": {"color": "#000000", "marker": "s", "linestyle": "--", "linewidth": 1.6, "markersize": 5, "zorder": 4},
        "ddp_fp16": {"color": "#0072b2", "marker": "^", "linestyle": ":", "linewidth": 1.8, "markersize": 5, "zorder": 4}}
    others = [name for name in dict.fromkeys(names) if name not in found]
    for place, name in enumerate(others):
        found[name] = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)],
                       "linestyle": DASHES[place // len(COLOURS) % len(DASHES)],
                       "linewidth": max(1.2, 2.6 - 0.5 * place), "markersize": max(3.5, 7 - place)}
    return {name: found[name] for name in names}


def across(panels: int) -> int:
    """Number of panels in a row: the largest from 4 to 2 that divides the number of panels; if none does, at most 4."""
    most = min(panels, 4)
    return next((count for count in range(most, 1, -1) if panels % count == 0), most)


def grid(panels: int, width: float, height: float, columns: Optional[int] = None, **options: Any) -> Tuple[Any, Any]:
    """Makes a figure for a number of panels, each `width` by `height` inches. Returns it with a table of axes, of which those
    beyond the last panel stay empty."""
    columns = columns or across(panels)
    rows = math.ceil(panels / columns)
    figure, axes = pyplot().subplots(rows, columns, squeeze=False, layout="constrained",
                                     figsize=(1 + width * columns, 0.9 + height * rows), **options)
    for empty in axes.flat[panels:]:
        empty.axis("off")
    return figure, axes


def set_title(figure: Any, title: str) -> None:
    """Sets a title above all panels, with line breaks where it is too long; "": no title."""
    if title:
        lines = textwrap.wrap(title, int(11 * figure.get_size_inches()[0]))
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=11)


def legend_below(figure: Any, handles: Sequence[Any], columns: int = 4) -> None:
    """Adds one legend for all panels below them, and makes the figure higher for it."""
    columns = max(1, min(columns, len(handles)))
    inches = 0.1 + 0.22 * math.ceil(len(handles) / columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + inches)
    share = inches / (height + inches)
    figure.set_layout_engine("constrained", rect=(0, share, 1, 1 - share))
    figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, fontsize=9)


def require_baselines(names: Sequence[str], remedy: str) -> None:
    """Raises PictureError unless the baselines are among the plans. `{missing}` in the remedy is replaced by the missing ones."""
    missing = [f"`{name}`" for name in BASELINES if name not in names]
    if missing:
        raise PictureError(f"there is no plan {' and no '.join(missing)} to compare with: "
                           f"{remedy.format(missing=' and '.join(missing))}")
