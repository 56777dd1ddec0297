#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "cairn/batcher.h"
#include "index/query/physical_key.h"

namespace cairn {

// The answer to query i of `answers`, which are no error. Throws std::bad_alloc.
template <Operation kOperation>
Batcher::AnswerOf<kOperation> AnswerTo(const Batcher::Answers& answers, size_t i) {
  if constexpr (kOperation == Operation::kFindFirst) {
    return answers.row_ids[i];
  } else if constexpr (kOperation == Operation::kContains) {
    return answers.found[i];
  } else if constexpr (kOperation == Operation::kCount) {
    return answers.counts[i];
  } else {
    const FindResult& matches = *answers.matches;
    const size_t query = answers.first + i;
    const absl::Span<const RowId> found = matches[query];
    std::vector<RowId> row_ids(found.begin(), found.end());
    if constexpr (kOperation == Operation::kFind) {
      return row_ids;
    } else {
      Batcher::Entries entries;
      entries.row_ids = std::move(row_ids);
      entries.keys.Clear(matches.keys.kind());
      if (!matches.keys.empty()) {
        AppendSlice(matches.keys, matches.offsets[query], found.size(), &entries.keys);
      }
      if (query < matches.cursors.size()) entries.cursor = matches.cursors[query];
      return entries;
    }
  }
}

}  // namespace cairn
