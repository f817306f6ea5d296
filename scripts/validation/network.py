"""A network on one machine: hosts are network namespaces, joined by a bridge in one more; every end of every cable is
shaped. Nothing of it lies in the machine's own namespace, so its firewall and addresses do not matter."""

import os
import pathlib
import re
import signal
import subprocess
import time

PREFIX = "hipress"
#: In the command lines of programs that make networks.
MAKERS = (b"validate", b"demo.py", b"bench_hook")
#: The only one of a host.
INTERFACE = "eth0"
#: What shapes each end of a cable. A bucket of 96 KB: with less, offloaded packets of 64 KiB are split, with a timer's
#: wake-up for each part, and the cores become the bottleneck.
BURST, QUEUE = "96kb", "20ms"
#: Receive buffers of a TCP connection, in bytes per Mbit/s. With the kernel's own, megabytes, every flow keeps a port's
#: queue full: a small message waits up to 20 ms behind those of other flows, packets are lost, and shares are anything
#: but equal. Networks for training keep queues short.
RECEIVE_BUFFER, LEAST_RECEIVE_BUFFER = 256, 65536
#: Pinned, because with others flows into one host share it unfairly.
CONGESTION_CONTROL = "reno"


class Unavailable(Exception):
    """This machine does not allow such a network; the message says why."""


class CommandError(Exception):
    """ip or tc failed."""


def call(*command: object) -> str:
    """Runs a command; its standard output."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Unavailable(f"there is no program '{words[0]}' (Debian package iproute2)") from None
    if done.returncode != 0:
        raise CommandError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def attempt(*command: object) -> None:
    """The same where failure means that it was done already."""
    try:
        call(*command)
    except CommandError:
        pass


class Network:
    """`hosts` hosts, unlimited until shape() is called. A context manager: whatever ends the block, it is removed."""

    def __init__(self, hosts: int):
        self.names = [f"{PREFIX}-{os.getpid()}-{host}" for host in range(hosts)]
        self.switch = f"{PREFIX}-{os.getpid()}-switch"

    def address(self, host: int) -> str:
        return f"10.77.0.{host + 1}"

    def enter(self, host: int) -> list[str]:
        """What to put before a command that is to run on a host."""
        return ["ip", "netns", "exec", self.names[host]]

    def __enter__(self) -> "Network":
        try:
            self.build()
        except CommandError as reason:
            self.remove()
            raise Unavailable(f"network namespaces are not allowed here: {reason}") from None
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def build(self) -> None:
        call("ip", "netns", "add", self.switch)
        call("ip", "-n", self.switch, "link", "add", "bridge0", "type", "bridge")
        call("ip", "-n", self.switch, "link", "set", "bridge0", "up")
        for host, name in enumerate(self.names):
            call("ip", "netns", "add", name)
            call("ip", "-n", self.switch, "link", "add", f"port{host}", "type", "veth", "peer", "name", INTERFACE,
                 "netns", name)
            call("ip", "-n", self.switch, "link", "set", f"port{host}", "master", "bridge0")
            call("ip", "-n", self.switch, "link", "set", f"port{host}", "up")
            call("ip", "-n", name, "addr", "add", f"{self.address(host)}/24", "dev", INTERFACE)
            call("ip", "-n", name, "link", "set", "lo", "up")
            call("ip", "-n", name, "link", "set", INTERFACE, "up")
            self.set(host, "tcp_congestion_control", CONGESTION_CONTROL)
            # Or connections would begin with what those before them learned, of a network with other limits.
            self.set(host, "tcp_no_metrics_save", 1)

    def set(self, host: int, key: str, value: str) -> None:
        call(*self.enter(host), "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{key}")

    def set_receive_buffers(self, mbits: int) -> None:
        buffer = max(LEAST_RECEIVE_BUFFER, RECEIVE_BUFFER * mbits)
        for host in range(len(self.names)):
            self.set(host, "tcp_rmem", f"4096 {buffer} {buffer}")

    def shape(self, mbits: int) -> None:
        """Limits every host to so many Mbit/s each way."""
        limit = ("root", "tbf", "rate", f"{mbits}mbit", "burst", BURST, "latency", QUEUE)
        self.set_receive_buffers(mbits)
        for host, name in enumerate(self.names):
            call("tc", "-n", name, "qdisc", "replace", "dev", INTERFACE, *limit)
            call("tc", "-n", self.switch, "qdisc", "replace", "dev", f"port{host}", *limit)

    def lift(self, mbits: int) -> None:
        """Removes the limits; buffers stay those of a network of so many Mbit/s."""
        self.set_receive_buffers(mbits)
        for host, name in enumerate(self.names):
            attempt("tc", "-n", name, "qdisc", "del", "dev", INTERFACE, "root")
            attempt("tc", "-n", self.switch, "qdisc", "del", "dev", f"port{host}", "root")

    def remove(self) -> None:
        remove_namespaces([*self.names, self.switch])


def remove_namespaces(names: list[str]) -> None:
    """Cables first: a namespace that is deleted with a shaped cable in it may keep it for long."""
    for name in names:
        if not name.endswith("-switch"):
            attempt("ip", "-n", name, "link", "del", INTERFACE)
    for name in names:
        attempt("ip", "netns", "del", name)


def remove_leftovers(proc: pathlib.Path = pathlib.Path("/proc")) -> list[str]:
    """Removes the networks, and ends the ranks in them, of programs that were killed; returns the names. A
    namespace bears its maker's process id."""
    left = []
    for line in call("ip", "netns", "list").splitlines():
        name = line.split()[0] if line.split() else ""
        match = re.fullmatch(rf"{PREFIX}-(\d+)-(?:switch|\d+)", name)
        if match and not makes_networks(proc / match[1]):
            left.append(name)
    for name in left:
        for process in call("ip", "netns", "pids", name).split():
            os.kill(int(process), signal.SIGKILL)
    if left:
        time.sleep(0.1)
        remove_namespaces(left)
    return left


def makes_networks(process: pathlib.Path) -> bool:
    """Whether the process is there and is one of ours, and not another that got its number."""
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return False
    return any(maker in command for maker in MAKERS)
