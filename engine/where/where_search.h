#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/where/row_bitmap.h"
#include "engine/where/row_space.h"
#include "engine/where/where_node.h"
#include "index/machine/mutex.h"

namespace cairn {

// Finds the rows of a resolved predicate, by each of several strategies. `cancelled` may be null;
// methods that take it return Cancelled once it is set. Thread-safe. Everything but constructors
// throws std::bad_alloc.
class WhereSearch {
 public:
  WhereSearch(const GroupMembers* members, std::shared_ptr<const RowSpace> space)
      : members_(*members), space_(std::move(space)), present_(members->size()) {}

  const RowSpace& space() const { return *space_; }

  // The rows, each once, in any order: those of the most selective leaf, tested for the others.
  absl::Status Gather(const WhereNode& node, std::vector<RowId>* rows,
                      const std::atomic<bool>* cancelled) const;
  // The rows, each leaf a bitmap.
  absl::Status Bitmap(const WhereNode& node, RowBitmap* rows,
                      const std::atomic<bool>* cancelled) const;

  // Whether Scan takes a predicate: no row of a base has several entries, and rows have their
  // indexes' own numbers.
  absl::StatusOr<bool> CanScan(const WhereNode& node) const;
  // Counts the rows, and appends them unless `rows` is null: those that changed last, all others
  // ascending. Requires CanScan.
  absl::Status Scan(const WhereNode& node, uint64_t* count, std::vector<RowId>* rows,
                    const std::atomic<bool>* cancelled) const;

  // pass[i] = whether rows[i] is one. Requires Prepare of the node's members.
  void Test(const WhereNode& node, absl::Span<const RowId> rows, bool* pass) const;
  // Makes what Test needs.
  absl::Status Prepare(const WhereNode& node) const;

  // By primary key.
  void Sort(std::vector<RowId>* rows) const;

 private:
  struct ScanLeaf;

  void TestLeaf(const WhereNode& leaf, absl::Span<const RowId> rows, bool* pass) const;
  // Keeps those that pass.
  absl::Status Filter(const WhereNode& node, std::vector<RowId>* rows,
                      const std::atomic<bool>* cancelled) const;
  void SortOnce(std::vector<RowId>* rows) const;
  absl::StatusOr<const RowBitmap*> Present(size_t member) const;
  absl::Status PrepareScan(const WhereNode& node, std::vector<ScanLeaf>* leaves,
                           const std::atomic<bool>* cancelled) const;
  void ScanBlock(const WhereNode& node, const std::vector<ScanLeaf>& leaves, RowId first,
                 uint8_t* pass, size_t* leaf, int level, std::vector<uint8_t>* scratch) const;
  // In the members of these leaves.
  std::vector<RowId> ChangedRows(const WhereNode& node) const;

  const GroupMembers& members_;
  const std::shared_ptr<const RowSpace> space_;
  mutable Mutex mutex_;
  // Rows with entries in a member, where it was asked for.
  mutable std::vector<std::unique_ptr<const RowBitmap>> present_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
