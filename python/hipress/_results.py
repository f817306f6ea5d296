"""Results of requests: the keys of `--json` as attributes."""

import copy
import html
import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from hipress import _tables
from hipress._errors import short
from hipress._output import write_whole

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import pandas


def duration(seconds: Optional[float]) -> str:
    """Formats a duration with a fitting unit, such as "12.3 ms"; "unknown" for None."""
    if seconds is None:
        return "unknown"
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= length:
            return f"{seconds / length:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns" if seconds else "0 s"


def _frame(rows: Any, **options: Any) -> "pandas.DataFrame":
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame() needs pandas: install Debian's python3-pandas, or pandas from PyPI, for this interpreter "
                          f"({error}); to_dict() needs nothing") from error
    return pandas.DataFrame(rows, **options)


class Result:
    """Answer to a request: a document whose keys are attributes. docs/ describes the keys of each tool's `--json`."""

    def __init__(self, document: Dict[str, Any]) -> None:
        self._document = document

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._document:
            known = ", ".join(self.__dict__.get("_document", {}))
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}' (known: {known})")
        return self._document[name]

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self._document})

    def __repr__(self) -> str:
        return f"<{type(self).__name__}\n" + "\n".join(f"  {line}" for line in self._lines()) + ">"

    def _repr_html_(self) -> str:
        return f"<b>{type(self).__name__}</b><br>" + "<br>".join(html.escape(line) for line in self._lines())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and type(self) is type(other) and self._document == other._document

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> Dict[str, Any]:
        """Copy of the document, which the tool prints with --json."""
        return copy.deepcopy(self._document)

    def _lines(self) -> Sequence[str]:
        raise NotImplementedError


class Plan(Result):
    """Result of plan(): the verdict, and the predicted times of the plan and the baselines."""

    verdict: str
    predicted_iteration_s: Optional[float]

    def __init__(self, document: Dict[str, Any]) -> None:
        super().__init__({key: value for key, value in document.items() if key != "page"})
        self._page: Optional[str] = document.get("page")

    def save_html(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the plan's report, as argument `report` of plan() does: one HTML file with the verdict, the predicted timeline and
        the plan, which a browser opens without a network. Raises ValueError for broadcasts and compared schedules, which have no
        report. Raises OSError if the file cannot be written; no partial file is left."""
        if self._page is None:
            raise ValueError("there is no report of broadcasts and of schedules that are compared: save one of a plan that averages "
                             "gradients under schedule ddp")
        write_whole(path, self._page)

    def _lines(self) -> Sequence[str]:
        if "sentence" in self._document:  # a comparison of numbers of hosts
            return [self.sentence, *(f"{row['hosts']} hosts: {duration(row['iteration_s'])} a step, {row['units_per_s']:.4g} "
                                     f"{self.unit}/s, efficiency {row['efficiency']:.0%}" for row in self.hosts)]
        if "verdict" not in self._document:  # a broadcast
            return [f"broadcast by {self.topology}, codec {self.algorithm}, {self.chunks} chunks",
                    f"predicted {duration(self.predicted_s)}, {self.nodes} nodes"]
        lines = [self.verdict, f"{self.compressed} of {self.gradients} gradients compressed, by {self.topology}"]
        if self.predicted_iteration_s is not None:
            lines.append(f"iteration {duration(self.predicted_iteration_s)} "
                         f"({duration(self.predicted_iteration_s_p10)} … {duration(self.predicted_iteration_s_p90)})")
        return lines

    def records(self) -> List[Dict[str, Any]]:
        """Iteration times in seconds with their 10th and 90th percentiles, a dictionary for each baseline and for "this plan". For
        a broadcast, a dictionary for each choice; for several numbers of hosts, one for each number."""
        if "sentence" in self._document:
            return [dict(row) for row in self.hosts]
        if "verdict" not in self._document:
            return [dict(choice) for choice in self.choices]
        rows = [{"plan": name, "iteration_s": time, "p10_s": self.baselines_p10[name], "p90_s": self.baselines_p90[name],
                 "faster_than": self.faster_than[name]} for name, time in (self.baselines or {}).items()]
        return [*rows, {"plan": "this plan", "iteration_s": self.predicted_iteration_s, "p10_s": self.predicted_iteration_s_p10,
                        "p90_s": self.predicted_iteration_s_p90, "faster_than": None}]

    def to_frame(self) -> "pandas.DataFrame":
        """records() as a pandas frame. Raises ImportError without pandas."""
        return _frame(self.records())

    def plot(self, ax: Optional["matplotlib.axes.Axes"] = None, kind: Optional[str] = None) -> "matplotlib.figure.Figure":
        """Draws the times of records() with their intervals, or for required bandwidths the utilisation over the bandwidth. Draws
        into `ax` or new axes, and returns their figure. Raises ImportError without matplotlib.

        kind  "break_even", for a plan with break_even: draws the speed-up by compression over the varied quantity, and the values
              at which the verdict turns. Raises ValueError for a different kind, or for a plan without break_even"""
        from hipress import _plots

        if kind not in (None, "break_even"):
            raise ValueError(f'kind must be "break_even" or left out, got {short(kind)}')
        return _plots.figure_of(_plots.plan(self, ax) if kind is None else _plots.break_even(self, ax))


class Simulation(Result):
    """Result of simulate(): times with their intervals, their parts, and the utilisation of resources."""

    iteration_s: float
    compute_s: float
    exposed_communication_s: float
    synchronisation_s: float

    #: Times that have an interval.
    TIMES = ("iteration", "synchronisation", "compute", "exposed_communication")

    def _lines(self) -> Sequence[str]:
        said = self._document
        times = [f"{name.replace('_', ' ')} {duration(said[name + '_s'])} "
                 f"({duration(said[name + '_s_p10'])} … {duration(said[name + '_s_p90'])})" for name in self.TIMES]
        return [*times, self.machines]

    def records(self) -> List[Dict[str, Any]]:
        """Times in seconds with their 10th and 90th percentiles, a dictionary each."""
        said = self._document
        return [{"time": name, "s": said[name + "_s"], "p10_s": said[name + "_s_p10"], "p90_s": said[name + "_s_p90"]}
                for name in self.TIMES]

    def to_frame(self, key: Optional[str] = None) -> "pandas.DataFrame":
        """Pandas frame of records(); with a key, of the list of that name, such as "critical_path" or "links". Raises ImportError
        without pandas."""
        return _frame(self.records() if key is None else getattr(self, key))

    def plot(self, ax: Optional["matplotlib.axes.Axes"] = None,
             beside: Optional[Mapping[str, "Simulation"]] = None) -> "matplotlib.figure.Figure":
        """Draws the critical path by kind of task into `ax` or axes of their own, and returns their figure. Raises ImportError
        without matplotlib.

        beside  simulations of other plans on the same machines by name, among them "ddp" and "ddp_fp16": draws the parts of each
                iteration instead: computation, its slowdown by codecs and by transfers, and exposed communication. Raises
                ValueError without these two"""
        from hipress import _plots

        return _plots.figure_of(_plots.simulation(self, ax) if beside is None else _plots.beside(self, beside, ax))


class Sweep(Result):
    """Result of sweep(): `columns`, and `rows` of values in their order. Iteration yields a dictionary for each row."""

    columns: List[str]
    axes: List[str]
    rows: List[List[Any]]
    provenance: List[str]

    def _lines(self) -> Sequence[str]:
        varying = ", ".join(self.varying()) or "nothing varies"
        return [f"{len(self.rows)} rows of {len(self.columns)} columns", f"axes: {varying}",
                f"{self.simulations} simulations, {self.plans} plans made"]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return (dict(zip(self.columns, row)) for row in self.rows)

    def records(self) -> List[Dict[str, Any]]:
        """Rows as dictionaries."""
        return list(self)

    def varying(self) -> List[str]:
        """Names of the axes that have several values."""
        return [name for place, name in enumerate(self.columns)
                if name in self.axes and len({row[place] for row in self.rows}) > 1]

    def to_frame(self) -> "pandas.DataFrame":
        """Pandas frame of the rows. Raises ImportError without pandas."""
        return _frame(self.rows, columns=self.columns)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the rows with their provenance. A name that ends in .csv selects CSV, with the provenance in lines that begin with
        #; one that ends in .parquet selects a Parquet table, with the provenance in its metadata as "hipress". Raises ValueError
        for any other ending, ImportError for Parquet without pyarrow, and OSError if the file cannot be written."""
        _tables.save(os.fspath(path), self.columns, self.rows, self.provenance)

    def plot(self, x: Optional[str] = None, y: str = "iteration_s",
             ax: Optional["matplotlib.axes.Axes"] = None, kind: Optional[str] = None) -> "matplotlib.figure.Figure":
        """Draws column `y` over column `x`, a line for each combination of the other axes, into `ax` or axes of their own, and
        returns their figure. Raises ImportError without matplotlib.

        x     column; None: the numeric axis with the most values, the last of equals
        kind  picture of the whole sweep instead, for sweeps with the plans `ddp` and `ddp_fp16`: "speedup" over both, by bandwidth
              and nodes, with the break-even; "efficiency" of scaling over nodes; "breakdown" of iterations, a panel for each point

        Raises ValueError for unknown columns and kinds, and for sweeps that cannot be drawn."""
        from hipress import _plots

        if kind is None:
            return _plots.figure_of(_plots.sweep(self, x, y, ax))
        if x is not None or ax is not None:
            raise ValueError("a kind of picture has axes of its own: leave out x and ax")
        return _plots.figure_of(_plots.sweep_picture(self, kind))


class Replay(Result):
    """Result of replay(): measured and predicted times. Ranks other than 0 of a job have no prediction."""

    verified: bool
    measured_iteration_s: Dict[str, float]
    predicted_iteration_s: Optional[float]

    def _lines(self) -> Sequence[str]:
        measured = self.measured_iteration_s
        lines = [f"iteration {duration(measured['median'])} ({duration(measured['p10'])} … {duration(measured['p90'])}), "
                 f"{self.iterations} iterations on {self.ranks} ranks"]
        if self.predicted_iteration_s is not None:
            lines.append(f"predicted {duration(self.predicted_iteration_s)} ({duration(self.predicted_iteration_s_p10)} … "
                         f"{duration(self.predicted_iteration_s_p90)})")
        return [*lines, "verified" if self.verified else "not verified", *self.notes]

    def records(self) -> List[Dict[str, Any]]:
        """Times of tasks by kind, predicted and measured, a dictionary each; empty without a prediction."""
        return [dict(kind) for kind in self.kinds]

    def to_frame(self) -> "pandas.DataFrame":
        """records() as a pandas frame. Raises ImportError without pandas."""
        return _frame(self.records())


class Profile(Result):
    """Result of profile(): the measured rates of codecs and links."""

    hardware: str
    codecs: Dict[str, Dict[str, Any]]

    def _lines(self) -> Sequence[str]:
        rates = [f"{name}: encodes {costs['encode_Bps'] / 1e9:.2f} GB/s, decodes {costs['decode_Bps'] / 1e9:.2f} GB/s"
                 for name, costs in self.codecs.items()]
        return [self.hardware, *rates, f"one flow {8 * self.link['bandwidth_Bps'] / 1e9:.2f} Gbit/s", *self.notes]

    def records(self) -> List[Dict[str, Any]]:
        """Codecs, a dictionary each."""
        return [{"codec": name, **costs} for name, costs in self.codecs.items()]

    def to_frame(self) -> "pandas.DataFrame":
        """records() as a pandas frame. Raises ImportError without pandas."""
        return _frame(self.records())


class Trace(Result):
    """Result of import_trace(): the steps of a trace, and the parts of their times."""

    steps: List[Dict[str, Any]]
    diagnostics: List[str]

    def _lines(self) -> Sequence[str]:
        lines = [f"{self.format}, {len(self.steps)} steps"]
        if self.gradients is not None:
            lines.append(f"{self.gradients} gradients, {self.elements} elements")
        if "schedule" in self._document:
            lines.append(f"{len(self.layers)} layers, trained with {self.schedule}")
        if "most_gain" in self._document:
            lines.append(self.most_gain)
        return [*lines, *(f"not told: {sentence}" for sentence in self.not_told)]

    def records(self) -> List[Dict[str, Any]]:
        """Steps, a dictionary each."""
        return [dict(step) for step in self.steps]

    def to_frame(self) -> "pandas.DataFrame":
        """records() as a pandas frame. Raises ImportError without pandas."""
        return _frame(self.records())

    def plot(self, ax: Optional["matplotlib.axes.Axes"] = None) -> "matplotlib.figure.Figure":
        """Draws the steps, as computation, exposed communication and idle time, into `ax` or axes of their own, and returns their
        figure. Raises ImportError without matplotlib."""
        from hipress import _plots

        return _plots.figure_of(_plots.trace(self, ax))
