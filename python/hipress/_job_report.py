"""Report of a job as an HTML page: the planner's page, with a section of measurements before its other sections."""

import html
from typing import Iterable, List, Sequence

from hipress._control import Trial
from hipress._results import duration

#: Text in the planner's page before which the section is inserted.
_BEFORE = '<section id="comparison">'
#: Page of a job for which no plan was made.
_EMPTY = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>HiPress</title></head><body><main>
{_BEFORE[:-1]} hidden></section></main></body></html>
"""
_COLUMNS = ("trial", "DDP predicted", "with it", "gain predicted", "before it, measured", "with it", "gain measured", "outcome")


def page(planned: str, trials: Iterable[Trial], lines: Iterable[str]) -> str:
    """Returns the page. `planned` is the planner's page of a plan, empty without one, and `lines` are those of report()."""
    rows = "".join(f"<tr>{_cells('td', _row(one))}</tr>" for one in trials)
    table = (f'<div class="scroll"><table><thead><tr>{_cells("th", _COLUMNS)}</tr></thead><tbody>{rows}</tbody></table></div>'
             if rows else "<p>No plan was tried.</p>")
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    section = f'<section id="measured"><h2>Measured in this job</h2>{table}<ul>{items}</ul></section>\n'
    whole = planned or _EMPTY
    place = whole.index(_BEFORE[:-1])
    return whole[:place] + section + whole[place:]


def _row(trial: Trial) -> List[str]:
    way = trial.way
    predicted = [duration(way.ddp_s), duration(way.predicted_s), f"{way.gain:.2f}"] if way.text else ["", "", ""]
    return [f"{way.what}, at step {trial.step}", *predicted, f"{duration(trial.kept_s)} ({trial.beside})", duration(trial.tried_s),
            f"{trial.times:.2f}", "kept" if trial.is_kept else "dropped"]


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)


__all__ = ["page"]
