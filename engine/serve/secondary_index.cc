#include "cairn/secondary_index.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "engine/build/index_builder.h"
#include "engine/serve/catch_up.h"
#include "engine/serve/open_index.h"
#include "engine/version/base.h"
#include "engine/version/fetch.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"
#include "engine/version/verify.h"
#include "engine/version/verify_source.h"
#include "engine/version/versioned_search.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Each query takes the version of its moment from the writer, or the one that was pinned, and
// answers from that: from the base alone, or from base and delta where something has come since.
class OpenIndex final : public SecondaryIndex {
 public:
  // One of `writer` and `pinned` is null.
  OpenIndex(std::shared_ptr<IndexWriter> writer, std::shared_ptr<const IndexVersion> pinned,
            const OpenOptions& options)
      : writer_(std::move(writer)),
        pinned_(std::move(pinned)),
        options_(options),
        spec_(version()->spec()),
        codec_(version()->base->base().codec) {}

  const IndexSpec& spec() const override { return spec_; }
  const KeyCodec& codec() const override { return codec_; }
  SequenceNumber sequence() const override { return version()->sequence; }

  absl::Status Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const override {
    return Guarded("finding keys", [&] {
      const auto at = version();
      return at->delta->empty() ? at->base->Find(keys, options, matches)
                                : Search(*at).Find(keys, options, matches);
    });
  }
  absl::Status FindFirst(KeyBatch keys, const QueryOptions& options,
                         absl::Span<RowId> row_ids) const override {
    return Guarded("finding keys", [&] {
      const auto at = version();
      return at->delta->empty() ? at->base->FindFirst(keys, options, row_ids)
                                : Search(*at).FindFirst(keys, options, row_ids);
    });
  }
  absl::Status Contains(KeyBatch keys, const QueryOptions& options,
                        absl::Span<bool> found) const override {
    return Guarded("looking for keys", [&] {
      const auto at = version();
      return at->delta->empty() ? at->base->Contains(keys, options, found)
                                : Search(*at).Contains(keys, options, found);
    });
  }
  absl::Status Count(const RangeBatch& ranges, const QueryOptions& options,
                     absl::Span<uint64_t> counts) const override {
    return Guarded("counting entries", [&] {
      const auto at = version();
      return at->delta->empty() ? at->base->Count(ranges, options, counts)
                                : Search(*at).Count(ranges, options, counts);
    });
  }
  absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options,
                    Matches* matches) const override {
    return Guarded("scanning ranges", [&] { return ScanAt(*version(), ranges, options, matches); });
  }
  absl::Duration PredictedTime(Operation operation, size_t queries) const override {
    return version()->base->router().PredictedTime(operation, queries);
  }
  size_t BestBatch(Operation operation) const override {
    return version()->base->router().BestBatch(operation);
  }

  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids,
                           PrimaryKeyColumn* primary_keys) const override {
    return Guarded("reading primary keys",
                   [&] { return version()->delta->PrimaryKeys(row_ids, primary_keys); });
  }
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchedRows* rows) const override;
  absl::Status Verify() const override;
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t most,
                             std::vector<std::string>* differences) const override;
  absl::StatusOr<IndexStats> Stats() const override;

  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source,
                                        const CatchUpOptions& options) override {
    if (writer_ == nullptr) return IsPinned();
    return Guarded("catching up", [&] { return cairn::CatchUp(source, options, writer_.get()); });
  }
  absl::Status Merge(const MergeOptions& options) override {
    if (writer_ == nullptr) return IsPinned();
    return Guarded("merging", [&] { return writer_->Merge(options); });
  }
  bool MergePays() const override { return writer_ != nullptr && writer_->MergePays(); }

 private:
  std::shared_ptr<const IndexVersion> version() const {
    return pinned_ != nullptr ? pinned_ : writer_->version();
  }
  static absl::Status IsPinned() {
    return absl::FailedPreconditionError("a pinned version of an index stays what it is");
  }
  VersionedSearch Search(const IndexVersion& at) const {
    return VersionedSearch(*at.delta, *at.base,
                           Parallelism{Topology::Get().Threads(options_.threads)});
  }
  absl::Status ScanAt(const IndexVersion& at, const RangeBatch& ranges, const QueryOptions& options,
                      Matches* matches) const;

  const std::shared_ptr<IndexWriter> writer_;
  const std::shared_ptr<const IndexVersion> pinned_;
  const OpenOptions options_;
  const IndexSpec spec_;  // of every version
  const KeyCodec codec_;
};

absl::Status OpenIndex::ScanAt(const IndexVersion& at, const RangeBatch& ranges,
                               const QueryOptions& options, Matches* matches) const {
  // Cursors name rows of any version, so they are read where these are known.
  const bool in_pages = options.limit != QueryOptions().limit || !ranges.after.empty();
  if (in_pages || !at.delta->empty()) return Search(at).Scan(ranges, options, matches);
  return at.base->Scan(ranges, options, matches);
}

absl::Status OpenIndex::Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                              const QueryOptions& options, FetchedRows* rows) const try {
  const auto at = version();
  RETURN_IF_ERROR(CheckSameDatabase(at->base->base(), source));
  Matches matches;
  RETURN_IF_ERROR(ScanAt(*at, ranges, options, &matches));
  RETURN_IF_ERROR(FetchRows(*at, source, ranges, matches, rows));
  rows->cursors = std::move(matches.cursors);
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("fetching rows");
}

absl::Status OpenIndex::Verify() const try {
  // Once more from the disk: what is mapped was perhaps opened without looking at the checksums.
  OpenOptions options = options_;
  options.verify = VerifyLevel::kFull;
  ASSIGN_OR_RETURN(std::unique_ptr<IndexWriter> opened,
                   IndexWriter::Open(version()->base->base().directory, options));
  return VerifyStructure(opened->version()->base->base());
} catch (...) {
  return StatusOfException("verifying an index");
}

absl::Status OpenIndex::VerifyAgainst(const SnapshotSource& source, size_t most,
                                      std::vector<std::string>* differences) const try {
  const auto at = version();
  RETURN_IF_ERROR(CheckSameDatabase(at->base->base(), source));
  return VerifyAgainstSource(*at, source, Topology::Get().Threads(options_.threads), most,
                             differences);
} catch (...) {
  return StatusOfException("comparing an index with its database");
}

absl::StatusOr<IndexStats> OpenIndex::Stats() const try {
  const auto at = version();
  const Base& base = at->base->base();
  const DeltaStats delta = at->delta->Stats();
  IndexStats stats;
  stats.rows = delta.rows;
  stats.entries = delta.entries;
  stats.distinct_keys = base.run_file.properties.distinct_keys;
  stats.sequence = at->sequence;
  stats.version = base.manifest.version;
  stats.database_id = base.manifest.database_id;
  for (const ResidentIndex& resident : base.resident.indexes) {
    const OrderedIndex& index = *resident.index;
    stats.ordered_indexes.push_back(
        {index.description(), index.memory_bytes(), index.huge_page_bytes()});
  }
  stats.fallback = base.resident.fallback;
  stats.routes = at->base->router().Stats();
  stats.delta = {delta.new_rows, delta.added_entries, delta.removed_entries, delta.segments,
                 delta.bytes};
  for (const auto& [file, prefix] :
       {std::pair{&base.run_file.file, "base"}, std::pair{&base.rows_file.file, "rows"}}) {
    for (const Section& section : file->sections()) {
      stats.sections.push_back(
          {base.manifest.FindFile(prefix)->name, file->SectionName(section.id), section.size});
    }
  }
  for (const ManifestFile& file : base.manifest.files) {
    if (absl::StartsWith(file.name, "delta-")) {
      stats.sections.push_back({file.name, "changes", file.size});
    }
  }
  return stats;
} catch (...) {
  return StatusOfException("counting what an index holds");
}

}  // namespace

std::unique_ptr<SecondaryIndex> OverWriter(std::shared_ptr<IndexWriter> writer,
                                           const OpenOptions& options) {
  return std::make_unique<OpenIndex>(std::move(writer), nullptr, options);
}

std::unique_ptr<SecondaryIndex> OverVersion(std::shared_ptr<const IndexVersion> version,
                                            const OpenOptions& options) {
  return std::make_unique<OpenIndex>(nullptr, std::move(version), options);
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> SecondaryIndex::Open(
    const std::string& directory, const OpenOptions& options) try {
  ASSIGN_OR_RETURN(std::unique_ptr<IndexWriter> writer, IndexWriter::Open(directory, options));
  return OverWriter(std::move(writer), options);
} catch (...) {
  return StatusOfException("opening an index");
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

}  // namespace cairn
