"""Batches in the memory of a GPU. Without a GPU: that they are rejected by name."""

from typing import Any

import cairn
import numpy as np
import pytest


@pytest.fixture
def columns() -> cairn.ColumnIndex:
    rng = np.random.default_rng(1)
    return cairn.from_columns(rng.integers(0, 50_000, 100_000).astype(np.uint64))


@pytest.fixture
def cupy(columns: cairn.ColumnIndex) -> Any:
    module = pytest.importorskip("cupy", reason="needs CuPy, which no extra installs: it is made for one version of CUDA")
    try:
        columns.on_device().close()
    except cairn.Unavailable as error:
        pytest.skip(f"needs a GPU: {error}")
    return module


def test_without_a_device_it_is_unavailable(columns: cairn.ColumnIndex) -> None:
    try:
        index = columns.on_device()
    except cairn.Unavailable as error:
        assert str(error)
    else:
        assert len(index) == len(columns) and index.kind == "u64"
        with pytest.raises(cairn.KeyTypeError, match="on CUDA device 0"):
            index.find_first(np.arange(3, dtype=np.uint64))


def test_answers_are_the_hosts(columns: cairn.ColumnIndex, cupy: Any) -> None:
    index = columns.on_device(0)
    assert len(index) == len(columns) and index.device == 0 and index.memory_bytes > 0 and index.structure.startswith("gpu:")
    keys = np.random.default_rng(2).integers(0, 60_000, 10_000).astype(np.uint64)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        on_device = cupy.asarray(keys)
        for given in (stream, stream.ptr):
            assert (index.find_first(on_device, stream=given).get() == columns.find_first(keys)).all()
        assert (index.contains(on_device, stream=stream).get() == columns.contains(keys)).all()
        assert (index.count(on_device, stream=stream).get() == columns.count(keys=keys)).all()
        upper = on_device + cupy.uint64(10)
        for bounds in ("[)", "[]", "(]", "()"):
            counts = index.count(on_device, upper, bounds=bounds, stream=stream).get()
            assert (counts == columns.count(keys, keys + 10, bounds=bounds)).all()
        rows = cupy.empty(len(keys), cupy.uint32)
        assert index.find_first(on_device, out=rows, stream=stream) is rows
        begin, offsets = index.plan_scan(on_device, stream=stream)
        found = index.copy_rows(begin, offsets, int(offsets[-1]), stream=stream)
        expected = columns.find(keys)
        assert (offsets.get() == expected.offsets).all() and (found.get() == expected.row_ids).all()
        rows = len(expected.row_ids)
        for capacity in (rows + 5, rows // 2, 0):
            offsets, found = index.scan(on_device, capacity=capacity, stream=stream)
            assert (offsets.get() == expected.offsets).all() and len(found) == capacity
            kept = min(rows, capacity)
            assert (found.get()[:kept] == expected.row_ids[:kept]).all()
        with pytest.raises(cairn.OutputTypeError, match="row_ids: expected an array of 3 elements, found one of 4"):
            index.scan(on_device, capacity=3, row_ids=cupy.empty(4, cupy.uint32), stream=stream)


def test_work_of_other_streams_is_waited_for(columns: cairn.ColumnIndex, cupy: Any) -> None:
    """Keys that one stream is still computing are searched on another stream, by both protocols."""

    class InterfaceOnly:
        def __init__(self, array: Any) -> None:
            self._array = array

        @property
        def __cuda_array_interface__(self) -> Any:
            return self._array.__cuda_array_interface__

    index = columns.on_device(0)
    keys = np.arange(10_000, dtype=np.uint64)
    expected = columns.find_first(keys)
    making, searching = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    for wrap in (lambda a: a, InterfaceOnly):
        with making:
            made = cupy.zeros(len(keys), cupy.uint64)
            slow = cupy.ones((4096, 4096), cupy.float32)
            for _ in range(20):
                slow = slow @ slow * cupy.float32(0)
            made += cupy.asarray(keys) + slow[0, 0].astype(cupy.uint64)
            out = cupy.empty(len(keys), cupy.uint32)
            index.find_first(wrap(made), out=out, stream=searching)
        searching.synchronize()
        assert (out.get() == expected).all()

    class Masked(InterfaceOnly):
        @property
        def __cuda_array_interface__(self) -> Any:
            return self._array.__cuda_array_interface__ | {"mask": cupy.ones(len(self._array), cupy.bool_)}

    with pytest.raises(cairn.KeyTypeError, match="without a mask"):
        index.find_first(Masked(cupy.asarray(keys)), out=out)


def test_bad_arrays_are_refused(columns: cairn.ColumnIndex, cupy: Any) -> None:
    index = columns.on_device(0)
    keys = cupy.arange(10, dtype=cupy.uint64)
    for bad in (keys.astype(cupy.int64), keys.astype(cupy.uint32), keys[::2], keys.reshape(2, 5), keys.get(), [1, 2], None):
        with pytest.raises(cairn.KeyTypeError, match="expected"):
            index.find_first(bad)
    for out in (cupy.empty(9, cupy.uint32), cupy.empty(10, cupy.int32), np.empty(10, np.uint32)):
        with pytest.raises(cairn.OutputTypeError, match="expected"):
            index.find_first(keys, out=out)
    with pytest.raises(cairn.InvalidArgument, match="stream"):
        index.find_first(keys, stream="fast")
    index.close()
    with pytest.raises(cairn.Closed):
        index.find_first(keys)


def test_text_and_torch(cupy: Any) -> None:
    texts = cairn.from_columns(["b", "a", "b"])
    index = texts.on_device(0)
    keys = (cupy.frombuffer(b"abzz", dtype=cupy.uint8), cupy.asarray([0, 1, 2, 3], dtype=cupy.uint32))
    assert index.find_first(keys).get().tolist() == [1, 0, cairn.NO_ROW]
    torch = pytest.importorskip("torch")
    numbers = cairn.from_columns(np.array([5, 1, 5], np.uint64)).on_device(0)
    rows = numbers.find_first(torch.tensor([5, 7], dtype=torch.uint64, device="cuda"))
    assert rows.cpu().numpy().tolist() == [0, cairn.NO_ROW]
