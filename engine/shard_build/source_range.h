#pragma once

#include <string>
#include <vector>

#include "cairn/snapshot_source.h"

namespace cairn {

// The rows of one range of a source, which must outlive it, as a source of its own.
class SourceRange final : public SnapshotSource {
 public:
  SourceRange(const SnapshotSource& source, PrimaryKeyRange range)
      : source_(source), range_(std::move(range)) {}

  absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int parts) const override;
  absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange& range) const override {
    return source_.Scan(range);
  }
  absl::Status Get(
      absl::Span<const std::string_view> primary_keys,
      const std::function<absl::Status(size_t, const RowView&)>& visitor) const override {
    return source_.Get(primary_keys, visitor);
  }
  SequenceNumber sequence() const override { return source_.sequence(); }
  const std::string& database_id() const override { return source_.database_id(); }
  const std::string& column_family() const override { return source_.column_family(); }
  const std::string& description() const override { return source_.description(); }
  uint64_t approximate_rows() const override { return source_.approximate_rows(); }
  uint64_t approximate_bytes() const override { return source_.approximate_bytes(); }

 private:
  const SnapshotSource& source_;
  const PrimaryKeyRange range_;
};

}  // namespace cairn
