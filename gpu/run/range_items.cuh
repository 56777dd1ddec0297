#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::gpu {

// How the copying of ranges' rows is divided. Ranges and rows form one sequence of items: the
// heading of range i, at offsets[i] + i, then its rows. Equal numbers of consecutive items are
// equal amounts of work, whether they are one range's rows or the headings of empty ranges.

// The last range whose heading is at or before an item, found by one warp.
__device__ inline size_t RangeOfItem(const uint64_t* offsets, size_t ranges, uint64_t item,
                                     int lane) {
  size_t low = 0, size = ranges;
  while (size > 1) {
    const size_t step = (size + 31) / 32;
    const size_t at = static_cast<size_t>(lane) * step;
    const bool before = at < size && offsets[low + at] + low + at <= item;
    // True for lane 0; if it is true for a lane, it is true for all lower lanes.
    const size_t last = static_cast<size_t>(__popc(__ballot_sync(0xffffffffu, before)) - 1) * step;
    low += last;
    size = min(step, size - last);
  }
  return low;
}

}  // namespace cairn::gpu
