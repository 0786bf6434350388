"""Images as files in a folder: whole or not at all."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from metrack.files import sync_folder
from metrack.stores.store import Vectors

IMAGE = re.compile(r"image-(\d{9})")
INDEX, WEIGHT = "index", "weight.npy"


def folder_of(root: Path, number: int) -> Path:
    """Where an image is."""
    return root / f"image-{number:09d}"


def keep(root: Path, number: int, weight: Vectors, write: Callable[[str], object]) -> None:
    """Write an image beside the others; it is there when its folder gets its name."""
    root.mkdir(parents=True, exist_ok=True)
    new = root / f".new-{number:09d}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    write(str(new / INDEX))
    np.save(new / WEIGHT, weight)
    for name in (INDEX, WEIGHT):
        with open(new / name, "rb+") as file:
            os.fsync(file.fileno())
    sync_folder(new)
    new.rename(folder_of(root, number))
    sync_folder(root)


def newest(root: Path) -> tuple[int, Vectors, str] | None:
    """Number, weight and index file of the newest image."""
    names = [each.name for each in root.iterdir()] if root.is_dir() else []
    numbers = [int(match[1]) for name in names if (match := IMAGE.fullmatch(name))]
    if not numbers:
        return None
    folder = folder_of(root, max(numbers))
    return max(numbers), np.load(folder / WEIGHT), str(folder / INDEX)


def drop(root: Path, number: int) -> None:
    """Remove an image, if it is there."""
    if (folder := folder_of(root, number)).is_dir():
        shutil.rmtree(folder)
