"""Pictures of training: losses by step, from pilots, logs and small problems; and for each gradient, the error of the mean that a
plan applies."""

import pathlib
from typing import Any, Dict, List, Mapping, Sequence

from hipress import _steps_ratio
from hipress._pilot import DDP, summary
from hipress._style import BAND, Picture, PictureError, grid, legend_below, set_title, styles

#: Number of steps over which the losses of logs are averaged.
WINDOW = 20
#: Titles and steps of the problems that tests/training/curves.cpp trains, and how their algorithms are drawn.
PROBLEMS = {"quadratic": ("a quadratic: distance from the optimum", "four steps"),
            "classifier": ("breast cancer data, logistic regression: training loss", "step")}
COLOURS = {"none": "black", "onebit": "#d55e00", "tbq": "#0072b2", "terngrad": "#009e73", "fp16": "#cc79a7", "bf16": "#e69f00",
           "dgc": "#56b4e9", "graddrop": "#999999"}


def _rows(document: Mapping[str, Any], key: str) -> List[Mapping[str, Any]]:
    if not document.get(key):
        raise PictureError(f"has no {key}: give the file that `python -m hipress.pilot` writes, once runs have finished")
    return list(document[key])


def _title(document: Mapping[str, Any], what: str) -> str:
    return f"{what}: {document.get('script', '')}, {document.get('ranks', '')} ranks"


def losses_in_time(documents: Mapping[str, Mapping[str, Any]], title: str = "") -> Picture:
    """Draws DDP's training loss in the pilot over the seconds in which each plan is predicted to reach it. The 10–90 % band covers
    the time of a step and the number of steps. There is a line for the plan of each document, named after the document, and for
    PyTorch's plans in the first document. Raises PictureError for a document without a pilot's answer."""
    for name, document in documents.items():
        if not (document.get("learning") or {}).get("loss"):
            raise PictureError(f"{name} has no losses: give what hipress-plan --pilot pilot.yaml --json prints, of a pilot that "
                               "this version wrote")
    first = next(iter(documents.values()))["learning"]
    paces = {pace["plan"]: pace for pace in first["paces"] if pace["plan"] in ("ddp", "ddp_fp16", "ddp_powersgd")}
    for name, document in documents.items():
        paces[name] = next(pace for pace in document["learning"]["paces"] if pace["plan"] == "this plan")
    steps, loss = zip(*((point["step"], point["loss"]) for point in first["loss"]))
    shares = [step / steps[-1] for step in steps]
    figure, panels = grid(1, 6.2, 3.8)
    axes = panels[0, 0]
    for name, style in styles(list(paces)).items():
        seconds = {key: [share * paces[name][key] for share in shares] for key in ("to_loss_s", "to_loss_s_p10", "to_loss_s_p90")}
        axes.plot(seconds["to_loss_s"], loss, label=name, markevery=0.1, **style)
        axes.fill_betweenx(loss, seconds["to_loss_s_p10"], seconds["to_loss_s_p90"], color=style["color"], **BAND)
    axes.set_xlabel("predicted seconds")
    axes.set_ylabel("training loss of DDP in the pilot")
    axes.set_xlim(left=0)
    axes.grid(True, linewidth=0.3)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    set_title(figure, title or f"Loss over time: {', '.join(documents)}")
    said = [f"{name}: the loss that DDP has after {steps[-1]} steps in {pace['to_loss_s']:.4g} s "
            f"({pace['to_loss_s_p10']:.4g} to {pace['to_loss_s_p90']:.4g})" for name, pace in paces.items()]
    return Picture(figure, axes, said)


def losses(document: Mapping[str, Any], title: str = "") -> Picture:
    """Draws the smoothed training loss of each plan by step: the mean over seeds, with a band from the lowest to the highest.
    Raises PictureError if the document is not a pilot's."""
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
    """Draws the relative error of each gradient under each plan as a map: for encoders without a residual, the mean over the steps
    at which it was measured. Raises PictureError if the document is not a pilot's."""
    cells: Dict[str, Dict[str, List[float]]] = {}
    for row in _rows(document, "errors"):
        cells.setdefault(row["gradient"], {}).setdefault(row["plan"], []).append(row["error"])
    plans: Sequence[str] = list(dict.fromkeys(row["plan"] for row in document["errors"]))
    table = [[sum(of.get(plan, [])) / max(1, len(of.get(plan, []))) for plan in plans] for of in cells.values()]
    figure, panels = grid(1, 1.6 + 0.9 * len(plans), 1 + 0.19 * len(table))
    axes = panels[0, 0]
    image = axes.imshow(table, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="‖applied − mean‖ / ‖mean‖", extend="max")
    axes.set_xticks(range(len(plans)), [pathlib.PurePath(plan).name for plan in plans], rotation=30, ha="right", fontsize=8)
    axes.set_yticks(range(len(table)), list(cells), fontsize=7)
    set_title(figure, title or _title(document, "Errors"))
    return Picture(figure, axes)


def means(values: Sequence[float]) -> List[float]:
    """Running means of the values. Each is over a value and those before it, at most WINDOW values."""
    return [sum(values[max(0, i + 1 - WINDOW):i + 1]) / min(i + 1, WINDOW) for i in range(len(values))]


def logs(tables: Mapping[str, Sequence[Mapping[str, str]]], title: str = "") -> Picture:
    """Draws the losses that examples/train.py logs, with a line for each file, over steps and over seconds."""
    figure, panels = grid(2, 6, 4.1, sharey=True)
    for rows in tables.values():
        losses = means([float(row["loss"]) for row in rows])
        for axes, key in zip(panels[0], ("step", "seconds")):
            axes.plot([float(row[key]) for row in rows], losses, label=rows[0]["average"], linewidth=1.2)
            axes.set_xlabel(key)
            axes.grid(alpha=0.3)
    panels[0, 0].set_ylabel(f"training loss, mean of {WINDOW} steps")
    panels[0, 1].legend(fontsize=8)
    set_title(figure, title)
    return Picture(figure, panels[0, 0])


def feedback(rows: Sequence[Mapping[str, str]], title: str = "") -> Picture:
    """Draws the effect of error feedback, with a panel for each problem, and a line for each algorithm with and without it."""
    curves: Dict[str, Dict[str, List[Mapping[str, str]]]] = {problem: {} for problem in PROBLEMS}
    for row in rows:
        if row["problem"] not in curves:
            raise PictureError(f"there is no problem '{row['problem']}' (known: {', '.join(PROBLEMS)}): give what training_curves "
                               "prints")
        without = row["feedback"] == "without" and row["algorithm"] != "none"
        curves[row["problem"]].setdefault(row["algorithm"] + (" without error feedback" if without else ""), []).append(row)
    figure, panels = grid(len(PROBLEMS), 6, 4.1)
    for axes, (problem, lines) in zip(panels[0], curves.items()):
        for label, points in lines.items():
            axes.plot([float(row["value"]) for row in points], label=label, color=COLOURS.get(points[0]["algorithm"]),
                      linestyle="--" if " without" in label else "-", linewidth=1.2)
        axes.set(title=PROBLEMS[problem][0], xlabel=PROBLEMS[problem][1], yscale="log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    set_title(figure, title)
    return Picture(figure, panels[0, 0])
