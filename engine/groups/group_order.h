#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/query.h"

namespace cairn {

// Puts groups in order, a page of them: each has bytes that compare as the groups do, and a
// cursor is these. Throws std::bad_alloc.
class GroupSorter {
 public:
  explicit GroupSorter(size_t groups) : keys_(groups) {}

  // Groups that were equal so far are ordered by this column, which has a value of
  // each. Null is less than all others. InvalidArgument for a text beyond what a key may have.
  absl::Status Then(const ColumnValues& column, Order order);

  // Sets *groups to the first `limit` behind `after`, a cursor or empty, in order, and *cursor to
  // the last one's, or "" where no more come. InvalidArgument for what is no cursor.
  absl::Status Page(uint64_t limit, std::string_view after, std::vector<size_t>* groups,
                    std::string* cursor) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace cairn
