"""The tables of a database: numbered SQL files, each applied once and in order."""

from importlib.resources import files


def scripts(kind: str) -> dict[int, str]:
    """The files for SQLite or PostgreSQL, by number."""
    found = {}
    for file in (files("metrack.serve.databases") / "sql" / kind).iterdir():
        name, _, ending = file.name.partition(".")
        if ending == "sql":
            found[int(name)] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


def missing(kind: str, version: int, where: str) -> dict[int, str]:
    """Those that tables of a version still lack; refuses tables of a later program."""
    known = scripts(kind)
    newest = max(known)
    if version > newest:
        raise ValueError(
            f"{where} has tables of version {version}, and this metrack knows {newest}: "
            "upgrade metrack"
        )
    return {number: text for number, text in known.items() if number > version}
