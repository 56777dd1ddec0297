#include "cairn/secondary_index.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/build/index_builder.h"
#include "engine/serve/catch_up.h"
#include "engine/serve/open_index.h"
#include "engine/version/distinct_rows.h"
#include "engine/version/fetch.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"
#include "engine/version/verify.h"
#include "engine/version/verify_source.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

// Each query gets the current version from the writer, or the pinned one, and executes on it: on
// the base, or on base and delta if there are changes.
class OpenIndex final : public SecondaryIndex {
 public:
  explicit OpenIndex(std::shared_ptr<const IndexVersion> pinned) : pinned_(std::move(pinned)) {}
  explicit OpenIndex(std::shared_ptr<IndexWriter> writer)
      : writer_(std::move(writer)),
        spec_(writer_->version()->spec()),
        codec_(writer_->version()->base->codec) {}

  const IndexSpec& spec() const override { return pinned_ != nullptr ? pinned_->spec() : *spec_; }
  const KeyCodec& codec() const override {
    return pinned_ != nullptr ? pinned_->base->codec : *codec_;
  }
  SequenceNumber sequence() const override { return version()->sequence; }

  absl::Status Execute(const Batch& batch) const override {
    std::fill(batch.shards.begin(), batch.shards.end(), 0);
    return Guarded("answering a batch", [&] {
      const auto at = version();
      return at->Execute(batch, at->base->options.threads);
    });
  }
  absl::Duration PredictedTime(Operation operation, size_t queries) const override {
    return version()->base->router->router().PredictedTime(operation, queries);
  }
  size_t BestBatch(Operation operation) const override {
    return version()->base->router->router().BestBatch(operation);
  }

  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const QueryOptions& options) const override {
    RETURN_IF_ERROR(StopCondition::Of(options).Check());
    return Guarded("pinning an index",
                   [&]() -> absl::StatusOr<std::shared_ptr<const SecondaryIndex>> {
                     return OverVersion(version());
                   });
  }
  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids,
                           StringList* primary_keys) const override {
    return Guarded("reading primary keys",
                   [&] { return version()->delta->PrimaryKeys(row_ids, primary_keys); });
  }
  using SecondaryIndex::PrimaryKeys;
  absl::Status Columns(absl::Span<const RowId> row_ids, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    return Guarded("reading included columns",
                   [&] { return version()->Columns(row_ids, names, columns); });
  }
  using SecondaryIndex::Columns;
  absl::Status AggregateRanges(const RangeBatch& ranges, absl::Span<const Aggregate> aggregates,
                               std::vector<ColumnValues>* values,
                               const QueryOptions& options) const override {
    return Guarded("computing aggregates", [&] {
      return version()->AggregateRanges(ranges, aggregates, threads(), StopCondition::Of(options),
                                        values);
    });
  }
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                               AggregateGroupsResult* groups) const override {
    return Guarded("computing aggregates of groups", [&] {
      return version()->AggregateGroups(ranges, leading_parts, aggregates, options, threads(),
                                        groups);
    });
  }
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchResult* rows) const override;
  absl::Status Verify(const QueryOptions& options) const override;
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                             std::vector<std::string>* differences,
                             const QueryOptions& options) const override;
  absl::StatusOr<IndexStats> Stats() const override;

  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source,
                                        const CatchUpOptions& options) override {
    if (writer_ == nullptr) return IsPinned();
    return Guarded("catching up", [&] { return cairn::CatchUp(source, options, writer_.get()); });
  }
  absl::Status Compact(const CompactOptions& options) override {
    if (writer_ == nullptr) return IsPinned();
    return Guarded("merging", [&] { return writer_->Compact(options); });
  }
  bool ShouldCompact() const override { return writer_ != nullptr && writer_->ShouldCompact(); }

  int threads() const { return version()->base->options.threads; }
  std::shared_ptr<const IndexVersion> version() const {
    return pinned_ != nullptr ? pinned_ : writer_->version();
  }

 private:
  static absl::Status IsPinned() {
    return absl::FailedPreconditionError("a pinned version of an index cannot be changed");
  }

  const std::shared_ptr<IndexWriter> writer_;
  const std::shared_ptr<const IndexVersion> pinned_;
  // The spec of all versions. Set only over a writer, since its versions may be freed.
  const std::optional<IndexSpec> spec_;
  const std::optional<KeyCodec> codec_;
};

absl::Status OpenIndex::Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                              const QueryOptions& options, FetchResult* rows) const try {
  const auto at = version();
  RETURN_IF_ERROR(CheckSameDatabase(*at->base, source));
  FindResult matches;
  RETURN_IF_ERROR(ScanDistinctRows(
      absl::MakeConstSpan(&at, 1), /*by_source=*/false,
      [&](const Batch& batch) { return at->Execute(batch, at->base->options.threads); }, ranges,
      options, &matches));
  RETURN_IF_ERROR(FetchRows(*at, source, ranges, matches, StopCondition::Of(options), rows));
  rows->cursors = std::move(matches.cursors);
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("fetching rows");
}

absl::Status OpenIndex::Verify(const QueryOptions& query) const try {
  const StopCondition stop = StopCondition::Of(query);
  RETURN_IF_ERROR(stop.Check());
  // Reads from disk again, since the mapped files may have been opened without verifying checksums.
  const auto at = version();
  OpenOptions options = at->base->options;
  options.verify = VerifyLevel::kFull;
  ASSIGN_OR_RETURN(std::unique_ptr<IndexWriter> opened,
                   IndexWriter::Open(at->base->directory, options));
  return VerifyStructure(*opened->version()->base, stop);
} catch (...) {
  return StatusOfException("verifying an index");
}

absl::Status OpenIndex::VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                                      std::vector<std::string>* differences,
                                      const QueryOptions& options) const try {
  const auto at = version();
  RETURN_IF_ERROR(CheckSameDatabase(*at->base, source));
  return VerifyAgainstSource(*at, source, Topology::Get().Threads(threads()), max_differences,
                             StopCondition::Of(options), differences);
} catch (...) {
  return StatusOfException("comparing an index with its database");
}

absl::StatusOr<IndexStats> OpenIndex::Stats() const try {
  return StatsOf(*version());
} catch (...) {
  return StatusOfException("counting what an index holds");
}

// Rows as shards and row ids within them.
struct NarrowRows {
  explicit NarrowRows(absl::Span<const GlobalRowId> rows) {
    shards.reserve(rows.size());
    row_ids.reserve(rows.size());
    for (const GlobalRowId row : rows) {
      shards.push_back(ShardOf(row));
      row_ids.push_back(RowInShard(row));
    }
  }
  std::vector<uint32_t> shards;
  std::vector<RowId> row_ids;
};

// Checks that rows of an unsharded index have no other shard than 0.
absl::Status CheckIsShard0(absl::Span<const uint32_t> shards, size_t rows) {
  if (!shards.empty()) RETURN_IF_ERROR(CheckOutput(rows, shards.size(), "shards"));
  if (std::all_of(shards.begin(), shards.end(), [](uint32_t shard) { return shard == 0; })) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      "expected rows of shard 0 of an unsharded index, found another shard");
}

}  // namespace

IndexStats StatsOf(const IndexVersion& version) {
  const Base& base = *version.base;
  const DeltaStats delta = version.delta->Stats();
  IndexStats stats;
  stats.rows = delta.rows;
  stats.entries = delta.entries;
  stats.distinct_keys = base.run_file.properties.distinct_keys;
  stats.sequence = version.sequence;
  stats.version = base.manifest.version;
  stats.database_id = base.manifest.database_id;
  for (const ResidentIndex& resident : base.resident.indexes) {
    const OrderedIndex& index = *resident.index;
    stats.ordered_indexes.push_back(
        {index.description(), index.memory_bytes(), index.huge_page_bytes(), index.mapped_bytes()});
  }
  stats.fallback = base.resident.fallback;
  stats.routes = base.router->router().Stats();
  stats.delta = {delta.new_rows, delta.added_entries, delta.removed_entries, delta.segments,
                 delta.bytes};
  stats.aggregates = base.aggregates->Stats();
  for (const auto& [file, prefix] :
       {std::pair{&base.run_file.file, "base"}, std::pair{&base.rows_file.file, "rows"}}) {
    for (const Section& section : file->sections()) {
      stats.sections.push_back(
          {base.manifest.FindFile(prefix)->name, file->SectionName(section.id), section.size});
    }
  }
  if (base.columns_file.has_value()) {
    const SectionFile& file = base.columns_file->file;
    for (const Section& section : file.sections()) {
      stats.sections.push_back(
          {base.manifest.FindFile("columns")->name, file.SectionName(section.id), section.size});
    }
  }
  for (const ManifestFile& file : base.manifest.files) {
    if (absl::StartsWith(file.name, "delta-")) {
      stats.sections.push_back({file.name, "changes", file.size});
    }
  }
  return stats;
}

std::shared_ptr<const IndexVersion> VersionOf(const SecondaryIndex& index) {
  const auto* const open = dynamic_cast<const OpenIndex*>(&index);
  return open == nullptr ? nullptr : open->version();
}

int ThreadsOf(const SecondaryIndex& index) {
  const auto* const open = dynamic_cast<const OpenIndex*>(&index);
  return open == nullptr ? 0 : open->threads();
}

std::unique_ptr<SecondaryIndex> OverWriter(std::shared_ptr<IndexWriter> writer) {
  return std::make_unique<OpenIndex>(std::move(writer));
}

std::unique_ptr<SecondaryIndex> OverVersion(std::shared_ptr<const IndexVersion> version) {
  return std::make_unique<OpenIndex>(std::move(version));
}

absl::StatusOr<std::vector<BuildReport>> SecondaryIndex::BuildAll(
    const SnapshotSource& source, absl::Span<const BuildTarget> targets,
    const BuildOptions& options) try {
  return BuildIndexes(source, targets, options);
} catch (...) {
  return StatusOfException("building indexes");
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> SecondaryIndex::Build(
    const SnapshotSource& source, const IndexSpec& spec, const std::string& directory,
    const BuildOptions& options) try {
  const BuildTarget target{spec, directory};
  absl::StatusOr<std::vector<BuildReport>> reports =
      BuildIndexes(source, absl::MakeConstSpan(&target, 1), options);
  if (!reports.ok()) return reports.status();
  OpenOptions open;
  open.verify = VerifyLevel::kMetadata;  // just written
  open.threads = options.threads;
  open.file_system = options.file_system;
  return Open(directory, open);
} catch (...) {
  return StatusOfException("building an index");
}

PhysicalType SecondaryIndex::kind() const {
  return codec().kind();
}

absl::Status SecondaryIndex::PrimaryKeys(absl::Span<const uint32_t> shards,
                                         absl::Span<const RowId> row_ids,
                                         StringList* primary_keys) const {
  RETURN_IF_ERROR(CheckIsShard0(shards, row_ids.size()));
  return PrimaryKeys(row_ids, primary_keys);
}

absl::Status SecondaryIndex::Columns(absl::Span<const uint32_t> shards,
                                     absl::Span<const RowId> row_ids,
                                     absl::Span<const std::string> names,
                                     std::vector<ColumnValues>* columns) const {
  RETURN_IF_ERROR(CheckIsShard0(shards, row_ids.size()));
  return Columns(row_ids, names, columns);
}

absl::Status SecondaryIndex::PrimaryKeysOf(absl::Span<const GlobalRowId> rows,
                                           StringList* primary_keys) const {
  return Guarded("reading primary keys", [&] {
    const NarrowRows narrow(rows);
    return PrimaryKeys(narrow.shards, narrow.row_ids, primary_keys);
  });
}

absl::Status SecondaryIndex::ColumnsOf(absl::Span<const GlobalRowId> rows,
                                       absl::Span<const std::string> names,
                                       std::vector<ColumnValues>* columns) const {
  return Guarded("reading included columns", [&] {
    const NarrowRows narrow(rows);
    return Columns(narrow.shards, narrow.row_ids, names, columns);
  });
}

absl::Status SecondaryIndex::PrimaryKeysOf(const FindResult& matches,
                                           StringList* primary_keys) const {
  return PrimaryKeys(matches.shards, matches.row_ids, primary_keys);
}

}  // namespace cairn
