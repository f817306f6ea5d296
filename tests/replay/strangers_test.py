"""Tests hipress-exec with strangers that connect to the ports of its ranks at every stage of a job. The job must still verify. No
rank may abort or be blamed, and strangers may take only a bounded number of descriptors and bytes.

Usage: strangers_test.py HIPRESS_EXEC
"""

import collections
import contextlib
import os
import random
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

EXEC = sys.argv.pop(1)
#: Number of files that a process of ranks may open: far fewer than there are strangers.
DESCRIPTORS = 256
CROWD = 500
#: Timeout that is far longer than anything here takes.
PATIENCE_S = 120
#: Length of the claim, which the connecting end of a greeting sends. A valid claim holds for one greeting only: see
#: greeting_test.cpp.
CLAIM_BYTES = 84
LISTENING = "0A"  # state of listening sockets in /proc/net/tcp


def gloo_preamble(opcode, offset, length, roffset):
    """Returns the first bytes of a gloo connection."""
    return struct.pack("<QQQQQQ", 48, opcode, 0, offset % 2**64, length, roffset % 2**64)


#: Bytes that strangers send.
GREETINGS = {
    "nothing": b"",
    "eight zero bytes": bytes(8),
    "half a claim": b"HIPRESS1" + bytes(CLAIM_BYTES // 2 - 8),
    "a claim without a proof": b"HIPRESS1" + bytes(CLAIM_BYTES - 8),
    "opcode 1, a length of 2^62": gloo_preamble(1, 0, 1 << 62, 0),
    "an offset of 2^46": gloo_preamble(0, 0, 32, 1 << 46),
    "an offset that wraps": gloo_preamble(0, 0, 0x41000 + 32, -0x41000),
    "a proof by somebody else": b"HIPRESS1" + random.Random(2).randbytes(CLAIM_BYTES - 8),
    "random bytes": random.Random(1).randbytes(1 << 16),
}


def ports_of(pid):
    """Returns the ports at which a process listens."""
    with contextlib.suppress(OSError):
        sockets = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in list(table)[1:]]
        return [int(row[1].split(":")[1], 16) for row in rows if row[3] == LISTENING and f"socket:[{row[9]}]" in sockets]
    return []


class Crowd(contextlib.ExitStack):
    """Strangers, which stay connected until the end of the scope, or until MOST others have come after them."""

    MOST = 600

    def __init__(self):
        super().__init__()
        self.strangers = collections.deque()
        self.callback(lambda: [stranger.close() for stranger in self.strangers])

    def connect(self, port):
        """Begins to connect, without waiting. The connection fails if a queue is full or no process listens any more."""
        stranger = socket.socket()
        stranger.setblocking(False)
        stranger.connect_ex(("127.0.0.1", port))
        self.strangers.append(stranger)
        if len(self.strangers) > self.MOST:
            self.strangers.popleft().close()
        return stranger

    def attack(self, port):
        """Sends every greeting, each on a new connection, and resets one more connection."""
        for greeting in GREETINGS.values():
            stranger = self.connect(port)
            with contextlib.suppress(OSError):
                stranger.send(greeting)
        stranger = self.connect(port)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stranger.close()


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Strangers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hipress_strangers_")
        self.model = os.path.join(self.folder.name, "model.txt")
        with open(self.model, "w", encoding="utf-8") as file:
            file.write("a,100003\nb,31\nc,4096\n")
        self.running = []

    def tearDown(self):
        for process in self.running:
            process.kill()
            process.communicate()
        self.folder.cleanup()

    def start(self, rank=None, ranks=4, topology="RING", iterations=2):
        """Starts one rank of `ranks` or, if `rank` is None, all of them as threads, with few descriptors."""
        command = [EXEC, "--input", self.model, "--plan", "none" if topology == "ALLREDUCE" else "all", "--topology",
                   topology, "--nnodes", str(ranks), "--iterations", str(iterations), "--timeout", str(PATIENCE_S)]
        environment = dict(os.environ)
        if rank is not None:
            command += ["--rendezvous", "file://" + self.folder.name]
            environment |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
        self.running.append(process)
        return process

    def wait_for_ports(self, processes):
        """Waits until all these ranks listen, and returns their ports."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            ports = [ports_of(process.pid) for process in processes]
            if all(ports):
                return [port for each in ports for port in each]
            time.sleep(0.01)
        self.fail("ranks do not listen")
        return []

    def require_verified(self, processes):
        for rank, process in enumerate(processes):
            out, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 0, f"rank {rank}: {err}")
            if rank == 0:
                self.assertIn("verified: yes", out)

    def test_before_all_ranks_have_come(self):
        early = [self.start(rank) for rank in range(3)]
        with Crowd() as crowd:
            for port in self.wait_for_ports(early):
                crowd.attack(port)
            self.require_verified([*early, self.start(3)])

    def test_a_crowd_that_stays_and_says_nothing(self):
        early = [self.start(rank) for rank in range(3)]
        ports = self.wait_for_ports(early)
        before = [resident_kib(process.pid) for process in early]
        with Crowd() as crowd:
            for i in range(CROWD):
                crowd.connect(ports[i % len(ports)])
            for process, kib in zip(early, before):
                self.assertLess(resident_kib(process.pid), kib + 4096, "memory is to stay flat")
                self.assertLessEqual(len(os.listdir(f"/proc/{process.pid}/fd")), 64)
            self.require_verified([*early, self.start(3)])

    def attack_while_running(self, processes):
        with Crowd() as crowd:
            while any(process.poll() is None for process in processes):
                for process in processes:
                    for port in ports_of(process.pid):
                        crowd.attack(port)

    def test_at_every_port_for_as_long_as_the_job_lasts(self):
        ranks = [self.start(rank, iterations=20) for rank in range(4)]
        self.attack_while_running(ranks)
        self.require_verified(ranks)

    def test_while_connections_for_all_reduces_are_made(self):
        ranks = [self.start(rank, topology="ALLREDUCE", iterations=20) for rank in range(4)]
        self.attack_while_running(ranks)
        self.require_verified(ranks)

    def test_ranks_that_are_threads(self):
        job = self.start(iterations=20)
        self.attack_while_running([job])
        self.require_verified([job])

    def test_nobody_listens_once_all_ranks_are_there(self):
        early = [self.start(rank, iterations=100000) for rank in range(3)]
        self.wait_for_ports(early)
        self.start(3, iterations=100000)
        end = time.monotonic() + PATIENCE_S
        while any(ports_of(process.pid) for process in early) and time.monotonic() < end:
            time.sleep(0.01)
        for process in early:
            self.assertEqual(ports_of(process.pid), [])
            self.assertIsNone(process.poll(), "the job goes on meanwhile")


if __name__ == "__main__":
    unittest.main()
