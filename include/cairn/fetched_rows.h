#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/string_list.h"
#include "cairn/types.h"

namespace cairn {

// Rows read from the database for a batch of queries: query i's are [offsets[i], offsets[i + 1]).
struct FetchedRows {
  std::vector<uint64_t> offsets;  // [batch + 1], offsets[0] = 0
  std::vector<RowId> row_ids;
  std::vector<uint32_t> shards;  // as Matches::shards
  PrimaryKeyColumn primary_keys;
  StringList values;  // of the default column where a row is an entity
  // With a limit: where range i goes on, as Matches::cursors.
  std::vector<std::string> cursors;
  uint64_t stale = 0;  // entries dropped: the row is gone or no longer matches its query
};

}  // namespace cairn
