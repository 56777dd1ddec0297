#include "engine/live/row_errors.h"

namespace cairn {

absl::Status ShownError(rocksdb::DB* db, const absl::Status& error) {
  const bool of_rows = absl::IsInvalidArgument(error) || absl::IsAlreadyExists(error);
  if (!of_rows || db->GetDBOptions().allow_data_in_errors) return error;
  if (absl::IsAlreadyExists(error)) {
    return absl::AlreadyExistsError(
        "the index is unique, but two rows have the same key; DBOptions::allow_data_in_errors "
        "shows them");
  }
  return absl::InvalidArgumentError(
      "a row does not match the index's spec; DBOptions::allow_data_in_errors shows which one and "
      "why");
}

}  // namespace cairn
