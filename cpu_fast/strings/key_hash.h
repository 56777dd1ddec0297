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

// A hash table over the keys of a run of byte strings, for full-key lookups. It supplements a
// structure that executes all other operations.
//
// A lookup reads a pilot and a record, which contains the key and its row id. If keys have similar
// lengths, up to about 76 bytes, each record is stored in a slot of the table. Otherwise a slot
// stores the offset of its record.
//
// A record takes 8 bytes, or 12 if its key has several rows, plus the key rounded up to a multiple
// of 4. A slot and its share of pilots take 5 bytes. Records in slots take at most about 8 bytes
// per key more than that.
//
// Immutable and thread-safe.
class KeyHash {
 public:
  // The result of a lookup.
  struct Entry {
    RowId row;       // the first row id; kNoRow if the key does not exist
    Position first;  // position of the first entry if the key has several rows, otherwise kNoRow
  };

  // Reads all keys, on `threads` threads. Needs another 28 bytes per key during the build. Returns
  // nullopt if the run is empty, if a key has 2 GB or more, or if records outside slots would total
  // 16 GB. Also returns nullopt if no tried seed gives a table, which happens only with adversarial
  // keys. Throws std::bad_alloc.
  static std::optional<KeyHash> Build(const SortedRun& run, const KeyReader& keys, int threads);

  // entries[i] = the entry of queries[i].
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
  size_t words_a_slot_;  // per slot, if records are in slots; otherwise 0
  uint64_t seed_;
  PilotTable table_;  // from a key's hash to its slot, or to the offset of its record
};

}  // namespace cairn
