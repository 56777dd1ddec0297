#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"

// Joins on equal secondary keys: of two indexes, of the same database or of different ones, and of
// an index with keys from elsewhere. As in SQL, a null equals nothing: a key with a null in any
// part has no pairs.

namespace cairn {

// What a join returns, and how much of it.
struct JoinOptions {
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // of pairs; 0: none, and no cursor
  // Goes on where a join of the same indexes reached its limit: JoinResult::cursor. Empty: begins.
  std::string after = {};
  bool with_keys = false;
  // Included columns of the rows of either side, by name (IndexSpec::include).
  std::vector<std::string> left_columns = {};
  std::vector<std::string> right_columns = {};
  // The join returns Cancelled some milliseconds after another thread sets this. Null: it cannot be
  // cancelled.
  const std::atomic<bool>* cancelled = nullptr;
};

// Pairs of rows, as columns: pair j is of rows left[j] and right[j]. Plain data, to be reused; a
// call that fails leaves it in an unspecified valid state.
struct JoinResult {
  std::vector<GlobalRowId> left;  // of an index that is not in shards: its row ids
  std::vector<GlobalRowId> right;
  EncodedKeys keys;                         // with_keys: the key of pair j, as `left` encodes it
  std::vector<ColumnValues> left_columns;   // of which value j is that of left[j]
  std::vector<ColumnValues> right_columns;  // and of right[j]
  std::string cursor;                       // for JoinOptions::after; empty where all was returned

  size_t size() const { return left.size(); }
};

// Every pair of a row of `left` and a row of `right` that have the same key, many to many: SQL's
// inner join. By key, then by the rows in the order that either index has them in. Each entry
// counts: rows with several keys in common are several pairs.
//
// The index with fewer entries is scanned, and its keys, which ascend, are looked up in the other
// by the batch; so a small one with a large one costs what the lookups cost. Besides the answer it
// takes memory for a page of entries, and for the rows of the key at hand.
//
// Each index is seen as it is when the call begins. Row ids are those of that state: pin an index
// that changes (SecondaryIndex::Pin) to ask for more of its rows. With a cursor, a row that came or
// went since is seen or not; none comes twice.
//
// InvalidArgument where the types of their keys differ, for an unknown column, and for a cursor
// that is none of such a join; else the errors of the indexes' queries. Thread-safe.
absl::Status Join(const SecondaryIndex& left, const SecondaryIndex& right,
                  const JoinOptions& options, JoinResult* rows);

// Returns the number of these pairs, without any of them. `cancelled` is as of JoinOptions. Errors:
// those of Join; OutOfRange if the number needs more than 64 bits.
absl::StatusOr<uint64_t> CountJoin(const SecondaryIndex& left, const SecondaryIndex& right,
                                   const std::atomic<bool>* cancelled = nullptr);

// Every pair of one of `keys`, in their order, and a row of `index` that has it: left[j] is the
// position among `keys`. They are physical ones (SecondaryIndex::codec()). Of the options, `limit`
// and `after` must be the default, `with_keys` and `left_columns`, too: the keys are the caller's.
absl::Status JoinKeys(KeyBatch keys, const SecondaryIndex& index, const JoinOptions& options,
                      JoinResult* rows);

}  // namespace cairn
