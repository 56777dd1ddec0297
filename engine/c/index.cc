// Opens and describes indexes, and makes indexes over columns.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/version.h"
#include "engine/c/error.h"
#include "engine/c/handles.h"
#include "engine/c/json.h"
#include "engine/c/keys.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::StatusOr<OpenOptions> ReadOpenOptions(const cairn_open_options* given) {
  ASSIGN_OR_RETURN(const cairn_open_options read, ReadOptions(given, "options"));
  OpenOptions options;
  enum class Verify : int32_t { kFull = CAIRN_VERIFY_FULL, kMetadata = CAIRN_VERIFY_METADATA };
  Verify verify = Verify::kFull;
  RETURN_IF_ERROR(ReadEnum(read.verify, Verify::kMetadata, "verify", &verify));
  options.verify = verify == Verify::kFull ? VerifyLevel::kFull : VerifyLevel::kMetadata;
  RETURN_IF_ERROR(ReadEnum(read.device, SearchDevice::kAuto, "device", &options.device));
  RETURN_IF_ERROR(
      ReadEnum(read.calibration, Calibration::kStore, "calibration", &options.calibration));
  RETURN_IF_ERROR(ReadThreads(read.threads, &options.threads));
  options.host_memory_budget = read.host_memory_budget;
  options.device_memory_budget = read.device_memory_budget;
  if (read.structures_count > 0) RETURN_IF_ERROR(CheckNotNull(read.structures, "structures"));
  for (size_t i = 0; i < read.structures_count; ++i) {
    RETURN_IF_ERROR(CheckNotNull(read.structures[i], "structures"));
    options.ordered_indexes.emplace_back(read.structures[i]);
  }
  if (read.devices_count > 0) {
    RETURN_IF_ERROR(CheckNotNull(read.devices, "devices"));
    options.devices.assign(read.devices, read.devices + read.devices_count);
  }
  return options;
}

absl::Status DoOpen(const char* directory, const cairn_open_options* given, cairn_index** index) {
  RETURN_IF_ERROR(CheckNotNull(directory, "directory", index, "index"));
  ASSIGN_OR_RETURN(const OpenOptions options, ReadOpenOptions(given));
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> opened,
                   SecondaryIndex::Open(directory, options));
  KeyCodec codec = opened->codec();
  *index = new cairn_index(std::move(opened), std::move(codec));
  return absl::OkStatus();
}

absl::Status DoPin(const cairn_index* index, cairn_index** pinned) {
  RETURN_IF_ERROR(CheckOfDatabase(index));
  RETURN_IF_ERROR(CheckNotNull(pinned, "pinned"));
  ASSIGN_OR_RETURN(std::shared_ptr<const SecondaryIndex> version, index->secondary->Pin());
  // The pinned version rejects CatchUp and Merge, so the const_cast is safe.
  *pinned =
      new cairn_index(std::const_pointer_cast<SecondaryIndex>(std::move(version)), index->codec);
  return absl::OkStatus();
}

// The entries of an index over columns. Under NullPolicy::kSkip, a key with a null has no entry.
class ColumnEntries {
 public:
  absl::Status Read(const KeyCodec& codec, absl::Span<const ArrowColumn> columns,
                    const uint32_t* row_ids) {
    const size_t size = columns[0].size();
    const bool skips = codec.nulls() == NullPolicy::kSkip &&
                       std::any_of(columns.begin(), columns.end(), [](const ArrowColumn& column) {
                         return column.FirstNull() < column.size();
                       });
    if (skips) return ReadSkipping(codec, columns, row_ids);
    if (row_ids != nullptr) rows_.assign(row_ids, row_ids + size);
    RETURN_IF_ERROR(keys_.Encode(codec, columns));
    batch_ = keys_.batch();
    return absl::OkStatus();
  }

  absl::StatusOr<SortedRun> Sort(int threads) const {
    switch (batch_.kind()) {
      case PhysicalType::kU32:
        return SortedRun::FromUnsorted(batch_.u32(), rows_, threads);
      case PhysicalType::kU64:
        return SortedRun::FromUnsorted(batch_.u64(), rows_, threads);
      case PhysicalType::kBytes:
        break;
    }
    return SortedRun::FromUnsorted(batch_.bytes(), rows_, threads);
  }

 private:
  absl::Status ReadSkipping(const KeyCodec& codec, absl::Span<const ArrowColumn> columns,
                            const uint32_t* row_ids) {
    encoded_.Clear(codec.kind());
    std::vector<DataValue> values(columns.size());
    for (size_t i = 0; i < columns[0].size(); ++i) {
      bool has_null = false;
      for (size_t part = 0; part < columns.size(); ++part) {
        has_null = has_null || columns[part].IsNull(i);
        values[part] = columns[part].value(i);
      }
      if (has_null) continue;
      const absl::Status status = codec.Append(values, &encoded_);
      if (!status.ok()) return InKey(i, status);
      rows_.push_back(row_ids == nullptr ? static_cast<RowId>(i) : row_ids[i]);
    }
    batch_ = encoded_.Batch();
    return absl::OkStatus();
  }

  KeysIn keys_;
  EncodedKeys encoded_;
  std::vector<RowId> rows_;  // empty: the keys' positions
  KeyBatch batch_;
};

absl::Status DoMakeOfColumns(const ArrowSchema* schema, const ArrowArray* array,
                             const cairn_columns_options* given, cairn_index** index) {
  RETURN_IF_ERROR(CheckNotNull(index, "index"));
  ASSIGN_OR_RETURN(const cairn_columns_options options, ReadOptions(given, "options"));
  int threads = 0;
  RETURN_IF_ERROR(ReadThreads(options.threads, &threads));
  NullPolicy nulls = NullPolicy::kSkip;
  RETURN_IF_ERROR(ReadEnum(options.nulls, NullPolicy::kLast, "nulls", &nulls));
  ASSIGN_OR_RETURN(const std::vector<ArrowColumn> columns, ReadArrowColumns(schema, array));
  if (columns[0].size() > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected at most %d keys, found %d", kMaxEntries, columns[0].size()));
  }
  std::vector<DataType> parts;
  for (const ArrowColumn& column : columns) parts.push_back(column.type());
  ASSIGN_OR_RETURN(KeyCodec codec, KeyCodec::Create(parts, nulls));
  ColumnEntries entries;
  RETURN_IF_ERROR(entries.Read(codec, columns, options.row_ids));
  ASSIGN_OR_RETURN(SortedRun run, entries.Sort(threads));
  ASSIGN_OR_RETURN(std::unique_ptr<OrderedIndex> made,
                   MakeOrderedIndex(options.structure == nullptr ? "cpu:auto" : options.structure,
                                    std::move(run)));
  *index = new cairn_index(std::move(made), std::move(codec));
  return absl::OkStatus();
}

std::string DataTypes(const KeyCodec& codec) {
  return absl::StrJoin(codec.parts(), ",",
                       [](std::string* text, DataType type) { text->append(DataTypeName(type)); });
}

}  // namespace

absl::Status CheckOfDatabase(const cairn_index* index) {
  RETURN_IF_ERROR(CheckNotNull(index, "index"));
  if (index->secondary != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError("expected an index of a database, found one over columns");
}

}  // namespace cairn

const char* cairn_version(void) {
  return cairn::Version();
}

cairn_error* cairn_open(const char* directory, const cairn_open_options* options,
                        cairn_index** index) {
  return cairn::CFunction("opening an index",
                          [&] { return cairn::DoOpen(directory, options, index); });
}

cairn_error* cairn_index_from_columns(const ArrowSchema* schema, const ArrowArray* keys,
                                      const cairn_columns_options* options, cairn_index** index) {
  return cairn::CFunction("making an index",
                          [&] { return cairn::DoMakeOfColumns(schema, keys, options, index); });
}

cairn_error* cairn_pin(const cairn_index* index, cairn_index** pinned) {
  return cairn::CFunction("pinning an index", [&] { return cairn::DoPin(index, pinned); });
}

void cairn_close(cairn_index* index) {
  delete index;
}

bool cairn_in_shards(const cairn_index* index) {
  return index != nullptr && index->in_shards();
}

int32_t cairn_kind(const cairn_index* index) {
  return index == nullptr ? 0 : static_cast<int32_t>(index->codec.kind());
}

uint64_t cairn_sequence(const cairn_index* index) {
  return index == nullptr || index->secondary == nullptr ? 0 : index->secondary->sequence();
}

cairn_error* cairn_spec(const cairn_index* index, char** text) {
  return cairn::CFunction("describing an index", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(index, "index", text, "text"));
    *text = cairn::NewText(index->secondary != nullptr ? index->secondary->spec().ToString()
                                                       : cairn::DataTypes(index->codec));
    return absl::OkStatus();
  });
}

cairn_error* cairn_stats(const cairn_index* index, char** json) {
  return cairn::CFunction("describing an index", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(index, "index", json, "json"));
    cairn::IndexStats stats;
    if (index->secondary != nullptr) {
      ASSIGN_OR_RETURN(stats, index->secondary->Stats());
    } else {
      const cairn::OrderedIndex& ordered = *index->ordered;
      stats.entries = ordered.run().size();
      stats.ordered_indexes.push_back({ordered.description(), ordered.memory_bytes(),
                                       ordered.huge_page_bytes(), ordered.mapped_bytes()});
    }
    *json = cairn::NewText(cairn::ToJson(stats));
    return absl::OkStatus();
  });
}
