"""Starts real server processes quickly: all is imported and compiled once, then forked.

Lines on the standard input are JSON, the arguments of `serve`; each is answered by the number of
the process that serves.
"""

import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path

import numpy as np

from metrack.serve import teaching
from metrack.serve.learning import Config, Learning
from metrack.serve.limits import Limits
from metrack.serve.server import serve
from tests.serve.servers import stretch_of


def warm_up():
    points = np.random.default_rng(0).normal(size=(600, 2, 3))
    y = np.where(points[:, 0, 0] > 0, 1, -1)
    for name in ("MetricTracker", "COMID"):
        learning = Learning.new(Config(3, name, {}, None))
        learning.learn(stretch_of(np.arange(1, 601), points, y))
        learning.snapshot()


def run(arguments):
    save_work, limits = arguments.pop("save_work", None), arguments.pop("limits", {})
    if save_work is not None:
        teaching.SAVE_WORK = save_work
    if (largest := arguments.pop("largest_file", None)) is not None:  # as if the disk were full
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    tokens = arguments.pop("tokens", None)
    arguments["tokens"] = None if tokens is None else Path(tokens)
    log = os.open(
        Path(arguments["path"]).with_suffix(".log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY
    )
    os.dup2(log, 1)
    os.dup2(log, 2)
    path = Path(arguments.pop("path"))
    serve(arguments.pop("database", None) or path, limits=Limits(**limits), **arguments)


def main():
    os.setpgrp()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who ends is gone at once
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            try:
                run(json.loads(line))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        print(child, flush=True)
    os.killpg(0, signal.SIGKILL)  # servers that a failed test left, and this process


if __name__ == "__main__":
    main()
