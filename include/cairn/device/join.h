#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "cairn/types.h"

// Joins on equal keys in the memory of one GPU. Calls are stream-ordered, as in cairn/device.h.

namespace cairn {

// Entries in device memory: a view that owns nothing.
struct DeviceEntries {
  DeviceKeys keys;                 // integers in ascending order
  const RowId* row_ids = nullptr;  // one per key; null: entry i is of row i

  size_t size() const { return keys.size(); }
};

// The result of a join, in device memory.
struct DevicePairs {
  RowId* left = nullptr;  // [capacity]: pair j is of rows left[j] and right[j]
  RowId* right = nullptr;
  uint64_t capacity = 0;
  uint64_t* total = nullptr;  // number of pairs, even if greater than `capacity`
};

// Finds every pair of an entry of `left` and an entry of `right` with the same key, many to many.
// Pairs are sorted by key, then by the entries of the longer side (`left` if both have the same
// length), then by those of the other side. Pairs beyond the capacity are omitted: if *total >
// capacity, pairs are missing.
//
// Keys are read once, and row ids only for matches. The first step marks and counts the matches, by
// tiles of the longer side; the second step writes the pairs. Several blocks write the pairs of a
// key with many entries on both sides. Scratch memory: half a byte per entry of the longer side.
//
// Keys must be ascending. Otherwise the pairs are unspecified, but no memory outside the arguments
// is accessed. Runs on the device whose memory contains *total. May be captured. Errors: those of
// DeviceIndex; InvalidArgument for byte-string keys, different key types, more than kMaxEntries
// entries on a side, and a `total` that is not in device memory.
absl::Status JoinDevice(const DeviceEntries& left, const DeviceEntries& right,
                        const DevicePairs& pairs, DeviceStream stream);

// Sets *total, in device memory, to the number of these pairs. Ignores row ids. Scratch memory: 4
// bytes per 2,048 entries of the longer side (per 1,024 for 64-bit keys). Errors: those of
// JoinDevice.
absl::Status CountDeviceJoin(const DeviceEntries& left, const DeviceEntries& right, uint64_t* total,
                             DeviceStream stream);

}  // namespace cairn
