#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "index/machine/byte_heap.h"
#include "index/machine/chunked_array.h"

namespace cairn {

// The tuples (index/columns/tuple.h) of rows that were added or changed after the base was built.
// Maps a row id to the row's last tuple in any version.
//
// The table grows at its end; tuples never move and are never freed. One thread appends.
// Concurrently, any number of threads may read a version's tuples, which are those before
// Delta::end_tuple. Each tuple takes 32 to 48 bytes in addition to its own. This includes tuples
// that no row has any more; DeltaWriter::Renumber leaves these out.
class DeltaTuples {
 public:
  DeltaTuples();
  // Begins with the tuples of `parent` before `end`, and appends to this table only.
  DeltaTuples(std::shared_ptr<const DeltaTuples> parent, uint32_t end);

  // Returns the row's tuple in the version that ends at `end`; nullopt if the row has the base's
  // values.
  std::optional<std::string_view> Find(RowId row, uint32_t end) const;

  // Bytes of all tuples. Any thread may call it.
  uint64_t memory_bytes() const {
    return memory_bytes_.load(std::memory_order_relaxed) +
           (parent_ == nullptr ? 0 : parent_->memory_bytes());
  }

  // Only the one thread that appends may call the methods below.

  uint32_t end() const { return first_ + tuples_.size(); }
  // The number of rows that were given a tuple in this table.
  uint32_t rows() const { return static_cast<uint32_t>(tables_.back()->used); }
  // The row's tuple in a version that ends after the last tuple.
  std::optional<std::string_view> Find(RowId row) const { return Find(row, end()); }
  // Gives the row a tuple; requires end() < kMax. Throws std::bad_alloc, and then nothing has
  // changed.
  void Append(RowId row, std::string_view tuple);
  // Gives the row a tuple unless it already has an equal one; returns whether it did. Errors:
  // ResourceExhausted if kMax tuples were given.
  absl::StatusOr<bool> Give(RowId row, std::string_view tuple);
  // Takes the tuples from `end` on from their rows, so that the version that ends there is the
  // latest. Their memory is not freed, because readers of older versions may still pass through
  // them.
  void TakeBack(uint32_t end);

  static constexpr uint32_t kMax = UINT32_MAX - 1;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Tuple {
    const char* bytes;
    uint32_t size;
    RowId row;
    uint32_t previous;  // the row's previous tuple, or kNone
  };
  // A hash table with open addressing from each row to its last tuple. A slot has row + 1 in the
  // high half and the number of the tuple in the low half; 0 is empty. A row keeps its slot.
  struct Table {
    explicit Table(size_t places)
        : mask(places - 1), places(std::make_unique<std::atomic<uint64_t>[]>(places)) {}
    std::atomic<uint64_t>& PlaceOf(RowId row) const;

    size_t mask;
    size_t used = 0;  // used by the writer only
    std::unique_ptr<std::atomic<uint64_t>[]> places;
  };

  static uint64_t Place(RowId row, uint32_t tuple) { return (uint64_t{row} + 1) << 32 | tuple; }
  void Grow();

  const uint32_t first_ = 0;  // the number of the first tuple that is not the parent's
  const std::shared_ptr<const DeltaTuples> parent_;
  ChunkedArray<Tuple> tuples_;
  ByteHeap heap_;
  // In ascending order of size; readers may still use any of them.
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> table_;  // the last of them
  std::atomic<uint64_t> memory_bytes_ = 0;
};

}  // namespace cairn
