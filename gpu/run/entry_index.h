#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/run/entry_array.h"
#include "gpu/run/range_rows.h"

namespace cairn::gpu {

template <typename Key>
constexpr PhysicalType KindOf() {
  return sizeof(Key) == 4 ? PhysicalType::kU32 : PhysicalType::kU64;
}

// The option for a layout in a factory string.
constexpr const char* LayoutOption(EntryLayout layout) {
  return layout == EntryLayout::kAoS ? ",aos" : ",soa";
}

// Common base of device structures that keep a run's entries in run order.
template <typename Key, EntryLayout kLayout>
class EntryIndex : public DeviceIndex {
 public:
  // Always one kernel of search_kernel.cuh.
  bool writes_results_once() const override { return true; }

 protected:
  EntryIndex(EntryArray<Key> entries, size_t size, int device)
      : DeviceIndex(KindOf<Key>(), size, device), entries_(std::move(entries)) {}

  EntryView<Key, kLayout> view() const { return entries_.template view<kLayout>(); }
  uint64_t entry_bytes() const { return entries_.bytes(); }

 private:
  absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                          uint64_t rows, Order order, RowId* row_ids,
                          DeviceStream stream) const override {
    return CopyRowsFromColumn(entries_.row_column(), begin, offsets, queries, rows, order, row_ids,
                              stream);
  }

  EntryArray<Key> entries_;
};

}  // namespace cairn::gpu
