"""Planning of a job that plans itself, on rank 0: costs of this machine's kernels, measured once, and candidate plans."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from hipress import _call, _library
from hipress._control import Candidate, Links
from hipress._engine import Error
from hipress._errors import HipressError
from hipress._version import version

#: Algorithms that do not slow learning.
ALGORITHMS = "int8block,fp16"
#: Predicted gain above which a plan is tried, and that up to which plain DDP is tried before a new plan.
_TRY, _SURE = 1.05, 1.5
#: Largest number of plans to try.
_MOST = 3
#: Budget of a search in seconds, and nice value of the thread that searches.
_BUDGET_S, _NICE = 0.4, 5
#: Longest measurement of kernels, in seconds.
_PROFILE_TIMEOUT_S = 600
#: Prefixes of launchers' environment variables, which would make the measuring process a rank of a job.
_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_", "SLURM_", "PMI_", "PMIX_")
#: Program that measures kernels. Its argument is a request in JSON.
_MEASURE = "import json, sys; from hipress import _call; _call.answered(json.loads(sys.argv[1])).document()"


def cache_folder() -> pathlib.Path:
    """Returns the folder that the library's cache_folder() names. Raises Error if no environment variable names one."""
    for name, below in (("HIPRESS_CACHE", ""), ("XDG_CACHE_HOME", "hipress"), ("HOME", ".cache/hipress")):
        if os.environ.get(name):
            return pathlib.Path(os.environ[name], below)
    raise Error("there is no folder for what this machine's kernels cost: set HIPRESS_CACHE, XDG_CACHE_HOME or HOME")


def _hardware() -> str:
    """Name of this machine's processor, and number of cores that this process may use."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return f"{found[1] if found else 'unknown processor'}, {len(os.sched_getaffinity(0))} cores"


def profile_of(algorithms: str, nodes: int, say: Any) -> str:
    """Returns the path of a profile of this machine's kernels, and of its internal links between `nodes` ranks. It comes from the
    cache, or is measured and put there; `say` takes a line about that. Raises Error if it cannot be measured, or
    takes more than _PROFILE_TIMEOUT_S."""
    named = "\n".join([version(), _hardware(), algorithms, str(nodes)])
    path = cache_folder() / f"profile-{hashlib.sha256(named.encode()).hexdigest()[:16]}.yaml"
    if path.is_file():
        return str(path)
    say("measuring this machine's kernels, once")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = os.path.join(folder, "profile.yaml")
        request = {"request": "profile", "algorithm": [algorithms], "quick": True, "passes": 1, "again": 0, "nnodes": nodes,
                   "output": made}
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
        environment["PYTHONPATH"] = os.pathsep.join([str(pathlib.Path(__file__).parents[1]), environment.get("PYTHONPATH", "")])
        environment["HIPRESS_LIBRARY"] = str(_library.library_path())
        try:
            done = subprocess.run([sys.executable, "-B", "-c", _MEASURE, json.dumps(request)], env=environment, capture_output=True,
                                  text=True, check=False, timeout=_PROFILE_TIMEOUT_S)
            failure = (done.stderr.strip().splitlines() or ["no reason"])[-1] if done.returncode != 0 else ""
        except subprocess.TimeoutExpired:
            failure = f"that takes more than {_PROFILE_TIMEOUT_S:g} s"
        if failure:
            raise Error(f"this machine's kernels cannot be measured: {failure}; give attach() a profile= of hipress-profile")
        os.replace(made, path)
    return str(path)


class Planning:
    """Planner on a thread of its own, without the GIL.

    request     members of all requests: nnodes, profile, topology, pilot, and nodes_per_host (0: all ranks on one host)
    algorithms  algorithms that plans may use, separated by commas; None: the pilot's"""

    def __init__(self, request: Mapping[str, Any], algorithms: Optional[str]) -> None:
        self._request, self._algorithms = dict(request), algorithms
        self._thread: Optional[threading.Thread] = None
        self.candidates: List[Candidate] = []
        self.seconds = 0.0
        self.failure = ""

    def start(self, model: str, links: Links, kept: str) -> None:
        """Starts to plan for a model's YAML over these links. `kept` is the text of the plan that averages now; empty: plain
        DDP."""
        self.failure = ""
        self._thread = threading.Thread(target=self._run, args=(model, links, kept), name="hipress-planning")
        self._thread.start()

    def give_up(self, why: str) -> None:
        """Ends planning without candidates, for the reason `why`."""
        self._thread, self.candidates, self.seconds, self.failure = None, [], 0.0, f"no plan ({why})"

    @property
    def is_ready(self) -> bool:
        """True if planning has ended, with candidates or a failure."""
        return not (self._thread.is_alive() if self._thread is not None else not self.failure)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run(self, model: str, links: Links, kept: str) -> None:
        began = time.perf_counter()
        self.candidates = []
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
            with tempfile.TemporaryDirectory(prefix="hipress-plan-") as folder:
                self.candidates = self._candidates(pathlib.Path(folder), model, links, bool(kept))
        except Exception as error:  # training goes on without a plan
            said = str(error) if isinstance(error, (HipressError, OSError)) else f"{type(error).__name__}: {error}"
            self.failure = f"no plan ({said})"
        self.seconds = time.perf_counter() - began

    def _candidates(self, folder: pathlib.Path, model: str, links: Links, keeps_plan: bool) -> List[Candidate]:
        (folder / "model.yaml").write_text(model)
        request = {**self._request, "request": "plan", "input": str(folder / "model.yaml"), "budget": _BUDGET_S, "jobs": 1}
        per_host = request.pop("nodes_per_host")
        if per_host:
            (folder / "cluster.yaml").write_text(f"nodes_per_host: {per_host}\n")
            request.update(cluster=str(folder / "cluster.yaml"), bandwidth=f"{links.bandwidth:.0f}B/s",
                           latency=f"{1e6 * links.latency_s:.1f}us")
        found: Dict[str, Candidate] = {}
        for algorithms in self._sets():
            one = self._plan({**request, "algorithm": algorithms}, folder / "plan.yaml")
            if one is not None:
                found.setdefault(one.text, one)
        return chosen(list(found.values()), keeps_plan)

    def _sets(self) -> Sequence[Optional[str]]:
        """Sets of algorithms to plan with: all together, and each alone. None: the pilot's."""
        if self._algorithms is None:
            return [None]
        names = re.split(r",(?![^(]*\))", self._algorithms)
        return [self._algorithms, *(names if len(names) > 1 else [])]

    def _plan(self, request: Mapping[str, Any], output: pathlib.Path) -> Optional[Candidate]:
        """Makes a plan and writes it to `output`. Returns None if it compresses nothing, or lacks a prediction for itself or
        DDP."""
        document = _call.answered({**request, "output": str(output)}).document()
        predicted, ddp = document["predicted_iteration_s"], (document["baselines"] or {}).get("ddp")
        if not document["compressed"] or predicted is None or ddp is None:
            return None
        text = output.read_text()
        used = sorted(set(re.findall(r"\balgorithm: *([^,}\n]+(?:\([^)]*\))?)", text)) - {"none"})
        what = f"{'+'.join(used)} for {document['compressed']} of {document['gradients']} gradients"
        return Candidate(text, what, predicted, ddp)


def chosen(found: Sequence[Candidate], keeps_plan: bool) -> List[Candidate]:
    """Selects the candidates that are worth a trial, fastest first. If a plan averages now (`keeps_plan`), plain DDP comes before
    them unless the first is faster by more than _SURE."""
    best = sorted((one for one in found if one.gain > _TRY), key=lambda one: one.predicted_s)[:_MOST]
    if keeps_plan and not (best and best[0].gain > _SURE):
        ddp_s = found[0].ddp_s if found else 0.0
        best.insert(0, Candidate("", "plain DDP", ddp_s, ddp_s))
    return best


__all__ = ["ALGORITHMS", "Planning", "cache_folder", "chosen", "profile_of"]
