#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/extractor.h"

namespace cairn {

// Sets *columns to the columns of a wide-column entity as RocksDB serializes it in write batches
// (its db/wide/wide_column_serialization.h). They are views of `entity` in ascending order of
// names. Unimplemented: a later version of the format than the first. DataLoss: `entity` is not an
// entity.
absl::Status DecodeEntity(std::string_view entity, std::vector<ColumnView>* columns);

}  // namespace cairn
