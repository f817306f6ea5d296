"""Pictures of a pilot: losses by step, and how far what plans apply is from the mean, gradient by gradient."""

from typing import Any, Dict, List, Mapping, Sequence

from hipress import _steps_ratio
from hipress._pilot import DDP, summary
from hipress._style import BAND, Picture, PictureError, grid, legend_below, set_title, styles


def _rows(document: Mapping[str, Any], key: str) -> List[Mapping[str, Any]]:
    if not document.get(key):
        raise PictureError(f"has no {key}: give the file that `python -m hipress.pilot` writes, once runs have finished")
    return list(document[key])


def _title(document: Mapping[str, Any], what: str) -> str:
    return f"{what}: {document.get('script', '')}, {document.get('ranks', '')} ranks"


def losses(document: Mapping[str, Any], title: str = "") -> Picture:
    """The smoothed training loss of each plan by step, the mean over seeds, with the band from the lowest seed to the highest.
    PictureError for a document that is no pilot's."""
    curves: Dict[str, List[List[float]]] = {}
    for row in _rows(document, "plans"):
        curves.setdefault("ddp" if row["plan"] == DDP else row["plan"], []).append(_steps_ratio.smoothed(row["loss"]))
    figure, panels = grid(1, 6.2, 3.8)
    axes = panels[0, 0]
    for name, style in styles(list(curves)).items():
        by_step = list(zip(*curves[name]))
        steps = range(1, len(by_step) + 1)
        axes.plot(steps, [sum(of_seeds) / len(of_seeds) for of_seeds in by_step], label=name, markevery=0.1, **style)
        if len(curves[name]) > 1:
            axes.fill_between(steps, list(map(min, by_step)), list(map(max, by_step)), color=style["color"], **BAND)
    axes.set_xlabel("step")
    axes.set_ylabel("training loss, smoothed")
    axes.grid(True, linewidth=0.3)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    set_title(figure, title or _title(document, "Loss"))
    return Picture(figure, axes, list(summary(document)))


def errors(document: Mapping[str, Any], title: str = "") -> Picture:
    """The relative error of each gradient under each plan as a map: of encoders that have kept nothing, the mean over the points
    at which it was measured. PictureError for a document that is no pilot's."""
    cells: Dict[str, Dict[str, List[float]]] = {}
    for row in _rows(document, "errors"):
        cells.setdefault(row["gradient"], {}).setdefault(row["plan"], []).append(row["error"])
    plans: Sequence[str] = list(dict.fromkeys(row["plan"] for row in document["errors"]))
    table = [[sum(of.get(plan, [])) / max(1, len(of.get(plan, []))) for plan in plans] for of in cells.values()]
    figure, panels = grid(1, 1.6 + 0.9 * len(plans), 1 + 0.16 * len(table))
    axes = panels[0, 0]
    image = axes.imshow(table, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="‖applied − mean‖ / ‖mean‖", extend="max")
    axes.set_xticks(range(len(plans)), plans, rotation=30, ha="right", fontsize=8)
    axes.set_yticks(range(len(table)), list(cells), fontsize=6)
    set_title(figure, title or _title(document, "Errors"))
    return Picture(figure, axes)
