#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/extractor.h"

namespace cairn {

// What a change does to its row, or to the rows of a range.
enum class RowChangeKind : uint8_t {
  kPut,          // the row has this value now
  kPutEntity,    // the row has these wide columns now
  kDelete,       // the row is gone
  kLookUp,       // the row changed in a way that only reading it tells: a merge operand was added
  kDeleteRange,  // the rows with keys in [lower, upper) are gone
};

// One change; a view of the RowChanges that holds it.
struct RowChange {
  RowChangeKind kind = RowChangeKind::kDelete;
  std::string_view key;    // the row's primary key, or `lower`
  std::string_view value;  // kPut: the value; kPutEntity: as RocksDB serialises it; or `upper`
};

// The row that a kPut or kPutEntity leaves, as extractors see it and as RocksDB would read it: a
// lone column without a name is a plain value. Valid as long as the change; `scratch` holds the
// columns of an entity.
void SetRow(const RowChange& change, std::vector<ColumnView>* scratch, RowView* row);

// What happened to the rows of one column family, in the order in which it was committed. Keys and
// values are copied into one block of memory, which Clear keeps: nothing is allocated for a change
// once there is room. Values of kMinShared bytes or more are not copied if they have an owner,
// which is kept instead. Movable; not thread-safe. Views of changes are valid until the next change
// is added. Throws std::bad_alloc like any container.
class RowChanges {
 public:
  static constexpr size_t kMaxChanges = UINT32_MAX;
  // Bytes of memory that a change takes beyond its key and value.
  static constexpr size_t kBytesPerChange = 24;
  static constexpr size_t kMinShared = size_t{1} << 20;
  // What a value is part of, or null.
  using Owner = std::shared_ptr<const void>;

  RowChanges() = default;
  RowChanges(RowChanges&& other) noexcept { *this = std::move(other); }
  RowChanges& operator=(RowChanges&& other) noexcept;

  // Keys and values are of less than 4 GiB, changes at most kMaxChanges.
  void Put(std::string_view key, std::string_view value, const Owner& owner = nullptr) {
    AddOwned(RowChangeKind::kPut, key, value, owner);
  }
  // `entity` is what a write batch has for wide columns. One in a newer format is a LookUp;
  // DataLoss, and nothing added, for one that is not an entity.
  absl::Status PutEntity(std::string_view key, std::string_view entity,
                         const Owner& owner = nullptr);
  void Delete(std::string_view key) { Add(RowChangeKind::kDelete, key, {}); }
  void LookUp(std::string_view key) { Add(RowChangeKind::kLookUp, key, {}); }
  // Nothing where lower >= upper, as in RocksDB.
  void DeleteRange(std::string_view lower, std::string_view upper) {
    if (lower < upper) Add(RowChangeKind::kDeleteRange, lower, upper);
  }
  // Adds what happened later.
  void Append(const RowChanges& later);
  void Clear();

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  RowChange operator[](size_t i) const;
  // Bytes of memory in use, those of shared values included.
  size_t bytes() const { return size_ + shared_bytes_ + entries_.size() * sizeof(Entry); }
  // Bytes of memory that it holds, used or not.
  size_t memory_bytes() const {
    return capacity_ + shared_bytes_ + entries_.capacity() * sizeof(Entry);
  }

 private:
  friend class SettledChanges;

  // A change is a KeyRecord (index/sort/sort_entry.h) of its key and its own number, and then its
  // value, or the address of a shared value.
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
  // Of a value whose owner is kept.
  void AddShared(RowChangeKind kind, std::string_view key, std::string_view value);
  void Add(RowChangeKind kind, std::string_view key, std::string_view value);
  void Reserve(size_t more);

  std::unique_ptr<char[]> memory_;
  size_t size_ = 0;      // bytes in use
  size_t capacity_ = 0;  // bytes, the slack that key records need included
  std::vector<Entry> entries_;
  std::vector<Owner> owners_;  // of shared values
  size_t shared_bytes_ = 0;
  std::vector<ColumnView> columns_;  // of the entity that is being checked
};

}  // namespace cairn
