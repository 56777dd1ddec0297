"""Sharded indexes: many index directories that form one index, which cairn.open opens like any other.

At once, in one process:

    cairn.shards.build("/data/checkpoint", "value.json('/city'):text", "/data/city", shards=16)

Or step by step, each step in a separate process on any machine that sees the directories:

    extract_segment  a range of a source's rows -> a segment: an ordinary index directory
    split_segments   all segments -> a plan: the bounds of the shards
    build_shard      the plan and the segments -> one shard: an ordinary index directory
    publish_shards   the plan and the shards -> the next generation of the index, atomically

A step depends only on its inputs and writes only to its output. It may be killed, repeated, and run twice at
the same time: give each attempt a new directory (shard_directory_name, segment_directory_name), and pass on
that of a successful one. Nothing is visible before publish_shards. docs/sharding.md has more; cairn.ray runs
the steps on a Ray cluster.

All steps take these keywords. threads: 0, one per core, to 4096. memory_budget: bytes for entries that wait to
be sorted; 0: half of the machine's. progress: called as progress(phase, done, total), about ten times a second.
Ctrl-C and an exception of progress end a step. Other Python threads can run concurrently.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cairn import _cairn
from cairn._cairn import ShardMap, segment_directory_name, shard_directory_name, shards_of_plan
from cairn.errors import ArgumentTypeError

__all__ = [
    "ShardMap",
    "build",
    "build_shard",
    "extract_segment",
    "publish_shards",
    "publish_sources",
    "segment_directory_name",
    "shard_directory_name",
    "shards_of_plan",
    "split_segments",
]

Path = str | os.PathLike[str]
ProgressCallback = Callable[[str, int, int], object]


def _paths(paths: Any, argument: str) -> list[str]:
    """Several paths, as a list."""
    if isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Iterable):
        raise ArgumentTypeError(f"{argument}: expected a sequence of paths, found {type(paths).__name__}")
    made = list(paths)
    for path in made:
        if not isinstance(path, str | bytes | os.PathLike):
            raise ArgumentTypeError(f"{argument}: expected paths, found {type(path).__name__}")
    return [os.fsdecode(path) for path in made]


def build(
    source: Any,
    spec: str,
    directory: Path,
    *,
    shards: int,
    segments: int = 0,
    prebuild_search_structure: bool = False,
    threads: int = 0,
    memory_budget: int = 0,
    progress: ProgressCallback | None = None,
) -> _cairn.BuildReport:
    """Runs all steps in one process, for one source: builds the next generation of the index in `directory`.

    source, spec: as in cairn.build.
    shards: the number of shards, whose sizes differ by at most one entry; fewer if there are fewer entries.
    segments: the number of ranges of rows into which the source is cut; 0: one per 2^28 rows.
    prebuild_search_structure: as in cairn.build.

    On any error the directory keeps its generation. Errors as cairn.build; FailedPrecondition if the directory
    contains anything but a sharded index.
    """
    return _cairn.build_sharded(source, spec, directory, shards, segments, prebuild_search_structure, threads, memory_budget, progress)


def extract_segment(
    source: Any,
    range: tuple[bytes, bytes | None],
    spec: str,
    directory: Path,
    *,
    threads: int = 0,
    memory_budget: int = 0,
    progress: ProgressCallback | None = None,
) -> _cairn.BuildReport:
    """Builds an index of the rows in one range of primary keys. All ranges must be from one call of Snapshot.split.

    Replaces a segment in `directory`. Errors as cairn.build.
    """
    return _cairn.extract_segment(source, range, spec, directory, threads, memory_budget, progress)


def split_segments(
    segments: Sequence[Path],
    shards: int,
    plan: Path,
    *,
    threads: int = 0,
    memory_budget: int = 0,
    progress: ProgressCallback | None = None,
) -> int:
    """Cuts the segments' entries into shards of equal size, and writes the plan to a file, atomically.

    segments: all segments, in the order of their ranges. Returns the number of shards, which is less than
        requested if there are fewer entries.

    FailedPrecondition, naming the segment, if one has another spec, database or state, or if they do not fit
    together; AlreadyExists if a unique index would contain a key twice; DataLoss.
    """
    return _cairn.split_segments(_paths(segments, "segments"), shards, plan, threads, memory_budget, progress)


def build_shard(
    plan: Path,
    shard: int,
    directory: Path,
    *,
    prebuild_search_structure: bool = False,
    threads: int = 0,
    memory_budget: int = 0,
    progress: ProgressCallback | None = None,
) -> _cairn.BuildReport:
    """Builds one shard of a plan, in one pass over its part of the segments.

    directory: in the index's directory, with a name of shard_directory_name.
    prebuild_search_structure: as in cairn.build.

    FailedPrecondition if a segment has changed since the split; AlreadyExists if a unique index would contain a
    key twice.
    """
    return _cairn.build_shard(plan, shard, directory, prebuild_search_structure, threads, memory_budget, progress)


def publish_shards(
    plan: Path,
    directory: Path,
    *,
    threads: int = 0,
    memory_budget: int = 0,
    progress: ProgressCallback | None = None,
) -> None:
    """Makes the shards of a plan in `directory` the next generation of the index there.

    Takes any complete one of several attempts at a shard. Then removes all other shards and attempts: no
    attempt may still run. FailedPrecondition if a shard is missing, of another plan, or damaged; then nothing
    is published.
    """
    _cairn.publish_shards(plan, directory, threads, memory_budget, progress)


def publish_sources(
    names: Sequence[str],
    directory: Path,
    *,
    threads: int = 0,
    memory_budget: int = 0,
    progress: ProgressCallback | None = None,
) -> None:
    """Publishes indexes of different databases, stored in `directory` under `names`, as one index sharded by source.

    names: of shard_directory_name. FailedPrecondition if one is missing or damaged, or if two differ in their
        spec or are of one database; then nothing is published.
    """
    _cairn.publish_sources(_paths(names, "names"), directory, threads, memory_budget, progress)
