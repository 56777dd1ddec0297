#include "engine/util/status.h"

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

rocksdb::Status ToRocksDb(const absl::Status& status) {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return rocksdb::Status::OK();
    case absl::StatusCode::kNotFound:
      return rocksdb::Status::NotFound(message);
    case absl::StatusCode::kDataLoss:
      return rocksdb::Status::Corruption(message);
    case absl::StatusCode::kUnimplemented:
      return rocksdb::Status::NotSupported(message);
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
      return rocksdb::Status::InvalidArgument(message);
    case absl::StatusCode::kUnavailable:
      return rocksdb::Status::Busy(message);
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
      return rocksdb::Status::IOError(message);
    default:
      return rocksdb::Status::Aborted(message);
  }
}

}  // namespace cairn
