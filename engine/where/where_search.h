#pragma once

#include <atomic>
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

namespace cairn {

// A set of rows, a bit each. Not thread-safe while it changes. What allocates throws
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
  // This becomes what `other`, of as many rows, has and this has not.
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
