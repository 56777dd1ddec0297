#include "engine/util/status.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "index/machine/guard.h"
#include "rocksdb/slice.h"
#include "rocksdb/version.h"

namespace cairn {
namespace {

// Returns a hint if RocksDB reports that a newer version may have written its input.
std::string Advice(const rocksdb::Status& status) {
  const std::string message = status.ToString();
  if (!absl::StrContains(message, "unsupported format_version") &&
      !absl::StrContains(message, "newer version of RocksDB")) {
    return "";
  }
  return absl::StrFormat(
      "; if a newer RocksDB has written it, build Cairn against that version (this is RocksDB %s)",
      rocksdb::GetRocksVersionAsString());
}

}  // namespace

absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing) noexcept try {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrFormat("%s: %s%s", doing, status.ToString(), Advice(status));
  switch (status.code()) {
    case rocksdb::Status::kNotFound:
      return absl::NotFoundError(message);
    case rocksdb::Status::kCorruption:
      return absl::DataLossError(message);
    case rocksdb::Status::kNotSupported:
      return absl::UnimplementedError(message);
    case rocksdb::Status::kInvalidArgument:
      return absl::InvalidArgumentError(message);
    case rocksdb::Status::kBusy:
    case rocksdb::Status::kTryAgain:
      return absl::UnavailableError(message);
    case rocksdb::Status::kTimedOut:
      return absl::DeadlineExceededError(message);
    default:
      if (status.IsIOError() && status.subcode() == rocksdb::Status::kPathNotFound) {
        return absl::NotFoundError(message);
      }
      if (status.IsNoSpace() || status.IsMemoryLimit())
        return absl::ResourceExhaustedError(message);
      return absl::InternalError(message);
  }
} catch (...) {
  return StatusOfException(doing);
}

rocksdb::Status ToRocksDb(const absl::Status& status) noexcept try {
  const rocksdb::Slice message(status.message().data(), status.message().size());
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
    case absl::StatusCode::kDeadlineExceeded:
      return rocksdb::Status::TimedOut(message);
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
      return rocksdb::Status::IOError(message);
    default:
      return rocksdb::Status::Aborted(message);
  }
} catch (...) {
  return rocksdb::Status::Aborted(rocksdb::Status::kMemoryLimit);  // takes no memory
}

}  // namespace cairn
