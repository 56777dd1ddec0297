// SortedRun::FromUnsorted.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/key_codec.h"
#include "cairn/sorted_run.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/sort/sort.h"

namespace cairn {
namespace {

// Returns the row of keys[i], where there are `keys` keys.
class RowsOf {
 public:
  static absl::StatusOr<RowsOf> Check(size_t keys, absl::Span<const RowId> row_ids) {
    if (keys > kMaxEntries) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a run has at most %d entries, found %d", kMaxEntries, keys));
    }
    if (!row_ids.empty() && row_ids.size() != keys) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "expected one row id per key: %d keys, %d row ids", keys, row_ids.size()));
    }
    for (size_t i = 0; i < row_ids.size(); ++i) {
      if (row_ids[i] == kNoRow) {
        return absl::InvalidArgumentError(
            absl::StrFormat("row id %d: expected less than %d, which means no row", i, kNoRow));
      }
    }
    return RowsOf(row_ids);
  }
  RowId operator[](size_t i) const {
    return row_ids_.empty() ? static_cast<RowId>(i) : row_ids_[i];
  }

 private:
  explicit RowsOf(absl::Span<const RowId> row_ids) : row_ids_(row_ids) {}
  absl::Span<const RowId> row_ids_;
};

template <typename Entry>
absl::StatusOr<SortedRun> SortNumbers(absl::Span<const typename Entry::Key> keys,
                                      absl::Span<const RowId> row_ids, int threads) try {
  ASSIGN_OR_RETURN(const RowsOf rows, RowsOf::Check(keys.size(), row_ids));
  AlignedBuffer<Entry> entries(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) entries[i] = Entry::Make(keys[i], rows[i]);
  SortEntries(entries.span(), Topology::Get().Threads(threads));
  struct Columns {
    AlignedBuffer<typename Entry::Key> keys;
    AlignedBuffer<RowId> row_ids;
  };
  auto columns = std::make_shared<Columns>(
      Columns{AlignedBuffer<typename Entry::Key>(keys.size()), AlignedBuffer<RowId>(keys.size())});
  for (size_t i = 0; i < keys.size(); ++i) {
    columns->keys[i] = entries[i].key();
    columns->row_ids[i] = entries[i].row_id();
  }
  const Columns& made = *columns;
  SortedRun run = SortedRun::Wrap(made.keys.span(), made.row_ids.span(), std::move(columns));
  RETURN_IF_ERROR(run.CheckOrder());
  return run;
} catch (...) {
  return StatusOfException("sorting a run");
}

absl::StatusOr<SortedRun> SortStrings(absl::Span<const std::string_view> keys,
                                      absl::Span<const RowId> row_ids, int threads) try {
  ASSIGN_OR_RETURN(const RowsOf rows, RowsOf::Check(keys.size(), row_ids));
  uint64_t bytes = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].size() > KeyCodec::kMaxKeyBytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("key %d: expected at most %d bytes, found %d", i, KeyCodec::kMaxKeyBytes,
                          keys[i].size()));
    }
    bytes += keys[i].size();
  }
  struct Columns {
    AlignedBuffer<char> heap;
    AlignedBuffer<uint64_t> offsets;
    AlignedBuffer<RowId> row_ids;
  };
  auto columns = std::make_shared<Columns>(Columns{AlignedBuffer<char>(bytes),
                                                   AlignedBuffer<uint64_t>(keys.size() + 1),
                                                   AlignedBuffer<RowId>(keys.size())});
  {
    AlignedBuffer<char> records(bytes + keys.size() * KeyRecord::kHeaderBytes + KeyRecord::kSlack);
    AlignedBuffer<BytesEntry> entries(keys.size());
    char* record = records.data();
    for (size_t i = 0; i < keys.size(); ++i) {
      KeyRecord::Write(keys[i], rows[i], record);
      entries[i] = {record, 0};
      record += KeyRecord::Bytes(keys[i].size());
    }
    SortEntries(entries.span(), Topology::Get().Threads(threads));
    uint64_t offset = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string_view key = entries[i].key();
      columns->offsets[i] = offset;
      if (!key.empty()) std::memcpy(columns->heap.data() + offset, key.data(), key.size());
      offset += key.size();
      columns->row_ids[i] = entries[i].row_id();
    }
    columns->offsets[keys.size()] = offset;
  }
  const Columns& made = *columns;
  SortedRun run = SortedRun::Wrap(BytesColumn(made.heap.data(), made.offsets.span()),
                                  made.row_ids.span(), std::move(columns));
  RETURN_IF_ERROR(run.CheckOrder());
  return run;
} catch (...) {
  return StatusOfException("sorting a run");
}

}  // namespace

absl::StatusOr<SortedRun> SortedRun::FromUnsorted(absl::Span<const uint32_t> keys,
                                                  absl::Span<const RowId> row_ids, int threads) {
  return SortNumbers<Entry32>(keys, row_ids, threads);
}

absl::StatusOr<SortedRun> SortedRun::FromUnsorted(absl::Span<const uint64_t> keys,
                                                  absl::Span<const RowId> row_ids, int threads) {
  return SortNumbers<Entry64>(keys, row_ids, threads);
}

absl::StatusOr<SortedRun> SortedRun::FromUnsorted(absl::Span<const std::string_view> keys,
                                                  absl::Span<const RowId> row_ids, int threads) {
  return SortStrings(keys, row_ids, threads);
}

}  // namespace cairn
