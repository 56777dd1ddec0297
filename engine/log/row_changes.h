#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/extractor.h"
#include "engine/util/key_order.h"

namespace cairn {

// The effect of a change on its row, or on the rows of a range.
enum class RowChangeKind : uint8_t {
  kPut,          // the row now has this value;
  kPutEntity,    // the row now has these wide columns;
  kDelete,       // the row is deleted
  kLookUp,       // the row must be read from the database, for example after a merge operand
  kDeleteRange,  // the rows with keys in [lower, upper) are deleted
};

// One change; a view of the RowChanges that contains it.
struct RowChange {
  RowChangeKind kind = RowChangeKind::kDelete;
  std::string_view key;    // the row's primary key, or `lower`
  std::string_view value;  // kPut: the value; kPutEntity: as serialized by RocksDB; or `upper`
};

// Sets `row` to the row after a kPut or kPutEntity, as extractors expect it and as RocksDB would
// read it: a single column without a name is a plain value. Valid as long as the change; `scratch`
// contains the columns of an entity.
void SetRow(const RowChange& change, std::vector<ColumnView>* scratch, RowView* row);

// The changes of the rows of one column family, in commit order. Keys and values are copied into
// one block of memory. Clear keeps the block, so that changes need no allocation once it is large
// enough. A value of at least kMinShared bytes is not copied if it has an owner; the owner is kept
// instead. Movable; not thread-safe. Views of changes are valid until the next change is added.
// Throws std::bad_alloc as any container.
class RowChanges {
 public:
  static constexpr size_t kMaxChanges = UINT32_MAX;
  // Bytes of memory per change, in addition to its key and value.
  static constexpr size_t kBytesPerChange = 24;
  static constexpr size_t kMinShared = size_t{1} << 20;
  // The object that owns a value's bytes, or null.
  using Owner = std::shared_ptr<const void>;

  RowChanges() = default;
  RowChanges(RowChanges&& other) noexcept { *this = std::move(other); }
  RowChanges& operator=(RowChanges&& other) noexcept;

  // Keys and values must be smaller than 4 GiB. There may be at most kMaxChanges changes.
  void Put(std::string_view key, std::string_view value, const Owner& owner = nullptr) {
    AddOwned(RowChangeKind::kPut, key, value, owner);
  }
  // `entity` is the serialized form of wide columns in a write batch. One in a newer format is
  // recorded as a LookUp. Errors: DataLoss, with nothing added, if it is malformed.
  absl::Status PutEntity(std::string_view key, std::string_view entity,
                         const Owner& owner = nullptr);
  void Delete(std::string_view key) { Add(RowChangeKind::kDelete, key, {}); }
  void LookUp(std::string_view key) { Add(RowChangeKind::kLookUp, key, {}); }
  // Changes the i-th change, a put or a deletion of one row, into a LookUp.
  void ReplaceByLookUp(size_t i) { entries_[i].kind = RowChangeKind::kLookUp; }
  // Does nothing if lower >= upper, as RocksDB.
  void DeleteRange(std::string_view lower, std::string_view upper) {
    if (lower < upper) Add(RowChangeKind::kDeleteRange, lower, upper);
  }
  // Deletes RocksDB's range [begin, end) of a column family in this order.
  void DeleteRange(std::string_view begin, std::string_view end, KeyOrder order) {
    if (order == KeyOrder::kBytewise) {
      DeleteRange(begin, end);
    } else {
      DeleteRange(KeyAfter(end), KeyAfter(begin));
    }
  }
  // Adds later changes.
  void Append(const RowChanges& later);
  void Clear();

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  RowChange operator[](size_t i) const;
  // Bytes of memory in use, including shared values.
  size_t bytes() const { return size_ + shared_bytes_ + entries_.size() * sizeof(Entry); }
  // Bytes of allocated memory, in use or not.
  size_t memory_bytes() const {
    return capacity_ + shared_bytes_ + entries_.capacity() * sizeof(Entry);
  }

 private:
  friend class SettledChanges;

  // A change is a KeyRecord (index/sort/sort_entry.h) of its key and its own index, followed by its
  // value or by the address of a shared value.
  struct Entry {
    uint64_t offset;  // of the record in memory_
    uint32_t value_size;
    RowChangeKind kind;
    bool is_shared;
  };

  void AddOwned(RowChangeKind kind, std::string_view key, std::string_view value,
                const Owner& owner) {
    if (owner == nullptr || value.size() < kMinShared) [[likely]] {
      Add(kind, key, value);
    } else {
      if (owners_.empty() || owners_.back() != owner) owners_.push_back(owner);
      AddShared(kind, key, value);
    }
  }
  // For a value whose owner is kept.
  void AddShared(RowChangeKind kind, std::string_view key, std::string_view value);
  void Add(RowChangeKind kind, std::string_view key, std::string_view value);
  void Reserve(size_t more);

  std::unique_ptr<char[]> memory_;
  size_t size_ = 0;      // bytes in use
  size_t capacity_ = 0;  // bytes, including the slack that key records need
  std::vector<Entry> entries_;
  std::vector<Owner> owners_;  // of shared values
  size_t shared_bytes_ = 0;
  std::vector<ColumnView> columns_;  // of the entity being checked
};

}  // namespace cairn
