"""cairn.build, and how its progress is shown."""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cairn import _cairn
from cairn.errors import ArgumentTypeError

Path = str | os.PathLike[str]
ProgressCallback = Callable[[str, int, int], object]


class _Bar:
    """Progress as a bar of tqdm if it is installed, otherwise as one line per phase on standard error."""

    def __init__(self) -> None:
        try:
            self._tqdm: Any = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            self._tqdm = None
        self._bar: Any = None
        self._phase = ""

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self.close()
            self._phase = phase
            if self._tqdm is not None:
                unit = " rows" if phase == "scan" else " entries"
                self._bar = self._tqdm(desc=phase, total=total, unit=unit, unit_scale=True)
            else:
                print(f"{phase} …", file=sys.stderr)
        if self._bar is not None:
            self._bar.total = max(total, done)
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


def _targets(specs: Any) -> list[tuple[str, Any]]:
    """Pairs of a directory and a spec."""
    if not isinstance(specs, Mapping) and not (isinstance(specs, list | tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in specs)):
        raise ArgumentTypeError(f"specs: expected a dict from directories to specs, or a list of such pairs, found {type(specs).__name__}")
    pairs = specs.items() if isinstance(specs, Mapping) else specs
    for directory, spec in pairs:
        if not isinstance(directory, str | bytes | os.PathLike):
            raise ArgumentTypeError(f"specs: expected a path as a directory, found {type(directory).__name__}")
        if not isinstance(spec, str):
            raise ArgumentTypeError(f"specs[{os.fsdecode(directory)!r}]: expected a spec as a str, found {type(spec).__name__}")
    return [(os.fsdecode(directory), spec) for directory, spec in pairs]


def build(
    source: Path | Sequence[Path] | _cairn.Snapshot,
    specs: Mapping[Path, str] | Sequence[tuple[Path, str]],
    *,
    column_family: str | None = None,
    threads: int = 0,
    memory_budget: int = 0,
    prebuild_search_structure: bool = False,
    progress: bool | ProgressCallback | None = None,
) -> dict[str, _cairn.BuildReport]:
    """Builds one or several indexes in one pass over the rows of a database.

    source: the directory of a checkpoint, backup or database; a list of SST files; or a Snapshot.
    specs: output directory, whose parent must exist -> spec, such as "value.json('/city'):text" (docs/specs.md).
        An existing index in a directory is replaced by its next version.
    column_family: of the rows; None: the one in the specs (cf=), or "default".
    threads: 0, one per core, to 4096.
    memory_budget: bytes of memory for entries that wait to be sorted; 0: half of the machine's. Entries that
        exceed it are spilled to the output directories.
    prebuild_search_structure: stores the search structure of keys that are numbers, so that opening the index
        maps it instead of building it. The index's file is nearly twice as large.
    progress: called as progress(phase, done, total), about ten times a second, with the phases "scan" (rows;
        the total is an estimate until the end), "sort" and "write" (entries). True shows a bar by tqdm if it is
        installed.

    Returns output directory -> BuildReport. On any error, and on Ctrl-C, the directories are unchanged. If
    progress raises or Ctrl-C comes after everything is written, they have the new version. Errors:
    InvalidArgument (a spec, with the offset), NotFound, FailedPrecondition, Unimplemented, AlreadyExists
    (unique=true), ResourceExhausted.
    """
    targets = _targets(specs)
    bar = _Bar() if progress is True else None
    call = bar if bar is not None else None if progress is False else progress
    try:
        reports = _cairn.build(source, targets, column_family, threads, memory_budget, prebuild_search_structure, call)
    finally:
        if bar is not None:
            bar.close()
    return {directory: report for (directory, _), report in zip(targets, reports, strict=True)}
