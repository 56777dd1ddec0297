#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/extractor.h"

namespace cairn {

// The columns of a wide-column entity as RocksDB serialises it in write batches (its
// db/wide/wide_column_serialization.h): in ascending order of their names, views of `entity`.
// Unimplemented for a version of the format after the first, DataLoss for bytes that are none.
absl::Status DecodeEntity(std::string_view entity, std::vector<ColumnView>* columns);

}  // namespace cairn
