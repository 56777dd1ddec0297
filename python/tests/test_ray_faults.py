"""cairn.ray if tasks, actors and drivers are killed.

CAIRN_TEST_KILLS=200 is the number of kills in each test; CAIRN_TEST_SEED changes their times.
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import cairn
import pytest
from ray_cluster import (  # noqa: F401
    KEYS,
    SPEC,
    Database,
    database,
    entries_of,
    local_cluster,
    make_database,
    opened,
    ray,
    rows_of,
)

import cairn.ray
from cairn import shards
from cairn.ray import _build

KILLS = int(os.environ.get("CAIRN_TEST_KILLS", "3"))
SEED = int(os.environ.get("CAIRN_TEST_SEED", "1"))
TASKS = {"cut": "_cut", "extract": "_extract", "split": "_split", "build": "_build_shard", "publish": "_publish"}


def dying(task: Callable[..., Any], deaths: int, place: pathlib.Path, seed: int) -> Callable[..., Any]:
    """A task that kills its worker in `deaths` of its attempts: before, during or after its work."""
    # A nested function, so that workers are sent its code.
    marks = str(place)

    def attempt(*arguments: Any) -> Any:
        for death in range(deaths):
            try:
                os.close(os.open(f"{marks}/{death}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            rng = random.Random(seed + death)
            kind = rng.randrange(3)
            if kind == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == 1:
                threading.Timer(rng.random() * 0.01, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
            task(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        return task(*arguments)

    return attempt


@pytest.mark.parametrize("step", TASKS)
def test_killed_tasks_leave_the_index_that_it_would_be(
    step: str, database: Database, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setattr(_build, TASKS[step], dying(getattr(_build, TASKS[step]), KILLS, marks, seed=1000 * SEED + len(step)))
    before = time.monotonic()
    summary = database.build(retries=KILLS + 1)
    print(f"{step}: {len(list(marks.iterdir()))} kills in {time.monotonic() - before:.1f} s")
    assert len(list(marks.iterdir())) == KILLS
    # If the publishing task was killed after its work, it has published.
    assert summary.generation == 1 if step != "publish" else summary.generation >= 1
    assert entries_of(database.in_one_process()) == entries_of(database.plain)
    assert database.in_one_process().verify(database.directory) == []
    shards.build(database.directory, SPEC, database.out.with_name("other"), shards=5)
    bounds = [[(s["bounds"], s["rows"]) for s in shards.ShardMap(out).shards] for out in (database.out, database.out.with_name("other"))]
    assert bounds[0] == bounds[1]
    # No files of the attempts remain.
    assert len(list(database.out.glob("shard-*"))) == 5 and not database.out.with_name("index.work").exists()


def test_a_task_whose_workers_always_die_ends_the_build(database: Database, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database.build()
    (tmp_path / "marks").mkdir()
    monkeypatch.setattr(_build, "_build_shard", dying(_build._build_shard, 1000, tmp_path / "marks", seed=1000 * SEED))
    with pytest.raises(cairn.Unavailable, match="'build'"):
        database.build(retries=1, shards=2)
    assert database.in_one_process().stats()["version"] == 1
    assert entries_of(database.in_one_process()) == entries_of(database.plain)
    monkeypatch.undo()
    assert database.build(shards=2).generation == 2
    assert len(list(database.out.glob("shard-*"))) == 2


@contextlib.contextmanager
def killer(cluster: cairn.ray.Cluster, kills: int, pause: float) -> Iterator[list[int]]:
    """Concurrently kills the processes of hosts' actors, one after the other, each when it is up again."""
    killed: list[int] = []
    end = threading.Event()

    def run() -> None:
        rng = random.Random(SEED)
        while len(killed) < kills and not end.wait(rng.random() * pause):
            try:
                pid = ray.get(rng.choice(cluster._hosts.actors).describe.remote(), timeout=30)["pid"]
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            except (ray.exceptions.RayError, ProcessLookupError):
                continue

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield killed
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize("replicas", [1, 2])
def test_killed_actors_under_load(replicas: int, database: Database, opened: Callable[..., cairn.ray.Cluster]) -> None:
    database.build()
    cluster = opened(database.out, replicas=replicas, timeout=60)
    expected = [database.in_one_process().find_first(KEYS).tolist(), database.plain.count(keys=KEYS).tolist()]
    rows = database.in_one_process().find(KEYS).row_ids.tolist()
    asked = {"rows": "count", "keys": "count_distinct"}
    values = database.in_one_process().aggregate(asked, KEYS, bounds="[]").to_list()
    groups = database.in_one_process().group_by(1, asked).values["rows"].to_list()
    batches, slowest, failures = [0], [0.0], []

    def load(seed: int, until: Callable[[], bool]) -> None:
        rng = random.Random(seed + 100 * SEED)
        try:
            while not until():
                start = time.monotonic()
                kind = rng.randrange(5)
                if kind == 0:
                    assert cluster.find_first(KEYS).tolist() == expected[0]
                elif kind == 1:
                    assert cluster.count(keys=KEYS).tolist() == expected[1]
                elif kind == 2:
                    assert cluster.aggregate(asked, KEYS, bounds="[]").to_list() == values
                elif kind == 3:
                    assert cluster.group_by(1, asked).values["rows"].to_list() == groups
                else:
                    assert cluster.find(KEYS).row_ids.tolist() == rows
                batches[0] += 1
                slowest[0] = max(slowest[0], time.monotonic() - start)
        except BaseException as error:
            failures.append(error)

    with killer(cluster, KILLS, 1.0) as killed:
        threads = [threading.Thread(target=load, args=(seed, lambda: len(killed) >= KILLS)) for seed in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(f"{replicas} replicas: {len(killed)} kills, {batches[0]} batches, the slowest {slowest[0]:.2f} s, {cluster.counters}")
    assert not failures, failures
    assert len(killed) == KILLS and batches[0] > 0
    assert cluster.find_first(KEYS).tolist() == expected[0]


def test_a_host_that_lost_its_generation_has_the_batch_repeated(database: Database, opened: Callable[..., cairn.ray.Cluster]) -> None:
    database.build()
    cluster = opened(database.out)
    assert cluster.find([7]).generation == 1
    database.build(shards=2)
    # A restarted host has only the new generation, so the others have to open it, too.
    os.kill(ray.get(cluster._hosts.actors[0].describe.remote())["pid"], signal.SIGKILL)
    found = cluster.find(KEYS, primary_keys=True)
    assert found.generation == 2 and cluster.counters["repeated"] >= 1
    expected = database.plain.find(KEYS, primary_keys=True)
    assert expected.primary_keys is not None and found.primary_keys.to_pylist() == expected.primary_keys.to_list()


def test_a_host_that_hangs_is_answered_for_by_a_replica(database: Database, opened: Callable[..., cairn.ray.Cluster]) -> None:
    database.build()
    cluster = opened(database.out, replicas=2, timeout=10)
    pid = ray.get(cluster._hosts.actors[1].describe.remote())["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        expected = database.plain.count(keys=KEYS).tolist()
        assert [cluster.count(keys=KEYS).tolist() == expected for _ in range(2)] == [True, True]
        assert cluster.counters["retried"] >= 1
    finally:
        os.kill(pid, signal.SIGCONT)


def test_hosts_that_do_not_come_back_are_named(database: Database, opened: Callable[..., cairn.ray.Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    database.build()
    cluster = opened(database.out)
    monkeypatch.setattr(cluster._serving._scatter, "_timeout", 3)
    monkeypatch.setattr(cluster._hosts, "_start", lambda number: cluster._hosts.actors[number])
    ray.kill(cluster._hosts.actors[1], no_restart=True)  # this takes a while
    deadline = time.monotonic() + 60
    with pytest.raises(ray.exceptions.RayActorError):
        while time.monotonic() < deadline:
            ray.get(cluster._hosts.actors[1].describe.remote())
    with pytest.raises(cairn.Unavailable, match="shard 2 .*host 1"):
        cluster.count()
    partial = cluster.count(keys=KEYS, on_missing="partial")
    assert set(partial.missing) == {2, 3} and not partial.complete.all()
    assert (partial.answer[partial.complete] == database.plain.count(keys=KEYS)[partial.complete]).all()
    monkeypatch.undo()
    # A client restarts it.
    assert opened(database.out, timeout=60).count().tolist() == [2000]


def test_a_driver_killed_around_publishing(database: Database, local_cluster: Any, tmp_path: pathlib.Path) -> None:
    database.build()
    program = textwrap.dedent(f"""
        import cairn.ray, ray, sys
        ray.init(address={local_cluster.address!r}, log_to_driver=False, logging_level="error")
        while True:
            cairn.ray.build({str(database.directory)!r}, {SPEC!r}, {str(database.out)!r}, shards=3, segments=2,
                            progress=lambda *step: print(*step, flush=True))
    """)
    rng = random.Random(SEED)
    seen: set[int] = set()
    expected = entries_of(database.plain)
    for _ in range(max(1, KILLS // 3)):
        with subprocess.Popen([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            for line in driver.stdout:
                if line.startswith("publish 0"):
                    break
            time.sleep(rng.random() * 0.15)
            driver.kill()
        time.sleep(0.2)
        # Before and after the end of the driver's work.
        index = database.in_one_process()
        assert entries_of(index) == expected
        seen.add(index.stats()["version"])
    print("generations seen:", sorted(seen))
    time.sleep(0.5)
    assert database.build(shards=4).shards == 4
    assert len(list(database.out.glob("shard-*"))) == 4 and entries_of(database.in_one_process()) == expected
