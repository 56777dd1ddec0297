"""Indexes in shards: many index directories that are one index, which cairn.open opens as any.

At once, in one process:

    cairn.shards.build("/data/checkpoint", "value.json('/city'):text", "/data/city", shards=16)

Or step by step, each step in a process of its own on any machine that sees the directories:

    extract_segment  a range of a source's rows -> a segment: an ordinary index directory
    split_segments   all segments -> a plan: where the shards' bounds are
    build_shard      the plan and the segments -> one shard: an ordinary index directory
    publish_shards   the plan and the shards -> the next generation of the index, at one instant

Each step depends on its inputs alone, writes to a place of its own, and may be killed, repeated and
run twice at a time: give each attempt a directory that no other has (shard_directory_name,
segment_directory_name), and hand on the one that ended well. Nothing is seen before publish_shards.
docs/sharding.md tells more; cairn.ray runs the steps on a Ray cluster.

All take these keywords. threads: 0, one per core, to 4096. memory_budget: bytes for entries that wait to be
sorted, 0 half of the machine's. progress: called as progress(phase, done, total), about ten times a
second. Ctrl-C and an exception of progress end a step. Other threads run meanwhile.
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
    """All steps in one process, of one source: the next generation of the index in `directory`.

    source, spec: as cairn.build takes them. shards: of equal size, to an entry; there are fewer where
    there are fewer entries. segments: into how many ranges of rows the source is cut; 0, one for 2^28.
    prebuild_search_structure: as cairn.build's.
    On any error the directory holds the generation that it held before. Errors as cairn.build's;
    FailedPrecondition where the directory holds anything but an index in shards.
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
    """Builds an index of the rows of one range of primary keys, of those of one call of Snapshot.split.

    A segment there is replaced. Errors as cairn.build's.
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
    """Cuts what the segments hold into shards of equal size, and writes the plan to a file, whole or not at all.

    segments: in the order of their ranges, which together are all. Returns the number of shards, which
    is less than asked for where there are fewer entries.

    FailedPrecondition, naming the segment, where one is of another spec, database or state, or they do
    not fit together; AlreadyExists where a unique index would have a key twice; DataLoss.
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

    directory: within the index's, by a name of shard_directory_name. prebuild_search_structure: as cairn.build's.
    FailedPrecondition where a segment
    is not the one that was split; AlreadyExists where a unique index would have a key twice.
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
    """Makes the shards of a plan the next generation of the index in `directory`, in which they stand.

    Takes any of several attempts at a shard. Then removes all other shards, other attempts included:
    no attempt may still run. FailedPrecondition, and nothing is published, where a shard is missing, of
    another plan, or damaged.
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
    """Publishes indexes of different databases, stored in `directory` under `names`, as one index by source.

    names: of shard_directory_name. FailedPrecondition, and nothing is published, where one is missing or
    damaged, or two differ in their spec or are of one database.
    """
    _cairn.publish_sources(_paths(names, "names"), directory, threads, memory_budget, progress)
