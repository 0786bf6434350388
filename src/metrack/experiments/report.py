"""What every study leaves behind: a folder that can be written, JSON, figures, versions."""

import json
import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = ("metrack", "numpy", "scipy", "scikit-learn", "numba", "joblib")


def check_writable(out: Path) -> None:
    """Make the folder; refuse one that cannot be written, now rather than after the work."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write in {out}: {reason}; choose another folder") from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def write_json(path: Path, content: Any) -> None:
    """Write JSON; equal content gives equal bytes. There is no NaN in JSON: give None."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def save_figure(figure: "Figure", out: Path, name: str = "figure") -> list[Path]:
    """Save a matplotlib figure as PNG and as PDF; equal figures give equal bytes."""
    paths = [out / f"{name}.png", out / f"{name}.pdf"]
    figure.savefig(paths[0], dpi=160)
    figure.savefig(paths[1], metadata={"CreationDate": None})
    return paths


def versions() -> dict[str, str]:
    """Python's version and those of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a checkout that was not installed
            continue
    return found
