"""Draws the paper's training throughputs, as shares of linear scaling, with predictions."""

import whole_file  # noqa: F401  (adds the package's folder to the path)
from hipress._style import into_files, pyplot, save

COLOURS = {"BytePS": "#d55e00", "Ring": "#0072b2", "OSS": "#e69f00", "HiPress-CaSync-PS": "#cc79a7",
           "HiPress-CaSync-Ring": "#009e73"}


def colour(case):
    return COLOURS["OSS"] if case.group == "OSS" else COLOURS.get(case.row.system, "#999999")


def draw(cases, path):
    """Draws the plot and writes it. Raises PictureError or OSError as save() does, and ImportError without matplotlib."""
    into_files()
    plt = pyplot()
    panels = {}
    for case in cases:
        panels.setdefault((case.row.cluster, case.row.framework, case.row.model), []).append(case)
    rows = sorted({key[0] for key in panels}, reverse=True)
    columns = max([sum(key[0] == row for key in panels) for row in rows], default=1)
    figure, axes = plt.subplots(max(len(rows), 1), columns, squeeze=False, layout="constrained",
                                figsize=(3.4 * columns + 0.6, 3.2 * max(len(rows), 1) + 1))
    for axis in axes.flat:
        axis.set_visible(False)
    for cluster, line in zip(rows, axes):
        for (key, of_panel), axis in zip([item for item in panels.items() if item[0][0] == cluster], line):
            draw_panel(axis, key, of_panel)
    figure.set_layout_engine("constrained", rect=(0, 0.06, 1, 0.94))  # the legend is below
    draw_legend(figure, cases)
    save(figure, path, dpi=100)


def draw_panel(axis, key, cases):
    axis.set_visible(True)
    axis.set_title(f"{key[2]}, {key[1]}, {key[0]}", fontsize=9)
    by_system = {}
    for case in cases:
        by_system.setdefault(case.row.system, []).append(case)
    for of_system in by_system.values():
        of_system.sort(key=lambda case: case.row.gpus)
        if of_system[0].row.is_linear:
            continue
        axis.plot([case.row.gpus for case in of_system], [case.predicted / case.linear for case in of_system],
                  color=colour(of_system[0]), linewidth=1.2)
        published = [case for case in of_system if case.row.throughput is not None]
        axis.plot([case.row.gpus for case in published],
                  [case.row.throughput / case.linear for case in published], "o",
                  color=colour(of_system[0]), markerfacecolor="none", markersize=5)
    gpus = sorted({case.row.gpus for case in cases})
    axis.set_xscale("log", base=2)
    axis.set_xticks(gpus, gpus)
    axis.set_ylim(0, 1.05)
    axis.set_xlabel("GPUs", fontsize=8)
    axis.set_ylabel(f"{cases[0].row.unit}, part of linear", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.3)


def draw_legend(figure, cases):
    from matplotlib.lines import Line2D

    entries = {("OSS baseline" if case.group == "OSS" else case.row.system): colour(case)
               for case in cases if not case.row.is_linear}
    handles = [Line2D([], [], color=value, label=name) for name, value in entries.items()]
    handles += [Line2D([], [], color="black", marker="o", linestyle="", markerfacecolor="none",
                       label="published; lines: predicted")]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), fontsize=8)
