#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"

// Joins on equal secondary keys: of two indexes, of the same or different databases, or of an index
// with other keys. As in SQL, null equals nothing: a key with a null in any part has no pairs.

namespace cairn {

// Options of a join.
struct JoinOptions {
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // pairs; 0: no pairs and no cursor
  // The JoinResult::cursor of an earlier join of the same indexes that reached its limit; the join
  // continues after it. Empty: start at the first pair. InvalidArgument for the cursor of a join of
  // indexes with other specs.
  std::string after = {};
  bool with_keys = false;
  // Included columns to return for the rows of each side, by name (IndexSpec::include).
  std::vector<std::string> left_columns = {};
  std::vector<std::string> right_columns = {};
  // End the join before it is complete: see QueryOptions.
  const std::atomic<bool>* cancelled = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
};

// Pairs of rows, as columns: pair j is (left[j], right[j]). Plain data that can be reused. A failed
// call leaves it in an unspecified valid state.
struct JoinResult {
  std::vector<GlobalRowId> left;  // row ids if the index is not sharded
  std::vector<GlobalRowId> right;
  EncodedKeys keys;                         // with_keys: the key of pair j, as encoded by `left`
  std::vector<ColumnValues> left_columns;   // value j is of left[j]
  std::vector<ColumnValues> right_columns;  // value j is of right[j]
  std::string cursor;  // for JoinOptions::after; empty if there are no more pairs

  size_t size() const { return left.size(); }
};

// Sets *rows to every pair of a row of `left` and a row of `right` with the same key, many to many:
// SQL's inner join. Pairs are sorted by key, then by left row, then by right row, each in the order
// of its index. Each entry counts: two rows with several common keys form several pairs.
//
// The index with fewer entries is scanned, and its keys, in ascending order, are looked up in the
// other index in batches. Joining a small index with a large one thus costs little more than the
// lookups. Apart from the result, the join uses memory for a page of entries and the rows of one
// key.
//
// Each index is read at its version at the start of the call, and row ids are those of that
// version. To query more about the rows of an index that changes, pin it first
// (SecondaryIndex::Pin). A join that continues from a cursor may or may not include rows that
// changed in between; it returns no pair twice.
//
// Errors: InvalidArgument if the types of the keys differ, for an unknown column, and for a cursor
// of another join; Cancelled; DeadlineExceeded; those of the queries of the indexes. Thread-safe.
absl::Status Join(const SecondaryIndex& left, const SecondaryIndex& right,
                  const JoinOptions& options, JoinResult* rows);

// Returns the number of pairs that Join would return without a limit. Uses only
// `cancelled` and `deadline` of `options`. Errors: those of Join; OutOfRange if there are more than
// 2^64 - 1 pairs.
absl::StatusOr<uint64_t> CountJoin(const SecondaryIndex& left, const SecondaryIndex& right,
                                   const JoinOptions& options = {});

// Sets *rows to every pair of a key of `keys` and a row of `index` with that key, in the order of
// `keys`; left[j] is the index of the key in `keys`. `keys` are physical keys
// (SecondaryIndex::codec). A key with a null in any part has no pairs. Uses only `right_columns`,
// `cancelled` and `deadline` of `options`. Errors: InvalidArgument if `limit`, `after`, `with_keys`
// or `left_columns` is set; Cancelled; DeadlineExceeded; those of SecondaryIndex::Find.
// Thread-safe.
absl::Status JoinKeys(KeyBatch keys, const SecondaryIndex& index, const JoinOptions& options,
                      JoinResult* rows);

}  // namespace cairn
