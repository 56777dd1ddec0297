"""cairn.ray.build: the steps of building a sharded index as tasks of Ray."""

import contextlib
import os
import pathlib
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cairn
import ray
from cairn import _cairn
from cairn import shards as steps
from cairn.errors import InvalidArgument, Unavailable
from cairn.ray import _common
from ray.exceptions import RayError, RayTaskError

Path = str | os.PathLike[str]
ProgressCallback = Callable[[str, int, int], object]


@dataclass(frozen=True)
class BuildSummary:
    """The result of a build."""

    generation: int  # the published one
    mode: str  # "key_range" or "source"
    shards: int
    rows: int
    entries: int
    seconds: dict[str, float]  # step -> time from the first task's submission to the last one's end


# The tasks. Each attempt writes to a new directory, and returns its name.


def _cut(version: str, source: str, column_family: str, parts: int) -> list[tuple[bytes, bytes | None]]:
    _common.check_version(version)
    with cairn.Snapshot(source, column_family) as snapshot:
        return snapshot.split(parts)


def _extract(version: str, source: str, key_range: Any, spec: str, work: str, number: int, options: dict[str, Any]) -> tuple[str, int]:
    _common.check_version(version)
    directory = os.path.join(work, steps.segment_directory_name(number))
    return directory, steps.extract_segment(source, key_range, spec, directory, **options).rows


def _split(version: str, segments: list[str], shards: int, work: str, options: dict[str, Any]) -> tuple[str, int]:
    _common.check_version(version)
    plan = os.path.join(work, f"plan.{secrets.token_hex(8)}")
    return plan, steps.split_segments(segments, shards, plan, **options)


def _build_shard(version: str, plan: str, number: int, out: str, options: dict[str, Any]) -> tuple[str, int]:
    _common.check_version(version)
    name = steps.shard_directory_name(number)
    return name, steps.build_shard(plan, number, os.path.join(out, name), **options).entries


def _build_source(version: str, source: str, spec: str, number: int, out: str, options: dict[str, Any]) -> tuple[str, int, int]:
    _common.check_version(version)
    name = steps.shard_directory_name(number)
    directory = os.path.join(out, name)
    report = cairn.build(source, {directory: spec}, **options)[directory]
    return name, report.rows, report.entries


def _publish(version: str, plan: str, out: str, options: dict[str, Any]) -> int:
    _common.check_version(version)
    steps.publish_shards(plan, out, **options)
    return steps.ShardMap(out).generation


def _publish_sources(version: str, names: list[str], out: str, options: dict[str, Any]) -> int:
    _common.check_version(version)
    steps.publish_sources(names, out, **options)
    return steps.ShardMap(out).generation


class _Steps:
    """Runs the tasks of a build, and reports their progress."""

    def __init__(self, retries: int, threads: int, progress: ProgressCallback | None) -> None:
        self._options = {"num_cpus": threads, "max_retries": retries}
        self._progress = progress
        self.seconds: dict[str, float] = {}

    def run(self, step: str, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The results of a step's tasks, in the order of their arguments. The first error ends the others."""
        start = time.monotonic()
        task = ray.remote(function).options(name=f"cairn {step}", **self._options)
        pending = [task.remote(_common.VERSION, *call) for call in calls]
        order = list(pending)
        self._report(step, 0, len(order))
        try:
            while pending:
                done, pending = ray.wait(pending)
                ray.get(done)
                self._report(step, len(order) - len(pending), len(order))
            results = ray.get(order)
        except RayTaskError as error:
            raise _common.cause_of(error) from None
        except RayError as error:
            raise Unavailable(f"step '{step}': a worker died in every attempt: {error}") from error
        finally:
            for reference in pending:
                with contextlib.suppress(RayError):
                    ray.cancel(reference, force=True)
            if pending:  # their output is about to be removed
                ray.wait(pending, num_returns=len(pending), timeout=60)
        self.seconds[step] = time.monotonic() - start
        return results

    def _report(self, step: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(step, done, total)


def build(
    sources: Path | Sequence[Path],
    spec: str,
    out: Path,
    *,
    shards: int | None = None,
    segments: int | None = None,
    threads: int = 1,
    memory_budget: int = 0,
    retries: int = 10,
    work: Path | None = None,
    progress: ProgressCallback | None = None,
) -> BuildSummary:
    """Builds the next generation of the sharded index in `out` on the cluster that ray.init connected to.

    sources: the directory of one checkpoint, whose entries are cut into equal ranges of keys; or the
        directories of several databases; each becomes a shard (by source).
    spec: as in cairn.build.
    shards: for one source; None: one per host.
    segments: tasks that read the source; None: one per core of the cluster.
    threads: of each task, which takes that many of the cluster's CPUs.
    memory_budget: bytes of each task for entries that wait to be sorted; 0: half of its machine's memory,
        shared by its CPUs.
    retries: the number of retries of a task whose worker or host died.
    work: a directory for segments, on all hosts, which is removed at the end; None: `out` + ".work".
    progress: called as progress(step, tasks done, tasks), with the steps "cut", "extract", "split", "build" and
        "publish".

    Only one build at a time may work on `out`. Each attempt writes to a separate place, and nothing is visible
    before the last step, which replaces one file. So on any error, and if the driver dies, `out` has the old
    generation or the new one. The next build removes the files of a failed attempt.

    Errors: those of cairn, from any task; FailedPrecondition if a worker has another version of cairn;
    Unavailable if a task's workers died more often than `retries`.
    """
    parsed = [os.fsdecode(s) for s in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    if not parsed:
        raise InvalidArgument("sources: expected at least one directory, found none")
    if len(parsed) > 1 and (shards is not None or segments is not None):
        raise InvalidArgument("shards and segments require one source: with several sources, each is a shard")
    if threads < 1 or retries < 0:
        raise InvalidArgument(f"expected threads from 1 and retries from 0, found {threads} and {retries}")
    cores = _common.cores()
    hosts = len(_common.alive_nodes())
    if memory_budget == 0:
        per_host = max(1, cores // max(1, hosts))
        memory_budget = max(64 << 20, _common.memory() // 2 // per_host * threads)
    options: dict[str, Any] = {"threads": threads, "memory_budget": memory_budget}
    run = _Steps(retries, threads, progress)
    target = pathlib.Path(os.fsdecode(out)).absolute()
    target.mkdir(exist_ok=True)
    if len(parsed) > 1:
        return _by_source(run, parsed, spec, str(target), options)
    place = pathlib.Path(os.fsdecode(work)) if work is not None else target.with_name(target.name + ".work")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        return _by_key_range(run, parsed[0], spec, str(target), str(place.absolute()), shards or hosts, segments or cores, options)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _by_key_range(
    run: _Steps, source: str, spec: str, out: str, work: str, shards: int, segments: int, options: dict[str, Any]
) -> BuildSummary:
    family = _cairn.column_family_of(spec)
    [ranges] = run.run("cut", _cut, [(source, family, segments)])
    extracted = run.run("extract", _extract, [(source, r, spec, work, i, options) for i, r in enumerate(ranges)])
    [(plan, count)] = run.run("split", _split, [([path for path, _ in extracted], shards, work, options)])
    built = run.run("build", _build_shard, [(plan, i, out, options) for i in range(count)])
    [generation] = run.run("publish", _publish, [(plan, out, options)])
    rows, entries = sum(rows for _, rows in extracted), sum(entries for _, entries in built)
    return BuildSummary(generation, "key_range", count, rows, entries, run.seconds)


def _by_source(run: _Steps, sources: list[str], spec: str, out: str, options: dict[str, Any]) -> BuildSummary:
    built = run.run("build", _build_source, [(source, spec, i, out, options) for i, source in enumerate(sources)])
    [generation] = run.run("publish", _publish_sources, [([name for name, _, _ in built], out, options)])
    rows, entries = sum(rows for _, rows, _ in built), sum(entries for _, _, entries in built)
    return BuildSummary(generation, "source", len(sources), rows, entries, run.seconds)
