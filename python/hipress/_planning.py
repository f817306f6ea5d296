"""Planning of a job that plans itself, on rank 0: costs of this machine's kernels, measured once, and candidate plans."""

import atexit
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence

from hipress import _call, _library
from hipress._control import Candidate, Links
from hipress._engine import Error, check
from hipress._errors import HipressError

#: Algorithms that do not slow learning.
ALGORITHMS = "int8block,fp16"
#: Predicted gain above which a plan is tried. Predicted gain over plain DDP up to which plain DDP is tried before a further plan.
_TRY, _SURE = 1.05, 1.5
#: Largest number of plans to try.
_MOST = 3
#: Budget of a search: steps whose time it takes, and its least and most seconds. Searches with one algorithm have a share of it.
_BUDGET_STEPS, _LEAST_BUDGET_S, _MOST_BUDGET_S, _OF_ONE = 5, 0.1, 0.4, 0.25
#: Nice value of the planner's thread: training has the cores that it wants, and planning comes to its end even if it wants all.
_NICE = 19
#: Longest measurement of kernels, and time between two checks of it, in seconds.
_PROFILE_TIMEOUT_S, _LOOK_S = 600, 0.1
#: Prefixes of launchers' environment variables, which would make the measuring process a rank of a job.
_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_", "SLURM_", "PMI_", "PMIX_")
#: Program that measures kernels. Its argument is a request in JSON.
_MEASURE = "import sys; from hipress import _planning; _planning.measure(sys.argv[1])"
#: Linux's prctl() that ends a process with its parent.
_PR_SET_PDEATHSIG = 1
#: Lock that is held while the machine is measured for one of this process's models.
_measuring = threading.Lock()


def profile_path(algorithms: str, nodes: int) -> pathlib.Path:
    """Path, in the cache folder, of a profile of this machine's kernels, and of its internal links between `nodes` ranks. Raises
    InvalidRequest without a cache folder."""
    path = ctypes.c_void_p()
    check(_library.library().hipress_cached_profile(algorithms.encode(), nodes, ctypes.byref(path)))
    try:
        return pathlib.Path(os.fsdecode(ctypes.string_at(path.value or 0)))
    finally:
        _library.library().hipress_free_result(path)


def step_back() -> None:
    """Gives this process only the cores that no other process wants, and has it end with its parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError:
        os.nice(_NICE)


def measure(request: str) -> None:
    """Answers a request in JSON, in a process of its own."""
    step_back()
    _call.answered(json.loads(request)).document()


class Profiling(threading.Thread):
    """Thread that has a process measure this machine's kernels, while training goes on, and puts the profile at `path`. If that
    fails or takes more than _PROFILE_TIMEOUT_S, `failure` is the reason."""

    def __init__(self, path: pathlib.Path, algorithms: str, nodes: int) -> None:
        super().__init__(name="hipress-profiling", daemon=True)
        self._path, self._algorithms, self._nodes = path, algorithms, nodes
        self._closed = False
        self.seconds, self.failure = 0.0, ""
        self.start()

    def run(self) -> None:
        began = time.perf_counter()
        while not _measuring.acquire(timeout=_LOOK_S):
            if self._closed:
                return
        try:
            failure = "" if self._path.is_file() else self._measure()
        except OSError as error:
            failure = str(error)
        finally:
            _measuring.release()
        if failure:
            self.failure = f"this machine's kernels cannot be measured: {failure}; give attach() a profile= of hipress-profile"
        self.seconds = time.perf_counter() - began

    def _measure(self) -> str:
        """Returns the reason why the profile could not be made; empty if it was."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._path.parent) as folder:
            made = os.path.join(folder, "profile.yaml")
            request = {"request": "profile", "algorithm": [self._algorithms], "quick": True, "passes": 1, "again": 0,
                       "nnodes": self._nodes, "output": made}
            environment = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
            environment["PYTHONPATH"] = os.pathsep.join([str(pathlib.Path(__file__).parents[1]), environment.get("PYTHONPATH", "")])
            environment["HIPRESS_LIBRARY"] = str(_library.library_path())
            with open(os.path.join(folder, "said"), "w+", errors="replace") as said:
                process = subprocess.Popen([sys.executable, "-B", "-c", _MEASURE, json.dumps(request)], env=environment,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
                failure = self._wait(process)
                said.seek(0)
                if process.returncode == 0:
                    os.replace(made, self._path)
                    return ""
                return failure or (said.read().strip().splitlines() or ["no reason"])[-1]

    def _wait(self, process: "subprocess.Popen[bytes]") -> str:
        """Waits for the process, and ends it if it takes too long or after close(). Returns the reason if it was ended."""
        end = time.monotonic() + _PROFILE_TIMEOUT_S
        failure = ""
        while process.poll() is None and not failure:
            if self._closed:
                failure = "the job has ended"
            elif time.monotonic() > end:
                failure = f"that takes more than {_PROFILE_TIMEOUT_S:g} s"
            else:
                time.sleep(min(_LOOK_S, _PROFILE_TIMEOUT_S))
        if failure:
            process.kill()
        process.wait()
        return failure

    def close(self) -> None:
        """Ends the process and the thread."""
        self._closed = True
        self.join()


class Planning:
    """Planner on a thread of its own, without the GIL.

    request     members of all requests: nnodes, profile, topology, pilot, and nodes_per_host (0: all ranks on one host)
    algorithms  algorithms that plans may use, separated by commas; None: the pilot's
    profiling   measurement that makes the profile; None: the profile exists
    plain       name of the way without a plan in messages
    baseline    the planner's baseline that predicts its step time; None: the plan none, under the request's schedule"""

    def __init__(self, request: Mapping[str, Any], algorithms: Optional[str], profiling: Optional[Profiling] = None,
                 plain: str = "plain DDP", baseline: Optional[str] = "ddp") -> None:
        self._request, self._algorithms, self.profiling = dict(request), algorithms, profiling
        self._plain, self._baseline = plain, baseline
        self._thread: Optional[threading.Thread] = None
        self._asked: Any = None  #: the latest request
        self._closed = False
        self.candidates: List[Candidate] = []
        self.pages: Dict[str, str] = {}  #: HTML pages by the plan's text: of the latest plans, and of the plan that averages
        self.seconds = 0.0
        self.failure = ""
        atexit.register(_close, weakref.ref(self))

    def start(self, model: str, links: Links, kept: str, step_s: float) -> None:
        """Starts to plan for a model's YAML over these links. `kept` is the text of the plan that averages now; empty: plain
        DDP. A step takes `step_s` seconds."""
        self.failure = ""
        self.pages = {text: page for text, page in self.pages.items() if text == kept}
        self._thread = threading.Thread(target=self._run, args=(model, links, kept, step_s), name="hipress-planning", daemon=True)
        self._thread.start()

    def give_up(self, why: str) -> None:
        """Ends planning without candidates, for the reason `why`."""
        self._thread, self.candidates, self.seconds, self.failure = None, [], 0.0, f"no plan ({why})"

    @property
    def is_ready(self) -> bool:
        """True if planning has ended, with candidates or a failure."""
        return not (self._thread.is_alive() if self._thread is not None else not self.failure)

    def close(self) -> None:
        """Ends the threads, and the request that one waits for."""
        self._closed = True
        if self._asked is not None:
            self._asked.interrupt()
        if self.profiling is not None:
            self.profiling.close()
        if self._thread is not None:
            self._thread.join()

    def _run(self, model: str, links: Links, kept: str, step_s: float) -> None:
        began = time.perf_counter()
        self.candidates = []
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
            if self.profiling is not None:
                self.profiling.join()  # runs still in a job that went on from a checkpoint
                if self.profiling.failure:
                    raise Error(self.profiling.failure)
            with tempfile.TemporaryDirectory(prefix="hipress-plan-") as folder:
                self.candidates = self._candidates(pathlib.Path(folder), model, links, kept, step_s)
        except Exception as error:  # training goes on without a plan
            said = str(error) if isinstance(error, (HipressError, OSError)) else f"{type(error).__name__}: {error}"
            self.failure = f"no plan ({said})"
        self.seconds = time.perf_counter() - began

    def _candidates(self, folder: pathlib.Path, model: str, links: Links, kept: str, step_s: float) -> List[Candidate]:
        (folder / "model.yaml").write_text(model)
        request = {**self._request, "input": str(folder / "model.yaml")}
        per_host = request.pop("nodes_per_host")
        if per_host:
            (folder / "cluster.yaml").write_text(f"nodes_per_host: {per_host}\n")
            request.update(cluster=str(folder / "cluster.yaml"), bandwidth=f"{links.bandwidth:.0f}B/s",
                           latency=f"{1e6 * links.latency_s:.1f}us")
        plain_s = self._predicted(request, "none") if self._baseline is None else None
        found: Dict[str, Candidate] = {}
        budget_s = min(max(_LEAST_BUDGET_S, _BUDGET_STEPS * step_s), _MOST_BUDGET_S)
        for algorithms in [self._algorithms] if kept else self._sets():
            share = 1.0 if algorithms == self._algorithms else _OF_ONE
            one = self._plan({**request, "algorithm": algorithms, "budget": share * budget_s}, folder / "plan.yaml", plain_s)
            if one is not None:
                found.setdefault(one.what, one)
        kept_s = None
        if kept:
            (folder / "kept.yaml").write_text(kept)
            kept_s = self._predicted(request, str(folder / "kept.yaml"))
        return chosen(list(found.values()), kept_s, self._plain)

    def _document(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        """Returns the answer to a request. Raises Error once the job has ended."""
        def begin(call: Any) -> None:
            self._asked = call
            if self._closed:
                raise Error("the job has ended")

        return _call.answered(request, begun=begin).document()

    def _predicted(self, request: Mapping[str, Any], plan: str) -> float:
        """Returns the predicted time of a step with a plan in seconds."""
        request = {name: value for name, value in request.items() if name not in ("topology", "pilot")}
        seconds: float = self._document({**request, "request": "simulate", "plan": plan})["iteration_s"]
        return seconds

    def _sets(self) -> Sequence[Optional[str]]:
        """Sets of algorithms to plan with: one with all given algorithms and, if there are several, one with each alone. None: the
        pilot's algorithms."""
        if self._algorithms is None:
            return [None]
        names = re.split(r",(?![^(]*\))", self._algorithms)
        return [self._algorithms, *(names if len(names) > 1 else [])]

    def _plan(self, request: Mapping[str, Any], output: pathlib.Path, plain_s: Optional[float]) -> Optional[Candidate]:
        """Makes a plan and writes it to `output`. `plain_s` is the time of a step without a plan; None: the baseline's. Returns
        None if the plan compresses nothing, or there is no prediction for it or for the way without a plan."""
        document = self._document({**request, "request": "plan", "jobs": 1, "output": str(output), "page": True})
        predicted = document["predicted_iteration_s"]
        ddp = plain_s if self._baseline is None else (document["baselines"] or {}).get(self._baseline)
        if not document["compressed"] or predicted is None or ddp is None:
            return None
        text = output.read_text()
        self.pages[text] = document["page"]
        used = sorted(set(re.findall(r"\b(?:algorithm|gather): *([^,}\n]+(?:\([^)]*\))?)", text)) - {"none"})
        what = f"{'+'.join(used)} for {document['compressed']} of {document['gradients']} gradients"
        return Candidate(text, what, predicted, ddp)


def _close(planning: "weakref.ReferenceType[Planning]") -> None:
    """Ends the threads of a process that ends without close()."""
    found = planning()
    if found is not None:
        found.close()


def chosen(found: Sequence[Candidate], kept_s: Optional[float], plain: str = "plain DDP") -> List[Candidate]:
    """Selects up to _MOST plans that are worth a trial, fastest first. `kept_s` is the predicted time of a step with the plan that
    averages now, in seconds; None: the way without a plan, called `plain`. A plan must be faster by more than the factor _TRY, both
    than that way and than the present plan. If there is a present plan, the way without one comes first unless the fastest plan, or
    the present one, is faster than that way by more than the factor _SURE."""
    best = sorted((one for one in found if one.gain > _TRY and (kept_s is None or kept_s / one.predicted_s > _TRY)),
                  key=lambda one: one.predicted_s)[:_MOST]
    if kept_s is not None:
        ddp_s = found[0].ddp_s if found else 0.0
        if ddp_s <= _SURE * min([kept_s, *(one.predicted_s for one in best)]):
            best.insert(0, Candidate("", plain, ddp_s, ddp_s))
    return best


__all__ = ["ALGORITHMS", "Planning", "Profiling", "chosen", "measure", "profile_path", "step_back"]
