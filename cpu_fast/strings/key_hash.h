#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "index/machine/aligned_buffer.h"
#include "index/strings/key_reader.h"
#include "index/strings/pilot_table.h"

namespace cairn {

// A hash table over the keys of a run of byte strings, for lookups of whole keys. It stands beside
// a structure that answers all else.
//
// A lookup reads a pilot and a record of the key and its row. The record stands in a slot of the
// table where keys are about as long as one another, and no longer than some 76 bytes; else a slot
// says where it begins.
//
// A record takes 8 bytes, 12 if its key has several rows, and the key, rounded up to 4; a slot and
// its share of pilots 5 bytes. Records in slots take at most some 8 bytes a key more than that.
//
// Immutable, safe from any number of threads.
class KeyHash {
 public:
  // What there is of a key.
  struct Entry {
    RowId row;       // the first
    Position first;  // of several: that of the first; kNoRow where there is one, or none
  };

  // Reads all keys, on `threads`. Takes another 28 bytes a key meanwhile. None where there is no
  // entry, where a key has 2 GB or records out of slots would come to 16 GB, and where no seed that
  // is tried gives a table, which takes keys that were made so. Throws std::bad_alloc.
  static std::optional<KeyHash> Build(const SortedRun& run, const KeyReader& keys, int threads);

  // entries[i] = what there is of queries[i]; its row is kNoRow where that is nothing.
  void Find(absl::Span<const std::string_view> queries, Entry* entries) const;
  // row_ids[i] = the first row of queries[i], or kNoRow.
  void FindFirst(absl::Span<const std::string_view> queries, RowId* row_ids) const;
  // found[i] = whether any entry has queries[i].
  void Contains(absl::Span<const std::string_view> queries, bool* found) const;

  uint64_t memory_bytes() const {
    return table_.memory_bytes() + records_.size() * sizeof(uint32_t);
  }
  uint64_t huge_page_bytes() const { return table_.huge_page_bytes() + records_.huge_page_bytes(); }

 private:
  KeyHash(AlignedBuffer<uint32_t> records, size_t words_a_slot, uint64_t seed, PilotTable table)
      : records_(std::move(records)),
        words_a_slot_(words_a_slot),
        seed_(seed),
        table_(std::move(table)) {}

  template <typename Emit>
  void ForEach(absl::Span<const std::string_view> queries, Emit emit) const;
  template <bool kInSlots, typename Emit>
  void ForEachIn(absl::Span<const std::string_view> queries, Emit emit) const;

  AlignedBuffer<uint32_t> records_;
  size_t words_a_slot_;  // of records in slots, else 0
  uint64_t seed_;
  PilotTable table_;  // from a key's hash to its slot, or to where its record begins
};

}  // namespace cairn
