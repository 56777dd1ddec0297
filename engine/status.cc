#include "engine/status.h"

#include <string>

#include "absl/strings/str_format.h"

namespace cairn {

absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrFormat("%s: %s", doing, status.ToString());
  switch (status.code()) {
    case rocksdb::Status::kNotFound:
      return absl::NotFoundError(message);
    case rocksdb::Status::kCorruption:
      return absl::DataLossError(message);
    case rocksdb::Status::kNotSupported:
      return absl::UnimplementedError(message);
    case rocksdb::Status::kInvalidArgument:
      return absl::InvalidArgumentError(message);
    case rocksdb::Status::kMemoryLimit:
      return absl::ResourceExhaustedError(message);
    case rocksdb::Status::kBusy:
    case rocksdb::Status::kTryAgain:
      return absl::UnavailableError(message);
    default:
      if (status.IsIOError() && status.subcode() == rocksdb::Status::kPathNotFound) {
        return absl::NotFoundError(message);
      }
      if (status.IsNoSpace()) return absl::ResourceExhaustedError(message);
      return absl::InternalError(message);
  }
}

}  // namespace cairn
