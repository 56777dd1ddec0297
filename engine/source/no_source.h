#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/snapshot_source.h"

namespace cairn {

// Stands for a source where no row is to be read: reading one is an error.
class NoSource final : public SnapshotSource {
 public:
  absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int) const override { return Error(); }
  absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange&) const override {
    return Error();
  }
  absl::Status Get(absl::Span<const std::string_view> primary_keys,
                   const std::function<absl::Status(size_t, const RowView&)>&) const override {
    return primary_keys.empty() ? absl::OkStatus() : Error();
  }
  SequenceNumber sequence() const override { return 0; }
  const std::string& database_id() const override { return none_; }
  const std::string& column_family() const override { return none_; }
  const std::string& description() const override { return none_; }
  uint64_t approximate_rows() const override { return 0; }
  uint64_t approximate_bytes() const override { return 0; }

 private:
  static absl::Status Error() { return absl::InternalError("no row was to be read"); }

  const std::string none_;
};

}  // namespace cairn
