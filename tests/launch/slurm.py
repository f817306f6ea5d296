"""Starts a real Slurm of one node (munged, slurmctld, slurmd) in a folder. It ends with its `with` block.

It has its own ports, key, socket, state and logs, and neither reads nor writes under /etc, /var or /run. Where the kernel allows
it, isolate() first moves the calling program into new namespaces. Its processes then end with it even if it is killed, and its
network is separate.
"""

import getpass
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time

from processes import free_port, without_launchers

#: Number of CPUs that Slurm believes in. The machine may have fewer: ranks may share cores.
CPUS = 4
START_S = 60
CONFIGURATION = """\
ClusterName=hipress
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
ISOLATED = "HIPRESS_TEST_ISOLATED"


def isolate() -> None:
    """Restarts this program in new process and network namespaces. Does nothing where that is not allowed."""
    if ISOLATED in os.environ:
        # Slurm needs an address besides loopback: without one, glibc resolves no address for it (AI_ADDRCONFIG).
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "address", "add", "192.0.2.1/32", "dev", "lo"], check=True)
        return
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        print("no namespaces here: Slurm runs beside everything else", file=sys.stderr)
        return
    os.environ[ISOLATED] = "yes"
    os.execvp("unshare", [*unshare, sys.executable, "-B", *sys.argv])


class Slurm:
    """A Slurm that runs while its `with` block does: `with Slurm(folder) as slurm:`. The folder must be empty."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.environment = {**without_launchers(), "SLURM_CONF": str(folder / "slurm.conf")}
        self.daemons: list[subprocess.Popen] = []

    def __enter__(self) -> "Slurm":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `with` blocks end
        try:
            self.configure()
            self.start("munged", "--foreground", "--socket", self.folder / "munge/socket",
                       "--key-file", self.folder / "key/munge.key", "--pid-file", self.folder / "munge/pid",
                       "--log-file", self.folder / "munge/log", "--seed-file", self.folder / "munge/seed")
            self.wait_until("munged has its socket", (self.folder / "munge/socket").exists)
            self.start("slurmctld", "-D", "-c")
            self.start("slurmd", "-D")
            self.wait_until("the node is idle", self.is_idle)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def configure(self) -> None:
        self.folder.chmod(0o755)  # munge refuses a socket that other users could not reach
        for name, mode in {"key": 0o700, "munge": 0o755, "state": 0o700, "spool": 0o755}.items():
            (self.folder / name).mkdir(mode=mode)
        key = self.folder / "key/munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], user=getpass.getuser(), folder=self.folder, cpus=CPUS,
            controller_port=free_port(), node_port=free_port()))

    def start(self, daemon: str, *arguments: object) -> None:
        with open(self.folder / f"{daemon}.log", "wb") as log:
            self.daemons.append(subprocess.Popen([daemon, *map(str, arguments)], env=self.environment, stdout=log,
                                                 stderr=subprocess.STDOUT))

    def wait_until(self, what: str, holds) -> None:
        end = time.monotonic() + START_S
        while not holds():
            dead = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                raise RuntimeError(f"{', '.join(dead) or 'Slurm'} failed before {what}:\n{self.logs()}")
            time.sleep(0.1)

    def is_idle(self) -> bool:
        try:
            asked = self.run("sinfo", "--noheader", "--format=%T", timeout_s=5)
        except subprocess.TimeoutExpired:
            return False
        return asked.stdout.strip() == "idle"

    def run(self, *command: object, timeout_s: float = 120, cwd: pathlib.Path | None = None, **variables: str):
        """Runs a command as a user of this Slurm."""
        return subprocess.run(list(map(str, command)), env={**self.environment, **variables}, cwd=cwd, text=True,
                              capture_output=True, check=False, timeout=timeout_s)

    def wait_for(self, job: str, timeout_s: float) -> set[str]:
        """Waits until a job and all tasks of its array have ended. Returns the states in which they ended."""
        end = time.monotonic() + timeout_s
        while self.run("squeue", "--noheader", "--job", job).stdout.strip():
            if time.monotonic() > end:
                raise RuntimeError(f"job {job} has not ended within {timeout_s} s:\n{self.logs()}")
            time.sleep(0.3)
        return set(re.findall(r"JobState=(\w+)", self.run("scontrol", "show", "job", job).stdout))

    def logs(self) -> str:
        return "\n".join(f"== {log.name}\n{log.read_text(errors='replace')[-3000:]}"
                         for log in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """Ends the jobs first, since their processes are not children of the daemons. Then ends the daemons, in reverse order of
        their start."""
        if len(self.daemons) == 3:
            try:
                self.run("scancel", "--user", getpass.getuser(), timeout_s=10)
                self.wait_until_no_jobs()
            except (subprocess.TimeoutExpired, RuntimeError) as reason:
                print(f"jobs were not cancelled: {reason}", file=sys.stderr)
        while self.daemons:
            daemon = self.daemons.pop()
            daemon.terminate()
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def wait_until_no_jobs(self) -> None:
        self.wait_until("the jobs ended", lambda: not self.run("squeue", "--noheader", timeout_s=5).stdout.strip())
