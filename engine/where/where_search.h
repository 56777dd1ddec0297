#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/where/row_space.h"
#include "engine/where/where_node.h"
#include "index/machine/mutex.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// A set of rows, one bit per row. Not thread-safe during changes. Methods that allocate throw
// std::bad_alloc.
class RowBitmap {
 public:
  RowBitmap() = default;
  explicit RowBitmap(uint64_t rows) : rows_(rows), words_((rows + 63) / 64) {}

  void Add(RowId row) { words_[row / 64] |= uint64_t{1} << (row % 64); }
  void Remove(RowId row) { words_[row / 64] &= ~(uint64_t{1} << (row % 64)); }
  bool Contains(RowId row) const { return (words_[row / 64] >> (row % 64) & 1) != 0; }

  void And(const RowBitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  void Or(const RowBitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // Replaces this set by `other` without the rows of this set. Both must have the same number of
  // rows.
  void SubtractFrom(const RowBitmap& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] = other.words_[i] & ~words_[i];
  }
  void Complement() {
    for (uint64_t& word : words_) word = ~word;
    if (rows_ % 64 != 0) words_.back() &= (uint64_t{1} << (rows_ % 64)) - 1;
  }

  uint64_t Count() const {
    uint64_t count = 0;
    for (const uint64_t word : words_) count += static_cast<uint64_t>(std::popcount(word));
    return count;
  }
  // Appends all rows, ascending.
  void AppendTo(std::vector<RowId>* rows) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        rows->push_back(static_cast<RowId>(i * 64 + static_cast<size_t>(std::countr_zero(word))));
      }
    }
  }

 private:
  uint64_t rows_ = 0;
  std::vector<uint64_t> words_;
};

// Finds the rows of a resolved predicate with one of several strategies. Methods return the error
// of `stop` once it has one. Thread-safe. All methods except the constructor throw std::bad_alloc.
class WhereSearch {
 public:
  WhereSearch(const GroupMembers* members, std::shared_ptr<const RowSpace> space)
      : members_(*members), space_(std::move(space)), present_(members->size()) {}

  const RowSpace& space() const { return *space_; }

  // Finds each row once, in any order: the rows of the most selective leaf, tested for the others.
  absl::Status Gather(const WhereNode& node, std::vector<RowId>* rows,
                      const StopCondition& stop) const;
  // Finds the rows by one bitmap per leaf.
  absl::Status Bitmap(const WhereNode& node, RowBitmap* rows, const StopCondition& stop) const;

  // Returns whether Scan supports a predicate: no row of a base has several entries, and rows have
  // the indexes' own numbers.
  absl::StatusOr<bool> CanScan(const WhereNode& node) const;
  // Counts the rows, and appends them unless `rows` is null: unchanged rows ascending, then changed
  // ones. Requires CanScan.
  absl::Status Scan(const WhereNode& node, uint64_t* count, std::vector<RowId>* rows,
                    const StopCondition& stop) const;

  // Sets pass[i] to whether rows[i] satisfies the node. Requires Prepare of the node's members.
  void Test(const WhereNode& node, absl::Span<const RowId> rows, bool* pass) const;
  // Builds the structures that Test needs.
  absl::Status Prepare(const WhereNode& node) const;

  // Sorts rows by primary key.
  void Sort(std::vector<RowId>* rows) const;

 private:
  struct ScanLeaf;

  void TestLeaf(const WhereNode& leaf, absl::Span<const RowId> rows, bool* pass) const;
  // Keeps the rows that satisfy the node.
  absl::Status Filter(const WhereNode& node, std::vector<RowId>* rows,
                      const StopCondition& stop) const;
  void SortOnce(std::vector<RowId>* rows) const;
  absl::StatusOr<const RowBitmap*> Present(size_t member) const;
  absl::Status PrepareScan(const WhereNode& node, std::vector<ScanLeaf>* leaves,
                           const StopCondition& stop) const;
  void ScanBlock(const WhereNode& node, const std::vector<ScanLeaf>& leaves, RowId first,
                 uint8_t* pass, size_t* leaf, int level, std::vector<uint8_t>* scratch) const;
  // Returns the changed rows of the members of these leaves.
  std::vector<RowId> ChangedRows(const WhereNode& node) const;

  const GroupMembers& members_;
  const std::shared_ptr<const RowSpace> space_;
  mutable Mutex mutex_;
  // The rows with entries in each member, if requested before.
  mutable std::vector<std::unique_ptr<const RowBitmap>> present_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
