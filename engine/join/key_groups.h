#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"

namespace cairn {

// The keys of an index in order, each once, a page of them at a time, without those that have a
// null in any part. What drives a join. Not thread-safe.
class KeyGroups {
 public:
  // From the first key on, or, where `from` has one, from that. `index` must stay what it is.
  // `with_rows`: whether rows() is wanted.
  KeyGroups(const SecondaryIndex& index, EncodedKeys from, bool with_rows);

  // Reads the next page; false where there are no more keys. Errors of the index's queries.
  absl::StatusOr<bool> Next();

  EncodedKeys& keys() { return keys_; }
  size_t size() const { return counts_.size(); }
  // The number of entries with key i, and their rows in the index's order.
  uint64_t count(size_t i) const { return counts_[i]; }
  absl::Span<const GlobalRowId> rows(size_t i) const {
    return absl::MakeConstSpan(rows_).subspan(first_[i], counts_[i]);
  }

 private:
  absl::Status ReadLast();

  const SecondaryIndex& index_;
  const bool with_rows_;
  EncodedKeys from_;  // where the next page begins; empty: at the first key
  Bound bound_;       // what it does with that key
  bool exhausted_ = false;

  FindResult page_;
  EncodedKeys keys_;
  std::vector<uint64_t> counts_;
  std::vector<size_t> first_;  // in rows_
  std::vector<GlobalRowId> rows_;
};

// Appends key i of `keys`, whichever kind they are of, to `to`, which is of the same.
void AppendKeyOf(const EncodedKeys& keys, size_t i, EncodedKeys* to);

}  // namespace cairn
