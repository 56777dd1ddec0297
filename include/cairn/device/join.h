#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "cairn/types.h"

// Joins on equal keys in the memory of one GPU. Calls are stream-ordered, as those of
// cairn/device.h.

namespace cairn {

// Entries in device memory: a view that owns nothing.
struct DeviceEntries {
  DeviceKeys keys;                 // numbers, ascending
  const RowId* row_ids = nullptr;  // of each; null: entry i is of row i

  size_t size() const { return keys.size(); }
};

// Where the pairs of a join go, in device memory.
struct DevicePairs {
  RowId* left = nullptr;  // [capacity]: pair j is of rows left[j] and right[j]
  RowId* right = nullptr;
  uint64_t capacity = 0;
  uint64_t* total = nullptr;  // how many pairs there are, whatever the capacity
};

// Every pair of an entry of `left` and one of `right` that have the same key, many to many: by key,
// then by the entries of the longer side, which is `left` where both are as long, then by those of
// the other. Pairs beyond the capacity are left out: where *total is more than that, some are
// missing.
//
// Keys are read once, and row ids where they match. First the matches are marked and counted, by
// stretches of the longer side with what may match of the right one in shared memory; then the
// pairs are written. A key with many entries on both sides has its pairs written by many blocks.
// Scratch memory: half a byte an entry of the longer side.
//
// Keys must ascend; where they do not, which pairs come is not said, but nothing else is read or
// written than what is here. Runs on the device whose memory *total is. InvalidArgument for keys of
// bytes, of different kinds, or more than kMaxEntries, and where *total is in no device's memory;
// else errors as DeviceIndex's. May be captured.
absl::Status JoinDevice(const DeviceEntries& left, const DeviceEntries& right,
                        const DevicePairs& pairs, DeviceStream stream);

// The number of these pairs alone, to *total in device memory; row ids are not looked at. Scratch
// memory: 4 bytes for 2,048 entries of the longer side (1,024 of 64-bit keys).
absl::Status CountDeviceJoin(const DeviceEntries& left, const DeviceEntries& right, uint64_t* total,
                             DeviceStream stream);

}  // namespace cairn
