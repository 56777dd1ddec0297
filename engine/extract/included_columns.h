#pragma once

#include <vector>

#include "cairn/index_spec.h"
#include "index/columns/column_table.h"

namespace cairn {

// The columns that a spec includes, as a column file has them; none where it includes none.
std::vector<ColumnSchema> IncludedColumns(const IndexSpec& spec);

}  // namespace cairn
