"""The kinds of pictures: a row of KINDS and a function each, for `.plot()` and `python -m hipress.plot` alike."""

import dataclasses
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar

from hipress import (_break_even_picture, _collective_pictures, _learning_pictures, _message_pictures, _sweep_pictures,
                     _time_pictures, _timeline_picture)
from hipress._style import Picture, PictureError

Rows = Sequence[Mapping[str, str]]
Tables = Mapping[str, Rows]
Documents = Mapping[str, Mapping[str, Any]]
_File = TypeVar("_File")


@dataclasses.dataclass(frozen=True)
class Kind:
    """Kind of picture, with a function for each form of data that it takes. The functions' second argument is the title; "" selects
    a title from the data."""

    help: str
    of_sweep: Optional[Callable[[Rows, str], Picture]] = None  #: rows of a sweep's CSV, values as texts
    of_tables: Optional[Callable[[Tables, str], Picture]] = None  #: rows of other CSVs by the file's name
    #: Columns that these tables must have, and the functions that read their fields.
    columns: Mapping[str, Callable[[str], Any]] = dataclasses.field(default_factory=dict)
    of_documents: Optional[Callable[[Documents, str], Picture]] = None  #: JSON documents by name
    of_request: Optional[Callable[[Mapping[str, Any], str], Picture]] = None  #: members of the request that is answered


def _only(files: Mapping[str, _File]) -> _File:
    if len(files) != 1:
        raise PictureError(f"{len(files)} files: this picture is of one")
    return next(iter(files.values()))


def _timeline(documents: Documents, title: str) -> Picture:
    return _timeline_picture.timeline(_only(documents), title)


def _feedback(tables: Tables, title: str) -> Picture:
    return _learning_pictures.feedback(_only(tables), title)


def _cases(tables: Tables, title: str) -> Picture:
    return _time_pictures.measured(_only(tables), title)


def _times(documents: Documents, title: str) -> Picture:
    return _time_pictures.times_of_plan(_only(documents), title or next(iter(documents)))


def _break_even(documents: Documents, title: str) -> Picture:
    return _break_even_picture.break_even(_only(documents), title)


def _losses(documents: Documents, title: str) -> Picture:
    if any("learning" in document for document in documents.values()):
        return _learning_pictures.losses_in_time(documents, title)
    return _learning_pictures.losses(_only(documents), title)


def _errors(documents: Documents, title: str) -> Picture:
    return _learning_pictures.errors(_only(documents), title)


def _collectives(documents: Documents, title: str) -> Picture:
    return _collective_pictures.collectives(_only(documents), title)


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
                     "hipress-exec)", of_tables=_cases, of_documents=_measured),
    "losses": Kind("training loss by step: of each plan (pilot.yaml of python -m hipress.pilot), or over predicted seconds with "
                   "bands (JSON of hipress-plan --pilot, of one plan or several), or of logs of examples/train.py (CSV)",
                   of_documents=_losses, of_tables=_learning_pictures.logs,
                   columns={"average": str, "step": int, "seconds": float, "loss": float}),
    "collectives": Kind("published collectives of GPUs beside their predictions, time over bytes, a panel for each table (JSON of "
                        "scripts/reproduce_gpu.py)", of_documents=_collectives),
    "errors": Kind("relative error of each gradient under each plan, as a map (pilot.yaml of python -m hipress.pilot)",
                   of_documents=_errors),
    "timeline": Kind("the timelines of a trace, a lane for each node and resource (JSON that a tool wrote with --trace)",
                     of_documents=_timeline),
    "training": Kind("what error feedback changes (CSV of build/release/tests/training/training_curves)", of_tables=_feedback,
                     columns={"problem": str, "algorithm": str, "feedback": str, "step": int, "value": float}),
    "broadcast": Kind("how long broadcasts take by what is sent, each topology with its best chunk count, and their break-evens "
                      "(members of the planner's request: profile=a100-25g nnodes=8 algorithm=fp16 …)",
                      of_request=_message_pictures.broadcasts),
    "sparse": Kind("how long a sparse all-gather takes by density, beside dense rings, and their break-evens (members of the "
                   "simulator's request: profile=a100-25g nnodes=8 …; elements=16777216 of the gradient)",
                   of_request=_message_pictures.densities),
}
