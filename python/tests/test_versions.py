"""Queries concurrent with catch_up and compact: rows, their primary keys and columns are of one version."""

import pathlib
import struct
import threading
from collections.abc import Callable, Mapping

import cairn
import numpy as np
import pytest
from conftest import load

Rows = Mapping[bytes, bytes]
SPEC = "value[0:4]:u32be, include(number = value[0:4]:u32be)"


def row(number: int) -> tuple[bytes, bytes]:
    """A row whose primary key contains its key."""
    return b"k%06d" % number, struct.pack(">I", number)


def test_rows_and_their_primary_keys_are_of_one_version_beside_merges(
    make_table: Callable[[Rows], pathlib.Path], tmp_path: pathlib.Path
) -> None:
    database = make_table(dict(row(number) for number in range(4000, 8000)))
    cairn.build(database, {tmp_path / "index": SPEC})
    index = cairn.open(tmp_path / "index", calibration="none")
    wrong: list[object] = []
    asked = np.arange(5000, 7000, dtype=np.uint32)
    stopped = threading.Event()

    def check(matches: cairn.FindResult, numbers: list[int]) -> None:
        assert matches.primary_keys is not None
        if matches.primary_keys.to_list() != [row(number)[0] for number in numbers]:
            wrong.append(matches)
        if "number" in matches.columns and matches.columns["number"].to_list() != numbers:
            wrong.append(matches)

    def ask(query: Callable[[], tuple[cairn.FindResult, list[int]]]) -> None:
        try:
            while not stopped.is_set():
                check(*query())
        except cairn.Error as error:
            wrong.append(error)

    def scanned() -> tuple[cairn.FindResult, list[int]]:
        matches = index.scan(5000, 7000, with_keys=True, primary_keys=True, columns=["number"])
        assert matches.keys is not None
        return matches, matches.keys.to_list()

    def pinned() -> tuple[cairn.FindResult, list[int]]:
        with index.pin() as pin:
            matches = pin.find(asked, primary_keys=True)
            again = pin.primary_keys(pin.find_first(asked))
            if again.to_list() != [row(number)[0] for number in asked]:
                wrong.append(again)
            return matches, asked.tolist()

    queries = [scanned, lambda: (index.find(asked, primary_keys=True, columns=["number"]), asked.tolist()), pinned]
    threads = [threading.Thread(target=ask, args=(query,)) for query in queries]
    for thread in threads:
        thread.start()
    try:
        # Adds rows before the others, so that compact changes the ids of all of these.
        for batch in range(12):
            load(database, dict(row(number) for number in range(100 * batch, 100 * batch + 100)))
            index.catch_up(database, skip_identity_check=True)
            index.compact()
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_pinned_index_stays_what_it_is(make_table: Callable[[Rows], pathlib.Path], tmp_path: pathlib.Path) -> None:
    database = make_table(dict(row(number) for number in range(10, 20)))
    cairn.build(database, {tmp_path / "index": SPEC})
    index = cairn.open(tmp_path / "index")
    pin = index.pin()
    rows = pin.find_first(np.array([15], np.uint32))
    load(database, dict([row(1)]))
    index.catch_up(database, skip_identity_check=True)
    index.compact()
    assert pin.primary_keys(rows).to_list() == [b"k000015"] != index.primary_keys(rows).to_list()
    assert len(pin) == 10 and len(index) == 11
    for change in (lambda: pin.catch_up(database), pin.compact):
        with pytest.raises(cairn.FailedPrecondition, match="pinned"):
            change()
    index.close()
    assert pin.count(1).tolist() == [10] and pin.pin().directory == index.directory
