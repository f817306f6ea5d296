"""Tests of ranks that meet in a real Redis, and get their numbers from environment variables.

Usage: redis_test.py FOLDER_OF_TOOLS
"""

import contextlib
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

from processes import RANKS, LaunchTest, free_port, require_programs, without_launchers

START_S = 30
#: Time beyond its timeout after which a rank is too late. Milliseconds suffice on an idle machine.
MARGIN_S = 30


class Redis:
    """A redis-server on a free loopback port that keeps nothing on disk. It ends with its `with` block. `more` are further options.
    """

    def __init__(self, folder: pathlib.Path, *more: str):
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.folder = folder
        self.more = more

    def __enter__(self) -> "Redis":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `with` blocks end
        self.server = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
             "--dir", str(self.folder), "--logfile", str(self.folder / "redis.log"), *self.more])
        end = time.monotonic() + START_S
        while not self.answers():
            if self.server.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise RuntimeError(f"redis-server does not answer:\n{(self.folder / 'redis.log').read_text()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_) -> None:
        self.server.terminate()
        self.server.wait(timeout=30)

    def answers(self) -> bool:
        try:
            return self.ask(b"PING") == b"+PONG"
        except OSError:
            return False

    def ask(self, command: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(command + b"\r\n")
            return connection.recv(64).strip()

    @contextlib.contextmanager
    def stopped(self):
        self.server.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.server.send_signal(signal.SIGCONT)


class RedisJobs(LaunchTest):
    """Jobs whose ranks meet in `redis`."""

    redis: Redis

    def start(self, rank: int, ranks: int, *more: str, **settings: str) -> subprocess.Popen:
        variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), **settings}
        return subprocess.Popen(self.exec_command(*more, rendezvous=self.redis.url), text=True,
                                env={**without_launchers(), **variables}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, processes: list[subprocess.Popen]) -> list[tuple[int, str, str]]:
        """Returns (exit status, stdout, stderr) of each process."""
        outputs = [process.communicate(timeout=100) for process in processes]
        return [(process.returncode, *output) for process, output in zip(processes, outputs)]

    def run_job(self, job: str, **settings: str) -> list[tuple[int, str, str]]:
        return self.finish([self.start(rank, RANKS, "--job", job, **settings) for rank in range(RANKS)])

    def require_verified(self, ended: list[tuple[int, str, str]]):
        for status, _, stderr in ended:
            self.assertEqual(status, 0, stderr)
        self.assert_verified("".join(stdout for _, stdout, _ in ended))


class RedisTest(RedisJobs):
    def setUp(self):
        super().setUp()
        self.redis = self.enterContext(Redis(self.folder))

    def test_ranks_meet_and_verify(self):
        self.require_verified(self.run_job("first"))

    def test_the_secret_that_a_redis_hands_out_does_not_stay(self):
        self.require_verified(self.run_job("expiring"))
        answers = [self.redis.ask(f"TTL {key}".encode()) for key in self.keys()]
        self.assertEqual(sum(answer != b":-1" for answer in answers), 1, answers)

    def keys(self) -> list[str]:
        with socket.create_connection(("127.0.0.1", self.redis.port), timeout=5) as connection:
            connection.sendall(b"KEYS *\r\nPING\r\n")
            text = b""
            while not text.endswith(b"+PONG\r\n"):
                text += connection.recv(65536)
        return [line.decode() for line in text.split(b"\r\n") if line.startswith(b"hipress/")]

    def test_two_jobs_at_once_stay_apart(self):
        jobs = {job: [self.start(rank, RANKS, "--job", job) for rank in range(RANKS)] for job in ("one", "other")}
        for processes in jobs.values():
            ended = self.finish(processes)
            self.assertEqual([status for status, _, _ in ended], [0] * RANKS, ended)
            self.assert_verified("".join(stdout for _, stdout, _ in ended))

    def test_a_second_job_of_the_same_text_is_refused(self):
        self.run_job("again")
        for status, stdout, stderr in self.run_job("again"):
            self.assertNotEqual(status, 0, stderr)
            self.assertNotIn("verified", stdout)

    def test_a_rank_that_does_not_come_is_named(self):
        (status, _, stderr), = self.finish([self.start(0, 2, "--timeout", "2")])
        self.assertEqual(status, 1, stderr)
        self.assertIn("rank 1", stderr)

    def require_no_answer(self, rank: subprocess.Popen, timeout_s: int):
        begin = time.monotonic()
        (status, stdout, stderr), = self.finish([rank])
        self.assertLess(time.monotonic() - begin, timeout_s + MARGIN_S)
        self.assertEqual(status, 1, stderr)
        self.assertIn(f"cannot meet others at '{self.redis.url}' within {timeout_s} s", stderr)
        self.assertNotIn("verified", stdout)

    def test_a_redis_that_is_stopped_ends_ranks_that_come(self):
        with self.redis.stopped():
            self.require_no_answer(self.start(0, 2, "--timeout", "2"), 2)

    def test_a_redis_that_is_stopped_ends_ranks_that_wait_for_others(self):
        rank = self.start(0, 2, "--timeout", "20")
        while self.redis.ask(b"DBSIZE") == b":0":  # the rank has not written its card yet
            self.assertIsNone(rank.poll())
            time.sleep(0.01)
        with self.redis.stopped():
            self.require_no_answer(rank, 20)

    def test_no_redis_there_is_refused(self):
        self.redis.url = f"redis://127.0.0.1:{free_port()}"
        (status, _, stderr), = self.finish([self.start(0, 2)])
        self.assertEqual(status, 2, stderr)
        self.assertIn(self.redis.url, stderr)


class ProtectedRedisTest(RedisJobs):
    """Jobs that meet in a Redis with a password, over TCP and over TLS."""

    PASSWORD = "hidden@word"

    def setUp(self):
        super().setUp()
        self.certificate, key = self.folder / "certificate.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-out", self.certificate, "-keyout", key],
                       check=True, capture_output=True)
        port = str(free_port())
        self.redis = self.enterContext(Redis(
            self.folder, "--tls-port", port, "--tls-cert-file", str(self.certificate), "--tls-key-file", str(key),
            "--tls-ca-cert-file", str(self.certificate), "--tls-auth-clients", "no"))
        self.assertEqual(self.redis.ask(f"CONFIG SET requirepass {self.PASSWORD}".encode()), b"+OK")
        self.plain_url, self.tls_url = self.redis.url, f"rediss://127.0.0.1:{port}"

    def require_refused(self, url: str, said: str, **settings: str):
        self.redis.url = url
        (status, stdout, stderr), = self.finish([self.start(0, 2, **settings)])
        self.assertEqual(status, 2, stderr)
        self.assertIn(said, stderr)
        self.assertNotIn(self.PASSWORD, stderr + stdout)

    def test_ranks_with_the_password_verify(self):
        self.require_verified(self.run_job("plain", HIPRESS_REDIS_PASSWORD=self.PASSWORD))
        self.redis.url = self.plain_url.replace("//", f"//default:{self.PASSWORD.replace('@', '%40')}@")
        self.require_verified(self.run_job("in the URL"))

    def test_ranks_with_the_password_verify_over_tls(self):
        self.redis.url = self.tls_url
        self.require_verified(self.run_job("tls", HIPRESS_REDIS_PASSWORD=self.PASSWORD,
                                           HIPRESS_REDIS_CA=str(self.certificate)))

    def test_without_the_password_a_rank_is_told_how_to_give_it(self):
        self.require_refused(self.plain_url, "HIPRESS_REDIS_PASSWORD")
        self.require_refused(self.plain_url, "WRONGPASS", HIPRESS_REDIS_PASSWORD=self.PASSWORD + "x")
        self.require_refused(self.plain_url.replace("//", "//me:hidden%40word@"), "WRONGPASS")

    def test_a_certificate_that_nobody_known_signed_is_refused(self):
        self.require_refused(self.tls_url, "HIPRESS_REDIS_CA", HIPRESS_REDIS_PASSWORD=self.PASSWORD)

    def test_a_certificate_of_another_host_is_refused(self):
        self.require_refused(self.tls_url.replace("127.0.0.1", "localhost"), "its certificate is refused",
                             HIPRESS_REDIS_PASSWORD=self.PASSWORD, HIPRESS_REDIS_CA=str(self.certificate))

    def test_tls_with_a_server_that_has_none_ends_at_the_timeout(self):
        self.redis.url = self.plain_url.replace("redis:", "rediss:")
        (status, _, stderr), = self.finish([self.start(0, 2, "--timeout", "2")])
        self.assertEqual(status, 1, stderr)
        self.assertIn("redis:// is for a server without TLS", stderr)


if __name__ == "__main__":
    require_programs("redis-server", "openssl")
    LaunchTest.tools = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
