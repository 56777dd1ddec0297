#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Device indexes that take insertions.

namespace cairn {

// What becomes of equal keys on a bulk insertion.
enum class EqualKeys : uint8_t {
  kKeepRows,     // a key may have many rows; of equal (key, row id) pairs one is kept
  kReplaceRows,  // a key has one row: the lowest that is inserted, else the lowest that it had
};

// An index in device memory that takes insertions: a B+-tree (gpu:btree).
//
// Between updates it is as any DeviceIndex. An update (Insert, BulkInsert) excludes all other
// calls, from any thread, from its beginning until it returns. It is done behind all work that has
// been enqueued on any stream and reads the index, and when it returns, all streams see it. A graph
// that has captured a query must not be launched after an update.
//
// Entries are in the memory of the index's device, in any order, and stay as they are. Updates
// leave the index unchanged where they fail: InvalidArgument for keys of another kind, a row id of
// kNoRow, more than kMaxEntries in all, or a stream of another device; ResourceExhausted;
// FailedPrecondition where the stream is being captured; Unavailable and Internal as DeviceIndex.
class UpdatableDeviceIndex : public DeviceIndex {
 public:
  // Insert puts up to so many entries in one by one.
  static constexpr size_t kMostOneByOne = 64;

  // Adds entries without moving others than those of the pages that they belong to; pairs of key
  // and row id that are there already are left out. Returns how many were new. Up to kMostOneByOne
  // go one by one, in their order, in 3 to 6 microseconds each; more go all at once.
  absl::StatusOr<size_t> Insert(DeviceKeys keys, const RowId* row_ids, DeviceStream stream);

  // Adds entries by merging all, and makes the index anew, with pages as full as it was first made
  // with: sooner done than Insert where the entries are many. No equal pairs are left, not even
  // such as were there before.
  absl::Status BulkInsert(DeviceKeys keys, const RowId* row_ids, EqualKeys equal_keys,
                          DeviceStream stream);

 protected:
  using DeviceIndex::DeviceIndex;

 private:
  // Of entries of the index's kind, on its device, when nothing reads it.
  virtual absl::StatusOr<size_t> InsertEntries(DeviceKeys keys, const RowId* row_ids,
                                               DeviceStream stream) = 0;
  virtual absl::Status BulkInsertEntries(DeviceKeys keys, const RowId* row_ids,
                                         EqualKeys equal_keys, DeviceStream stream) = 0;
};

// MakeDeviceIndex of a structure that takes insertions: "gpu:btree", with its parameters; for
// others Unimplemented. Waits.
absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, DeviceKeys keys, const RowId* row_ids, DeviceStream stream);
absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, const SortedRun& run, int device = 0);

}  // namespace cairn
