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

// The tuples (index/columns/tuple.h) of rows that came or changed after a base: row id -> the last
// one that it was given, in any version.
//
// Grows at its end, and what is there never moves nor goes. One thread appends; any number of
// others may at the same time ask for what a version has. A version has the tuples below an end
// (Delta::end_tuple). Takes 32 to 48 bytes per tuple in addition to its own, also for tuples that
// are no longer any row's: DeltaWriter::Renumber leaves these out.
class DeltaTuples {
 public:
  DeltaTuples();

  // The row's tuple in the version that ends at `end`; none where its values are the base's.
  std::optional<std::string_view> Find(RowId row, uint32_t end) const;

  // Bytes of all tuples, whoever knows of them; by any thread.
  uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  // What follows is for the one thread that appends.

  uint32_t end() const { return tuples_.size(); }
  // The number of rows that were given one.
  uint32_t rows() const { return static_cast<uint32_t>(tables_.back()->used); }
  // What Find will say in versions behind the tuples that were appended so far.
  std::optional<std::string_view> Find(RowId row) const { return Find(row, end()); }
  // Gives the row a tuple; requires end() < kMax. Throws std::bad_alloc, and then has not.
  void Append(RowId row, std::string_view tuple);
  // Likewise, unless the row has this one; whether it did. ResourceExhausted where kMax were
  // given.
  absl::StatusOr<bool> Give(RowId row, std::string_view tuple);
  // Takes the tuples from `end` on from their rows again: the version that ends there is the latest
  // one. Their memory stays taken, as readers of older versions may come by them.
  void TakeBack(uint32_t end);

  static constexpr uint32_t kMax = UINT32_MAX - 1;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Tuple {
    const char* bytes;
    uint32_t size;
    RowId row;
    uint32_t previous;  // the row's tuple before, or kNone
  };
  // The last tuple of each row, by open addressing: row + 1 and the tuple's number in the low half,
  // or 0. A row that has a place keeps it.
  struct Table {
    explicit Table(size_t places)
        : mask(places - 1), places(std::make_unique<std::atomic<uint64_t>[]>(places)) {}
    std::atomic<uint64_t>& PlaceOf(RowId row) const;

    size_t mask;
    size_t used = 0;  // the writer's
    std::unique_ptr<std::atomic<uint64_t>[]> places;
  };

  static uint64_t Place(RowId row, uint32_t tuple) { return (uint64_t{row} + 1) << 32 | tuple; }
  void Grow();

  ChunkedArray<Tuple> tuples_;
  ByteHeap heap_;
  // Ascending in size; readers may still be in any of them.
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> table_;  // the last of them
  std::atomic<uint64_t> memory_bytes_ = 0;
};

}  // namespace cairn
