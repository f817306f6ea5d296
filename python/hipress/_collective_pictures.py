"""Picture of published collectives and their predictions, from the JSON that scripts/reproduce_gpu.py writes."""

from typing import Any, Dict, List, Mapping, Tuple

from hipress._style import COLOURS, Picture, PictureError, grid, legend_below, pyplot, set_title

#: Lines of a panel: rows by collective, hosts, GPUs and algorithm.
Series = Dict[Tuple[str, int, int, str], List[Mapping[str, Any]]]
KEYS = ("table", "machine", "collective", "hosts", "gpus", "asked_algorithm", "bytes", "measured_s", "predicted_s")


def _by_table(document: Mapping[str, Any]) -> Dict[str, Series]:
    rows = document.get("rows")
    if not isinstance(rows, list) or not rows or any(key not in row for row in rows for key in KEYS):
        raise PictureError("has no rows of collectives: give what scripts/reproduce_gpu.py --json writes")
    tables: Dict[str, Series] = {}
    for row in rows:
        key = (row["collective"], row["hosts"], row["gpus"], row["asked_algorithm"])
        tables.setdefault(row["table"], {}).setdefault(key, []).append(row)
    return tables


def collectives(document: Mapping[str, Any], title: str = "") -> Picture:
    """Draws time over size, both logarithmic, with a panel for each table. Published times are dots, predictions lines, and each
    collective has a colour. Raises PictureError if the document is of a different kind."""
    tables = _by_table(document)
    kinds = sorted({key[0] for series in tables.values() for key in series})
    colours = {kind: COLOURS[place % len(COLOURS)] for place, kind in enumerate(kinds)}
    figure, panels = grid(len(tables), 3.1, 2.3, columns=min(4, len(tables)))
    for axes, (table, series) in zip(panels.flat, tables.items()):
        for (kind, *_), rows in series.items():
            rows = sorted(rows, key=lambda row: row["bytes"])
            sizes = [row["bytes"] for row in rows]
            axes.plot(sizes, [row["predicted_s"] for row in rows], color=colours[kind], linewidth=1.1)
            axes.plot(sizes, [row["measured_s"] for row in rows], "o", color=colours[kind], markersize=2.6, alpha=0.8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        machines = {row["machine"] for rows in series.values() for row in rows}
        hosts = sorted({key[1] for key in series})
        counted = f"{hosts[0]}" if len(hosts) == 1 else f"{hosts[0]} to {hosts[-1]}"
        axes.set_title(f"{table}: {counted} × {', '.join(sorted(machines))}", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(True, linewidth=0.3)
    for axes in panels[-1]:
        axes.set_xlabel("bytes", fontsize=8)
    for axes in panels[:, 0]:
        axes.set_ylabel("seconds", fontsize=8)
    lines = [pyplot().Line2D([], [], color=colours[kind], marker="o", markersize=4, label=kind.replace("_", "-")) for kind in kinds]
    legend_below(figure, lines)
    set_title(figure, title or "Collectives: published (dots) and predicted from data sheets (lines)")
    return Picture(figure, panels[0, 0])
