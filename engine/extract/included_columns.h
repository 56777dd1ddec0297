#pragma once

#include <vector>

#include "cairn/index_spec.h"
#include "index/columns/column_table.h"

namespace cairn {

// Returns the columns that a spec includes, as in a column file; empty if it includes none.
std::vector<ColumnSchema> IncludedColumns(const IndexSpec& spec);

}  // namespace cairn
