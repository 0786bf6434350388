"""The tests under other instruction sets and with other hypothesis seeds: `make test-portable`.

Rounding differs from processor to processor: in numba's code by vector width and fused products, in
OpenBLAS by the kernels it chooses. Each set-up fixes both, and runs the suite with a seed of its
own, but for the tests that kill processes; a set-up that this processor cannot run leaves its seed
to the processor's own code.

    python tests/portable.py                    all of them
    python tests/portable.py haswell -- -x -k descent    one of them, with arguments for pytest
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
AVX2 = {"avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe"}
AVX512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "adx", "clflushopt", "clwb"}
NUMERICAL = ("tests/engine", "tests/estimators", "tests/evaluate", "tests/reference")
NUMERICAL += ("tests/streams", "tests/test_drop_in.py", "tests/test_river.py")
# Processes killed by the hundred: minutes each time, and nothing in them depends on rounding.
KILLS = ("tests/serve/test_crash.py", "tests/tracking/test_crash.py")


class SetUp(NamedTuple):
    """What fixes the rounding, and which tests run under it."""

    name: str
    numba: dict[str, str]  # settings of numba; without features it would add this processor's own
    openblas: str
    needs: set[str]  # flags of /proc/cpuinfo
    seed: int | None  # of hypothesis, or the fixed examples of `make test`
    tests: tuple[str, ...] = ()  # all


def _numba(cpu: str, features: str = "") -> dict[str, str]:
    return {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}


SET_UPS = (
    SetUp("generic", _numba("generic"), "Prescott", {"sse2", "pni"}, 1),
    SetUp("haswell", _numba("haswell"), "Haswell", AVX2, 2),
    SetUp("avx512", _numba("skylake-avx512", "-prefer-256-bit"), "SkylakeX", AVX2 | AVX512, 3),
    SetUp("zen", {}, "Zen", AVX2, None, NUMERICAL),  # with numba as it is by default
)


def processor() -> set[str]:
    """What this processor can do; nothing where that is not known."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return {flag for line in lines if line.startswith("flags") for flag in line.split()[2:]}


def run(set_up: SetUp, able: bool, more: list[str]) -> int:
    """Run the tests of a set-up; returns pytest's exit code."""
    environment = dict(os.environ)
    place = Path(environment.get("NUMBA_CACHE_DIR", ROOT / ".venv" / "numba" / "portable"))
    if able:
        environment |= set_up.numba | {
            "OPENBLAS_CORETYPE": set_up.openblas,
            "NUMBA_CACHE_DIR": str(place.with_name(f"{place.name}-{set_up.name}")),
        }
    seeded = []
    if set_up.seed is not None:
        seeded = ["--hypothesis-profile=seeded", f"--hypothesis-seed={set_up.seed}"]
    left_out = [f"--ignore={each}" for each in KILLS]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *left_out, *seeded, *set_up.tests]
    command += more
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(args: list[str]) -> int:
    """Run all set-ups, or those named, and say which ran."""
    names, more = args, []
    if "--" in args:
        names, more = args[: args.index("--")], args[args.index("--") + 1 :]
    unknown = set(names) - {set_up.name for set_up in SET_UPS}
    if unknown:
        print(f"no set-up {', '.join(unknown)}; there are {', '.join(s.name for s in SET_UPS)}")
        return 2
    flags, lines, failed = processor(), [], False
    for set_up in SET_UPS:
        if names and set_up.name not in names:
            continue
        lacks = sorted(set_up.needs - flags)
        cpu = set_up.numba.get("NUMBA_CPU_NAME", "this processor")
        what = f"{set_up.name} (numba: {cpu}, OpenBLAS: {set_up.openblas})"
        if lacks and set_up.seed is None:
            lines.append(f"{what}: skipped, as this processor lacks {' '.join(lacks)}")
            print(lines[-1], flush=True)
            continue
        seed = "fixed examples" if set_up.seed is None else f"seed {set_up.seed}"
        if lacks:
            what += f" skipped, as this processor lacks {' '.join(lacks)}; its own code instead"
        print(f"{what}, {seed}", flush=True)
        start = time.monotonic()
        code = run(set_up, not lacks, more)
        failed |= code != 0
        words = "passed" if code == 0 else f"FAILED ({code})"
        lines.append(f"{what}, {seed}: {words} in {time.monotonic() - start:.0f} s")
    print("\nSet-ups:", *lines, sep="\n  ")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
