"""A PostgreSQL server of its own, on loopback and in a temporary folder.

    python -m tests.postgres.cluster COMMAND ...

runs a command beside one, which it finds as METRACK_TEST_DATABASE, and ends it after.
"""

import contextlib
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from tests.serve.servers import free_port

USER = "postgres"  # Debian's; PostgreSQL refuses to run as root
SETTINGS = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"]


class Cluster:
    """A server, its processes and its files.

    ``largest_file`` is how many bytes one of its files may have, as if the disk were full then;
    ``primary`` is another one, of which this is to be the standby.
    """

    def __init__(self, largest_file=None, primary=None):
        self.port = free_port()
        self.url = f"postgresql://metrack@127.0.0.1:{self.port}/metrack"
        self.folder = Path(tempfile.mkdtemp(prefix="metrack-postgres-"))
        self.data, self.process = self.folder / "data", None
        self.log = (self.folder / "log").open("ab")
        self.options = {"stdout": subprocess.DEVNULL, "stderr": self.log}
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER)
            self.options |= {"user": USER, "group": pwd.getpwnam(USER).pw_gid, "extra_groups": []}
        if primary is None:
            run = [
                program("initdb"),
                "-D",
                self.data,
                "-U",
                "metrack",
                "-A",
                "trust",
                "--no-locale",
            ]
            run += ["-E", "UTF8"]
        else:  # a standby, which follows it
            run = [program("pg_basebackup"), "-D", self.data, "-d", primary.url, "-R", "-c", "fast"]
        subprocess.run([*run, "--no-sync"], check=True, **self.options)
        if largest_file is not None:
            limits = largest_file, largest_file
            self.options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.start()
        if primary is None:
            with self.connect("postgres") as connection:
                connection.execute("CREATE DATABASE metrack")

    def connect(self, database="metrack"):
        return psycopg.connect(self.url, dbname=database, autocommit=True)

    def start(self):
        """Until it answers."""
        settings = [each for setting in SETTINGS for each in ("-c", setting)]
        command = [program("postgres"), "-D", self.data, "-p", str(self.port), *settings]
        self.process = subprocess.Popen(command, start_new_session=True, **self.options)
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                self.connect("postgres").close()
                return
            assert time.monotonic() < end, (self.folder / "log").read_text()
            if self.process.poll() is not None:  # what was killed may still be letting go
                time.sleep(0.1)
                self.process = subprocess.Popen(command, start_new_session=True, **self.options)
            time.sleep(0.02)

    def processes(self):
        """The server's and those of its sessions, which lead groups of their own."""
        listed = subprocess.run(
            ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
        )
        pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        own = self.process.pid
        return [own, *(pid for pid, parent in pairs if parent == own)]

    def signal(self, number):
        """To all of them."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        """As a machine that loses its power."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        """End it, and remove all it has written."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # which ends sessions, and then the server
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def program(name):
    """Debian keeps those of each version in a folder of its own."""
    found = shutil.which(name)
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin")):
        found = found or shutil.which(name, path=folder)
    assert found, f"there is no {name}"
    return found


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what follows is ended, too
    cluster = Cluster()
    try:
        environment = os.environ | {"METRACK_TEST_DATABASE": cluster.url}
        sys.exit(subprocess.run(sys.argv[1:], env=environment).returncode)
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
