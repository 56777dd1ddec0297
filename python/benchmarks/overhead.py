"""The cost of a call from Python over the same call in C++: one process, alternating, medians.

    tools/python-package build/release test && . build/release/python/venv/bin/activate
    cmake -S python -B build/overhead -DCAIRN_PYTHON_BENCHMARKS=ON -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH=$PWD/build/release/python/prefix -DPython_EXECUTABLE=$(which python) \
      -Dnanobind_DIR=$(python -m nanobind --cmake_dir) && cmake --build build/overhead --target cairn_overhead
    build/release/tools/cairn demo /tmp/demo --rows=1000000
    python -P python/benchmarks/overhead.py /tmp/demo build/overhead/libcairn_overhead.so
"""

import ctypes
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import cairn
import numpy as np
import pyarrow as pa

ROUNDS = 31


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def compare(name: str, calls: int, python: Callable[[], object], native: Callable[[int], int]) -> None:
    """Rounds that alternate, in alternating order; prints medians of one call, and of the rounds' differences."""
    times: dict[str, list[float]] = {"python": [], "c++": []}

    def run_python() -> None:
        start = time.perf_counter_ns()
        for _ in range(calls):
            python()
        times["python"].append((time.perf_counter_ns() - start) / calls)

    def run_native() -> None:
        taken = native(calls)
        if taken < 0:
            raise RuntimeError("a C++ call failed")
        times["c++"].append(taken / calls)

    run_python(), run_native()
    times = {"python": [], "c++": []}
    for i in range(ROUNDS):
        for run in (run_python, run_native) if i % 2 == 0 else (run_native, run_python):
            run()
    ours, theirs = statistics.median(times["python"]), statistics.median(times["c++"])
    more = statistics.median(p - c for p, c in zip(times["python"], times["c++"], strict=True))
    spread = statistics.quantiles(times["c++"], n=4)
    print(
        f"| {name} | {theirs / 1e3:.2f} | {ours / 1e3:.2f} | {more / 1e3:+.2f} | {100 * (ours / theirs - 1):+.1f}% "
        f"| {100 * (spread[2] - spread[0]) / theirs:.1f}% |"
    )


def main() -> None:
    database, library = sys.argv[1:3]
    native = ctypes.CDLL(library)
    native.overhead_open.restype = ctypes.c_void_p
    for name in ("find_first", "find", "find_first_text"):
        getattr(native, "overhead_" + name).restype = ctypes.c_int64
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as work:
        number, text = pathlib.Path(work, "number"), pathlib.Path(work, "text")
        cairn.build(database, {number: "value.field('|',1):u64,cf=orders"})
        cairn.build(database, {text: "value.field('|',4):text,cf=customer"})
        index = cairn.open(number)
        # Both run with the measurements of the machine that the first one made.
        same = ctypes.c_void_p(native.overhead_open(str(number).encode()))
        scanned = index.scan(with_keys=True).keys
        assert scanned is not None
        present = scanned.to_numpy()
        print(f"u64 of {len(index)} entries; text of as many rows; medians of {ROUNDS} rounds by turns\n")
        print("| batch | C++, us | Python, us | more, us | more | middle half of the C++ rounds |\n| --- | --- | --- | --- | --- | --- |")
        for size in (1, 100, 10_000, 1_000_000):
            keys = rng.choice(present, size)
            rows = np.empty(size, np.uint32)
            calls = max(1, min(3000, 1_000_000 // size // 4))
            first = lambda n, k=keys, r=rows: native.overhead_find_first(  # noqa: E731
                same, pointer(k), ctypes.c_int64(len(k)), pointer(r), ctypes.c_int64(n)
            )
            compare(f"find_first of {size} u64, out=", calls, lambda k=keys, r=rows: index.find_first(k, out=r), first)
            compare(f"find_first of {size} u64", calls, lambda k=keys: index.find_first(k), first)
            compare(
                f"find of {size} u64", calls, lambda k=keys: index.find(k),
                lambda n, k=keys: native.overhead_find(same, pointer(k), ctypes.c_int64(len(k)), ctypes.c_int64(n)),
            )  # fmt: skip
        phones = cairn.open(text)
        same = ctypes.c_void_p(native.overhead_open(str(text).encode()))
        found = phones.scan(with_keys=True).keys
        assert found is not None
        everything = pa.array(found)
        for size in (1, 100, 10_000, 1_000_000):
            keys = everything.take(pa.array(rng.integers(0, len(everything), size)))
            offsets = np.frombuffer(keys.buffers()[1], np.int64)
            native.overhead_set_text(same, ctypes.c_void_p(keys.buffers()[2].address), pointer(offsets), ctypes.c_int64(size))
            rows = np.empty(size, np.uint32)
            calls = max(1, min(3000, 1_000_000 // size // 4))
            compare(
                f"find_first of {size} texts from Arrow, out=", calls, lambda k=keys, r=rows: phones.find_first(k, out=r),
                lambda n, r=rows: native.overhead_find_first_text(same, pointer(r), ctypes.c_int64(n)),
            )  # fmt: skip


if __name__ == "__main__":
    main()
