"""The time of a batch in a GPU's memory from Python, measured by events on the stream. Compare it with
`cairn_bench --benchmark_filter='^PointLookup/gpu:auto/(u32|u64)/n:(24|26)/row_id/iterations'`, which does the
same with the C++ API.
"""

import argparse
import statistics
import time

import cairn
import cupy as cp
import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log2-queries", type=int, default=27)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    queries = 1 << arguments.log2_queries
    rng = np.random.default_rng(1)
    print(f"{'key':4} {'entries':>8} {'queries':>10} {'G/s':>8} {'us a call':>10} {'us of the host':>15}")
    for dtype in (np.uint32, np.uint64):
        for log2 in (24, 26):
            keys = rng.integers(0, np.iinfo(dtype).max, 1 << log2, dtype=dtype, endpoint=True)
            index = cairn.from_columns(keys).on_device(0)
            on_device = cp.asarray(keys)
            cp.cuda.Device().synchronize()  # the copy runs on another stream
            stream = cp.cuda.Stream(non_blocking=True)
            with stream:
                asked = on_device[cp.random.randint(0, 1 << log2, queries)]
                rows = cp.empty(queries, cp.uint32)
                assert bool((on_device[index.find_first(asked, out=rows, stream=stream)] == asked).all())
                for size in (queries, 1 << 20, 1 << 12, 1):
                    batch, out = asked[:size], rows[:size]
                    device, host = [], []
                    repeats = 1 if size == queries else 50
                    for _ in range(arguments.rounds):
                        begin, end = cp.cuda.Event(), cp.cuda.Event()
                        stream.synchronize()
                        begin.record(stream)
                        start = time.perf_counter()
                        for _ in range(repeats):
                            index.find_first(batch, out=out, stream=stream)
                        host.append((time.perf_counter() - start) / repeats * 1e6)
                        end.record(stream)
                        end.synchronize()
                        device.append(cp.cuda.get_elapsed_time(begin, end) / repeats * 1e3)
                    took = statistics.median(device)
                    print(
                        f"{np.dtype(dtype).name[0] + np.dtype(dtype).name[4:]:4} {'2^' + str(log2):>8} {size:>10}"
                        f" {size / took / 1e3:8.2f} {took:10.2f} {statistics.median(host):15.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
