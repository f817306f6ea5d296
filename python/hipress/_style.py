"""What pictures have in common: how plans look, panels, titles. Lines differ in marker and dash and bars in hatch as well as in
colour, so that a copy in black and white, or a colour-blind reader, loses nothing."""

import dataclasses
import math
import textwrap
from typing import Any, Dict, List, Optional, Sequence, Tuple

#: What everything is compared with.
BASELINES = ("ddp", "ddp_fp16")
#: Okabe and Ito's colours, which colour-blind people tell apart, without those of BASELINES.
COLOURS = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "oDvP*X"
DASHES = ("-", (0, (5, 1)), (0, (3, 1, 1, 1)))
#: A band around the line of the same colour.
BAND = {"alpha": 0.18, "linewidth": 0}
MS = 1e3


class PictureError(ValueError):
    """What cannot be drawn, and the remedy."""


@dataclasses.dataclass
class Picture:
    """A drawn figure of matplotlib, the axes of its first panel, and what it says in words, a sentence each."""

    figure: Any
    axes: Any
    said: List[str] = dataclasses.field(default_factory=list)


def pyplot() -> Any:
    """matplotlib.pyplot. ImportError, which says what to install, without it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(f"{error}; pictures need matplotlib: install Debian's python3-matplotlib, or matplotlib from PyPI, for "
                          "this interpreter") from error
    return matplotlib.pyplot


def own_axes(axes: Optional[Any]) -> Any:
    """The axes, or those of a new figure."""
    return pyplot().subplots(layout="constrained")[1] if axes is None else axes


def styles(names: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    """How the line of each name is drawn. `ddp` is always black and dashed, `ddp_fp16` blue and dotted, and both lie in front. Others
    follow in turn, each thinner than the one before, so that all lines in one place can be seen."""
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
    """How many panels stand beside each other: 4 to 2, so that rows are full where they can be."""
    most = min(panels, 4)
    return next((count for count in range(most, 1, -1) if panels % count == 0), most)


def grid(panels: int, width: float, height: float, columns: Optional[int] = None, **options: Any) -> Tuple[Any, Any]:
    """A figure, and a table of axes for so many panels, each that many inches wide and high; axes beyond them are empty."""
    columns = columns or across(panels)
    rows = math.ceil(panels / columns)
    figure, axes = pyplot().subplots(rows, columns, squeeze=False, layout="constrained",
                                     figsize=(1 + width * columns, 0.9 + height * rows), **options)
    for empty in axes.flat[panels:]:
        empty.axis("off")
    return figure, axes


def set_title(figure: Any, title: str) -> None:
    """Above all panels: what was planned."""
    if title:
        lines = textwrap.wrap(title, int(11 * figure.get_size_inches()[0]))
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=11)


def legend_below(figure: Any, handles: Sequence[Any], columns: int = 4) -> None:
    """One legend for all panels, in room of its own."""
    columns = max(1, min(columns, len(handles)))
    inches = 0.1 + 0.22 * math.ceil(len(handles) / columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + inches)
    share = inches / (height + inches)
    figure.set_layout_engine("constrained", rect=(0, share, 1, 1 - share))
    figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, fontsize=9)


def require_baselines(names: Sequence[str], remedy: str) -> None:
    """PictureError unless the baselines are among the plans; the remedy has a place for those that are missing."""
    missing = [f"`{name}`" for name in BASELINES if name not in names]
    if missing:
        raise PictureError(f"there is no plan {' and no '.join(missing)} to compare with: "
                           f"{remedy.format(missing=' and '.join(missing))}")
