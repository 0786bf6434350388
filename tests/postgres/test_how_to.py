"""docs/how-to/postgres.md works as it is written, but for addresses and ports."""

import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest
import yaml

from metrack.serve.databases.sqlite import SQLite
from tests.serve.servers import Server, free_port

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "postgres.md").read_text(encoding="utf-8")
ADDRESS = "postgresql://metrack@127.0.0.1/metrack"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def run(cluster, tmp_path, monkeypatch):
    """Starts a command of the page, as a role and on a database made as it says."""
    with cluster.connect("postgres") as connection:
        for statement in blocks("sql")[0].replace("metrack", "page").split(";\n")[:-1]:
            connection.execute(statement)
    url = f"postgresql://page@127.0.0.1:{cluster.port}/page"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    SQLite(tmp_path / "data").close()

    def start(line, **options):
        program, *arguments = shlex.split(line.replace(ADDRESS, url))
        path = Path(sysconfig.get_path("scripts")) / program
        return subprocess.Popen([path, *arguments], **options)

    return start


def test_commands(run, tmp_path):
    lines = [
        m for block in blocks("console") for m in re.findall(r"^\$ (metrack .*)$", block, re.M)
    ]
    servers = [line for line in lines if "--port" in line]
    started = []
    for line in servers:
        port = str(free_port())
        process = run(re.sub(r"--port \d+", f"--port {port}", line), stderr=subprocess.DEVNULL)
        started.append((process, Server(process.pid, int(port), tmp_path / "server")))
    try:
        for _, server in started:
            server.wait()
        others = [line for line in lines if line not in servers]
        assert len(others) == 3
        for line in others:
            assert run(line, stdout=subprocess.PIPE).communicate()[0]
        answers = [server.ask("GET", "/readyz").body for _, server in started]
        assert answers == [b"ready reader"] * 3  # there is nothing to learn yet
    finally:
        for process, _ in started:
            process.terminate()
            process.wait(30)


def test_files_are_understood():
    (compose,) = map(yaml.safe_load, blocks("yaml"))
    commands = [each["command"] for each in compose["services"].values() if "command" in each]
    commands += re.findall(r"^ExecStart=/opt/metrack/bin/(.*)$", blocks("ini")[0], re.MULTILINE)
    told = subprocess.run(
        [Path(sysconfig.get_path("scripts")) / "metrack", "serve", "--help"],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    ).stdout
    assert len(commands) == 3
    for command in commands:
        program, subcommand, *arguments = command.split()
        assert (program, subcommand) == ("metrack", "serve")
        assert all(each in told for each in arguments if each.startswith("--"))
