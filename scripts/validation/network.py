"""Network on one machine. Hosts are network namespaces, joined by a bridge in a further namespace; both ends of every cable are
shaped. The machine's own namespace has no part of the network, so its firewall and addresses do not matter."""

import os
import pathlib
import re
import signal
import subprocess
import time

PREFIX = "hipress"
#: Texts in the command lines of programs that make networks.
MAKERS = (b"validate", b"demo.py", b"bench_hook")
#: Name of a host's only interface.
INTERFACE = "eth0"
#: Parameters of the shaping at each end of a cable. The bucket has 96 KB: a smaller one would split offloaded packets of 64 KiB,
#: with a timer's wake-up for each part, and the cores would become the bottleneck.
BURST, QUEUE = "96kb", "20ms"
#: Receive buffers of a TCP connection, in bytes per Mbit/s, and their least size in bytes. With the kernel's own buffers of
#: megabytes, every flow would keep a port's queue full: a small message would wait up to 20 ms behind other flows, packets would be
#: lost, and shares would be unequal. Networks for training keep queues short.
RECEIVE_BUFFER, LEAST_RECEIVE_BUFFER = 256, 65536
#: Fixed choice, because with other algorithms flows into one host share its link unfairly.
CONGESTION_CONTROL = "reno"


class Unavailable(Exception):
    """Error: this machine does not allow such a network. The message has the reason."""


class CommandError(Exception):
    """Error: ip or tc failed."""


def call(*command: object) -> str:
    """Runs a command. Returns its standard output."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Unavailable(f"there is no program '{words[0]}' (Debian package iproute2)") from None
    if done.returncode != 0:
        raise CommandError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def attempt(*command: object) -> None:
    """Runs a command that may fail because its effect exists already."""
    try:
        call(*command)
    except CommandError:
        pass


class Network:
    """Network of `hosts` hosts, without limits until shape() is called. It is a context manager, and is removed however the block
    ends."""

    def __init__(self, hosts: int):
        self.names = [f"{PREFIX}-{os.getpid()}-{host}" for host in range(hosts)]
        self.switch = f"{PREFIX}-{os.getpid()}-switch"

    def address(self, host: int) -> str:
        return f"10.77.0.{host + 1}"

    def enter(self, host: int) -> list[str]:
        """Prefix of a command that is to run on a host."""
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
            # Without this, connections would begin with values that earlier ones learned under different limits.
            self.set(host, "tcp_no_metrics_save", 1)

    def set(self, host: int, key: str, value: str) -> None:
        call(*self.enter(host), "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{key}")

    def set_receive_buffers(self, mbits: int) -> None:
        buffer = max(LEAST_RECEIVE_BUFFER, RECEIVE_BUFFER * mbits)
        for host in range(len(self.names)):
            self.set(host, "tcp_rmem", f"4096 {buffer} {buffer}")

    def shape(self, mbits: int) -> None:
        """Limits every host to `mbits` Mbit/s in each direction."""
        limit = ("root", "tbf", "rate", f"{mbits}mbit", "burst", BURST, "latency", QUEUE)
        self.set_receive_buffers(mbits)
        for host, name in enumerate(self.names):
            call("tc", "-n", name, "qdisc", "replace", "dev", INTERFACE, *limit)
            call("tc", "-n", self.switch, "qdisc", "replace", "dev", f"port{host}", *limit)

    def lift(self, mbits: int) -> None:
        """Removes the limits. Buffers stay those of a network of `mbits` Mbit/s."""
        self.set_receive_buffers(mbits)
        for host, name in enumerate(self.names):
            attempt("tc", "-n", name, "qdisc", "del", "dev", INTERFACE, "root")
            attempt("tc", "-n", self.switch, "qdisc", "del", "dev", f"port{host}", "root")

    def remove(self) -> None:
        remove_namespaces([*self.names, self.switch])


def remove_namespaces(names: list[str]) -> None:
    """Removes namespaces, their cables first: a deleted namespace that still has a shaped cable may keep it for long."""
    for name in names:
        if not name.endswith("-switch"):
            attempt("ip", "-n", name, "link", "del", INTERFACE)
    for name in names:
        attempt("ip", "netns", "del", name)


def remove_leftovers(proc: pathlib.Path = pathlib.Path("/proc")) -> list[str]:
    """Removes the networks of programs that were killed, and ends the ranks in them. Returns the names of the namespaces, which
    contain their maker's process id."""
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
    """True if the process exists and makes networks; a different process may have got its number since."""
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return False
    return any(maker in command for maker in MAKERS)
