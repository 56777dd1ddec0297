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
  int order = 16;   // keys a page holds: BPlusTreeLayout::IsOrder
  double fill = 1;  // how much of a page is filled at creation, 0.5 to 1
  BPlusTreeMethod method = BPlusTreeMethod::kCombined;
};

// The order whose pages have keys of 64 bytes, which search is fastest with: u32, n = 2^28, orders
// 8, 16, 32 and 64: 16.9, 19.1, 13.7 and 10.8 G lookups/s; u64, n = 2^26: 16.5, 13.7, 9.8 and 6.8.
template <typename Key>
inline constexpr int kBestOrder = 64 / sizeof(Key);

// What becomes of equal keys on bulk insertion.
enum class Duplicates : uint8_t {
  kKeepRows,     // a key may have many rows; of equal (key, row id) pairs one is kept
  kReplaceRows,  // a key has one row: the lowest that was inserted, else the one it had
};

// A B+-tree on the device: Kaczmarek, "B+-Tree Optimized for GPGPU" (2012).
//
// Thread safety: as a DeviceIndex between updates. An update (BulkInsert, Insert) excludes all
// other calls, from any thread, from its beginning until it returns; and work that was enqueued
// before on other streams must be done. Updates wait for their stream.
//
// Invariants: every page but the root is at least half full. Entries are in (key, row id) order.
template <typename Key>
class BPlusTree final : public DeviceIndex {
 public:
  BPlusTree(BPlusTreeOptions options, int device, BPlusTreePages<Key> pages);

  std::string description() const override;
  uint64_t memory_bytes() const override { return pages_.bytes(); }
  const BPlusTreeOptions& options() const { return options_; }
  // For traversal: b_plus_tree_visit.cuh.
  const BPlusTreePages<Key>& pages() const { return pages_; }

  // Adds entries in device memory, in any order, by sorting them, merging them with those of the
  // tree, and creating all pages anew (section 2.2, bulk insert). No equal pairs are left, not even
  // such as were there before. The tree is unchanged on errors: ResourceExhausted; InvalidArgument
  // where it would hold more than kMaxEntries.
  absl::Status BulkInsert(const Key* keys, const RowId* row_ids, size_t size, Duplicates duplicates,
                          cudaStream_t stream);

  // Adds entries in device memory without moving others than those of the pages that they belong
  // to; pairs that are there already are left out. Returns how many were new. Up to 64 entries go
  // one by one, in their order, splitting full pages up the path that the search took (section 2.2,
  // single insert), in 3 to 6 microseconds each. More go to their leaves all at once, and inner
  // pages are created anew. Either way positions are counted anew, which takes time for every leaf:
  // 0.4 ms at 2^28 entries; and the first Insert after the tree was created makes links for all
  // pages, in 5 ms. Errors as BulkInsert's.
  absl::StatusOr<size_t> Insert(const Key* keys, const RowId* row_ids, size_t size,
                                cudaStream_t stream);

 private:
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override;
  absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                          uint64_t rows, Order order, RowId* row_ids,
                          DeviceStream stream) const override;

  BPlusTreeOptions options_;
  BPlusTreePages<Key> pages_;
};

// Waits. Errors as MakeDeviceIndex's.
template <typename Key>
absl::StatusOr<std::unique_ptr<BPlusTree<Key>>> BuildBPlusTree(DeviceRun<Key> run,
                                                               const BPlusTreeOptions& options,
                                                               cudaStream_t stream);

}  // namespace cairn::gpu
