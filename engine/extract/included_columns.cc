#include "engine/extract/included_columns.h"

namespace cairn {

std::vector<ColumnSchema> IncludedColumns(const IndexSpec& spec) {
  std::vector<ColumnSchema> columns;
  for (const IncludedColumn& column : spec.include) {
    columns.push_back({column.name, column.value.type});
  }
  return columns;
}

}  // namespace cairn
