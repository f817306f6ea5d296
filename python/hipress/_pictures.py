"""The kinds of pictures: a row of KINDS and a function each, for `.plot()` and scripts/plot.py alike."""

import dataclasses
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from hipress import _break_even_picture, _learning_pictures, _sweep_pictures, _time_pictures
from hipress._style import Picture, PictureError

Rows = Sequence[Mapping[str, str]]
Documents = Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of picture, and how it is drawn of each form of data that it takes, under a title ("": what the data say)."""

    help: str
    of_sweep: Optional[Callable[[Rows, str], Picture]] = None  #: rows of a sweep's CSV, values as texts
    of_cases: Optional[Callable[[Rows, str], Picture]] = None  #: rows of another CSV
    of_documents: Optional[Callable[[Documents, str], Picture]] = None  #: JSON documents by name


def _only(documents: Documents) -> Mapping[str, Any]:
    if len(documents) != 1:
        raise PictureError(f"{len(documents)} files: this picture is of one")
    return next(iter(documents.values()))


def _times(documents: Documents, title: str) -> Picture:
    return _time_pictures.times_of_plan(_only(documents), title or next(iter(documents)))


def _break_even(documents: Documents, title: str) -> Picture:
    return _break_even_picture.break_even(_only(documents), title)


def _losses(documents: Documents, title: str) -> Picture:
    return _learning_pictures.losses(_only(documents), title)


def _errors(documents: Documents, title: str) -> Picture:
    return _learning_pictures.errors(_only(documents), title)


def _measured(documents: Documents, title: str) -> Picture:
    cases: List[Mapping[str, Any]] = []
    for document in documents.values():
        cases += [{"model": document.get("model"), "nnodes": document.get("nnodes"), **case} for case in document["cases"]] \
            if "cases" in document else [document]
    return _time_pictures.measured(cases, title)


KINDS: Dict[str, Kind] = {
    "speedup": Kind("speed-up over ddp and ddp_fp16, over bandwidth and nodes, with the break-even (CSV of a sweep)",
                    of_sweep=_sweep_pictures.speedup),
    "efficiency": Kind("scaling efficiency over nodes, with the ideal (CSV of a sweep)", of_sweep=_sweep_pictures.efficiency),
    "breakdown": Kind("where an iteration goes: computation, what codecs and transfers slow it by, exposed communication "
                      "(JSON of hipress-sim for each plan, as ddp=FILE.json; or CSV of a sweep)",
                      of_sweep=_time_pictures.breakdown_of_rows, of_documents=_time_pictures.breakdown),
    "times": Kind("predicted iterations of a plan and the baselines (JSON of hipress-plan)", of_documents=_times),
    "break_even": Kind("where compression begins to pay (JSON of hipress-plan with a break-even)", of_documents=_break_even),
    "required": Kind("utilisation over the bandwidth of links (JSON of hipress-plan about required bandwidths; a panel for each)",
                     of_documents=_time_pictures.required),
    "measured": Kind("predicted beside measured iterations (results.json of the demo, cases.csv of a validation, JSON of "
                     "hipress-exec)", of_cases=_time_pictures.measured, of_documents=_measured),
    "losses": Kind("training loss of each plan by step (pilot.yaml of python -m hipress.pilot)", of_documents=_losses),
    "errors": Kind("relative error of each gradient under each plan, as a map (pilot.yaml of python -m hipress.pilot)",
                   of_documents=_errors),
}
