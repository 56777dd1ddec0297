#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/btree/b_plus_tree_pages.h"
#include "gpu/btree/b_plus_tree_search.h"
#include "gpu/run/device_run.h"

namespace cairn::gpu {

struct BPlusTreeOptions {
  int order = 16;   // maximum keys per page; see BPlusTreeLayout::IsOrder
  double fill = 1;  // part of a page that is filled at creation, 0.5 to 1
  BPlusTreeMethod method = BPlusTreeMethod::kCombined;
};

// The order whose pages have 64 bytes of keys, which makes searches fastest. u32, n = 2^28, orders
// 8, 16, 32 and 64: 16.9, 19.1, 13.7 and 10.8 G lookups/s; u64, n = 2^26: 16.5, 13.7, 9.8 and 6.8.
template <typename Key>
inline constexpr int kBestOrder = 64 / sizeof(Key);

// A B+-tree on the device: Kaczmarek, "B+-Tree Optimized for GPGPU" (2012).
//
// Invariants: every page except the root is at least half full. Entries are in (key, row id) order.
template <typename Key>
class BPlusTree final : public UpdatableDeviceIndex {
 public:
  BPlusTree(BPlusTreeOptions options, int device, BPlusTreePages<Key> pages);

  std::string description() const override;
  uint64_t memory_bytes() const override { return pages_.bytes(); }
  const BPlusTreeOptions& options() const { return options_; }
  // For traversal; see b_plus_tree_visit.cuh.
  const BPlusTreePages<Key>& pages() const { return pages_; }

 private:
  // Sorts the entries, merges them with those of the tree, and rebuilds all pages (section 2.2,
  // bulk insert).
  absl::Status BulkInsertEntries(DeviceKeys keys, const RowId* row_ids, EqualKeys equal_keys,
                                 DeviceStream stream) override;
  // Inserts up to kMaxOneByOne entries one by one, splitting full pages along the search path
  // (section 2.2, single insert). Inserts more entries into all their leaves at once, and rebuilds
  // the inner pages. Both recompute positions, which takes time for every leaf: 0.4 ms at 2^28
  // entries. The first Insert after the tree was created also builds links for all pages, which
  // takes 5 ms.
  absl::StatusOr<size_t> InsertEntries(DeviceKeys keys, const RowId* row_ids,
                                       DeviceStream stream) override;
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override;
  absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                          uint64_t rows, Order order, RowId* row_ids,
                          DeviceStream stream) const override;

  BPlusTreeOptions options_;
  BPlusTreePages<Key> pages_;
};

// Enqueued on `stream`. Errors: those of MakeDeviceIndex.
template <typename Key>
absl::StatusOr<std::unique_ptr<BPlusTree<Key>>> BuildBPlusTree(DeviceRun<Key> run,
                                                               const BPlusTreeOptions& options,
                                                               cudaStream_t stream);

}  // namespace cairn::gpu
