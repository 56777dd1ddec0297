#include "cairn/sorted_run.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/run/copy_run.h"
#include "index/run/entry_order.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// Checks sizes before any copy.
absl::Status CheckSizes(size_t keys, size_t row_ids) {
  if (keys != row_ids) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected one row id per key: %d keys, %d row ids", keys, row_ids));
  }
  if (keys > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a run has at most %d entries, found %d", kMaxEntries, keys));
  }
  return absl::OkStatus();
}

template <typename Key>
absl::StatusOr<SortedRun> CopyFixedWidth(absl::Span<const Key> keys,
                                         absl::Span<const RowId> row_ids) try {
  RETURN_IF_ERROR(CheckSizes(keys.size(), row_ids.size()));
  SortedRun run = CopyRun(SortedRun::Wrap(keys, row_ids, nullptr), 1);
  RETURN_IF_ERROR(run.CheckOrder());
  return run;
} catch (...) {
  return StatusOfException("copying a run");
}

}  // namespace

absl::StatusOr<SortedRun> SortedRun::FromSorted(absl::Span<const uint32_t> keys,
                                                absl::Span<const RowId> row_ids) {
  return CopyFixedWidth(keys, row_ids);
}

absl::StatusOr<SortedRun> SortedRun::FromSorted(absl::Span<const uint64_t> keys,
                                                absl::Span<const RowId> row_ids) {
  return CopyFixedWidth(keys, row_ids);
}

absl::StatusOr<SortedRun> SortedRun::FromSorted(absl::Span<const std::string_view> keys,
                                                absl::Span<const RowId> row_ids) try {
  RETURN_IF_ERROR(CheckSizes(keys.size(), row_ids.size()));
  struct Columns {
    AlignedBuffer<char> heap;
    AlignedBuffer<uint64_t> offsets;
    AlignedBuffer<RowId> row_ids;
  };
  uint64_t bytes = 0;
  for (std::string_view key : keys) bytes += key.size();
  Columns columns{AlignedBuffer<char>(bytes), AlignedBuffer<uint64_t>(keys.size() + 1),
                  AlignedBuffer<RowId>(row_ids.size())};
  std::copy(row_ids.begin(), row_ids.end(), columns.row_ids.begin());
  uint64_t offset = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    columns.offsets[i] = offset;
    if (!keys[i].empty()) std::memcpy(columns.heap.data() + offset, keys[i].data(), keys[i].size());
    offset += keys[i].size();
  }
  columns.offsets[keys.size()] = offset;
  auto owner = std::make_shared<const Columns>(std::move(columns));
  SortedRun run =
      Wrap(BytesColumn(owner->heap.data(), owner->offsets.span()), owner->row_ids.span(), owner);
  RETURN_IF_ERROR(run.CheckOrder());
  return run;
} catch (...) {
  return StatusOfException("copying a run");
}

SortedRun SortedRun::Wrap(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids,
                          std::shared_ptr<const void> owner) {
  SortedRun run;
  run.kind_ = PhysicalType::kU32;
  run.keys_ = keys.data();
  run.row_ids_ = row_ids;
  run.owner_ = std::move(owner);
  return run;
}

SortedRun SortedRun::Wrap(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids,
                          std::shared_ptr<const void> owner) {
  SortedRun run;
  run.kind_ = PhysicalType::kU64;
  run.keys_ = keys.data();
  run.row_ids_ = row_ids;
  run.owner_ = std::move(owner);
  return run;
}

SortedRun SortedRun::Wrap(const BytesColumn& keys, absl::Span<const RowId> row_ids,
                          std::shared_ptr<const void> owner) {
  SortedRun run;
  run.kind_ = PhysicalType::kBytes;
  run.bytes_ = keys;
  run.row_ids_ = row_ids;
  run.owner_ = std::move(owner);
  return run;
}

absl::Status SortedRun::CheckOrder() const {
  const std::optional<size_t> entry = FirstOutOfOrder(*this);
  if (!entry.has_value()) return absl::OkStatus();
  const size_t i = *entry;
  const bool one_key =
      WithColumn(*this, [i](const auto& column) { return column[i - 1] == column[i]; });
  if (!one_key) {
    return absl::InvalidArgumentError(
        absl::StrFormat("entries %d and %d are not in key order", i - 1, i));
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "entries %d and %d have the same key, but their row ids %d and %d do not ascend", i - 1, i,
      row_ids_[i - 1], row_ids_[i]));
}

uint64_t SortedRun::memory_bytes() const {
  const uint64_t rows = size() * sizeof(RowId);
  switch (kind_) {
    case PhysicalType::kU32:
      return rows + size() * sizeof(uint32_t);
    case PhysicalType::kU64:
      return rows + size() * sizeof(uint64_t);
    case PhysicalType::kBytes:
      return rows + (size() == 0 ? 0 : bytes_.offset(size())) +
             (size() + 1) * (bytes_.offsets32() != nullptr ? 4 : 8);
  }
  return rows;
}

}  // namespace cairn
