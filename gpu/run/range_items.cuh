#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::gpu {

// How the copying of ranges' rows is divided: ranges and rows form one sequence of items, range i's
// heading, at offsets[i] + i, then its rows. Whoever takes so many consecutive items has as much to
// do as any other, whether these are one range's rows or the headings of ranges without any.

// The last range whose heading is at or before an item, by one warp.
__device__ inline size_t RangeOfItem(const uint64_t* offsets, size_t ranges, uint64_t item,
                                     int lane) {
  size_t low = 0, size = ranges;
  while (size > 1) {
    const size_t step = (size + 31) / 32;
    const size_t at = static_cast<size_t>(lane) * step;
    const bool before = at < size && offsets[low + at] + low + at <= item;
    // Lane 0's is; where one is, so are those below.
    const size_t last = static_cast<size_t>(__popc(__ballot_sync(0xffffffffu, before)) - 1) * step;
    low += last;
    size = min(step, size - last);
  }
  return low;
}

}  // namespace cairn::gpu
