#include "cairn/secondary_index.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cpu_fast/parallel_batch.h"
#include "engine/base.h"
#include "engine/fetch.h"
#include "engine/index_builder.h"
#include "engine/scan_cursor.h"
#include "engine/verify.h"
#include "index/match_rows.h"
#include "index/topology.h"

namespace cairn {
namespace {

// Answers from one base. What a query does beyond the ordered index is written here: cursors,
// primary keys and rows.
class BaseIndex : public SecondaryIndex {
 public:
  BaseIndex(std::shared_ptr<const Base> base, const OpenOptions& options)
      : base_(std::move(base)), options_(options) {
    // A GPU takes a batch as a whole.
    parallelism_.threads = base_->on_gpu ? 1 : Topology::Get().Threads(options.threads);
  }

  const IndexSpec& spec() const override { return base_->spec; }
  const KeyCodec& codec() const override { return base_->codec; }
  SequenceNumber sequence() const override { return base_->manifest.sequence; }

  absl::Status Find(KeyBatch keys, Matches* matches) const override {
    return cairn::Find(*base_->index, keys, matches, parallelism_);
  }
  absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const override {
    return cairn::FindFirst(*base_->index, keys, row_ids, parallelism_);
  }
  absl::Status Contains(KeyBatch keys, absl::Span<bool> found) const override {
    return cairn::Contains(*base_->index, keys, found, parallelism_);
  }
  absl::Status Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const override {
    return cairn::Count(*base_->index, ranges, counts, parallelism_);
  }
  absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options,
                    Matches* matches) const override;
  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids,
                           PrimaryKeyColumn* primary_keys) const override {
    return base_->rows().PrimaryKeys(row_ids, primary_keys);
  }
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchedRows* rows) const override;
  absl::Status Verify() const override;
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t most,
                             std::vector<std::string>* differences) const override;
  absl::StatusOr<IndexStats> Stats() const override;

 private:
  // Moves one end of range i to behind the entry that its cursor names.
  absl::Status GoOn(std::string_view cursor, Order order, Position* begin, Position* end) const;
  // The cursor behind the entry at `position`.
  absl::StatusOr<std::string> CursorBehind(Position position) const;

  const std::shared_ptr<const Base> base_;
  const OpenOptions options_;
  Parallelism parallelism_;  // of large batches
};

absl::Status BaseIndex::Scan(const RangeBatch& ranges, const QueryOptions& options,
                             Matches* matches) const {
  const bool pages = options.limit != QueryOptions().limit;
  if (!pages && ranges.after.empty()) {
    return cairn::Scan(*base_->index, ranges, options, matches, parallelism_);
  }
  if (!ranges.after.empty() && ranges.after.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d cursors for %d ranges", ranges.after.size(), ranges.size()));
  }

  std::vector<Position> begin(ranges.size()), end(ranges.size());
  if (absl::Status s = base_->index->Positions(ranges, absl::MakeSpan(begin), absl::MakeSpan(end));
      !s.ok()) {
    return s;
  }
  for (size_t i = 0; i < ranges.after.size(); ++i) {
    if (ranges.after[i].empty()) continue;
    if (absl::Status s = GoOn(ranges.after[i], options.order, &begin[i], &end[i]); !s.ok())
      return s;
  }
  if (absl::Status s = BeginMatches(base_->run().kind(), ranges.size(), matches); !s.ok()) return s;
  if (absl::Status s = AppendRows(base_->run(), options, 0, begin, end, matches); !s.ok()) return s;
  matches->cursors.assign(ranges.size(), "");
  for (size_t i = 0; i < ranges.size(); ++i) {
    const uint64_t size = end[i] - begin[i];
    if (size <= options.limit || options.limit == 0) continue;
    const Position last = options.order == Order::kAscending
                              ? static_cast<Position>(begin[i] + options.limit - 1)
                              : static_cast<Position>(end[i] - options.limit);
    absl::StatusOr<std::string> cursor = CursorBehind(last);
    if (!cursor.ok()) return cursor.status();
    matches->cursors[i] = *std::move(cursor);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BaseIndex::CursorBehind(Position position) const {
  const SortedRun& run = base_->run();
  PrimaryKeyColumn primary_key;
  if (absl::Status s = base_->rows().PrimaryKeys({run.row_ids()[position]}, &primary_key);
      !s.ok()) {
    return s;
  }
  ScanCursor cursor;
  cursor.kind = run.kind();
  cursor.primary_key = primary_key[0];
  switch (run.kind()) {
    case KeyKind::kU32:
      cursor.number = run.u32()[position];
      break;
    case KeyKind::kU64:
      cursor.number = run.u64()[position];
      break;
    case KeyKind::kBytes:
      cursor.bytes = run.bytes()[position];
      break;
  }
  return cursor.Encode();
}

absl::Status BaseIndex::GoOn(std::string_view text, Order order, Position* begin,
                             Position* end) const {
  const SortedRun& run = base_->run();
  absl::StatusOr<ScanCursor> cursor = ScanCursor::Decode(text, run.kind());
  if (!cursor.ok()) return cursor.status();
  KeyColumn key(run.kind());
  switch (run.kind()) {
    case KeyKind::kU32:
      key.AppendU32(static_cast<uint32_t>(cursor->number));
      break;
    case KeyKind::kU64:
      key.AppendU64(cursor->number);
      break;
    case KeyKind::kBytes:
      key.AppendBytes(cursor->bytes);
      break;
  }
  Position lower, upper;
  if (absl::Status s = base_->index->Positions(
          RangeBatch::Equal(key.Batch()), absl::MakeSpan(&lower, 1), absl::MakeSpan(&upper, 1));
      !s.ok()) {
    return s;
  }
  // The row itself may be gone since: its place among the rows is what counts.
  absl::StatusOr<RowId> row = base_->rows().LowerBound(cursor->primary_key);
  if (!row.ok()) return row.status();
  absl::StatusOr<RowId> same_row = base_->rows().Find(cursor->primary_key);
  if (!same_row.ok()) return same_row.status();
  const RowId* const rows = run.row_ids().data();
  const RowId* place = std::lower_bound(rows + lower, rows + upper, *row);
  if (order == Order::kDescending) {
    *end = std::max(*begin, std::min(*end, static_cast<Position>(place - rows)));
    return absl::OkStatus();
  }
  if (place != rows + upper && *place == *same_row) ++place;
  *begin = std::min(*end, std::max(*begin, static_cast<Position>(place - rows)));
  return absl::OkStatus();
}

absl::Status BaseIndex::Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                              const QueryOptions& options, FetchedRows* rows) const {
  if (absl::Status s = CheckSameDatabase(*base_, source); !s.ok()) return s;
  Matches matches;
  if (absl::Status s = Scan(ranges, options, &matches); !s.ok()) return s;
  return FetchRows(*base_, source, ranges, matches, rows);
}

absl::Status BaseIndex::Verify() const {
  // Once more from the disk: what is mapped was perhaps opened without looking at the checksums.
  OpenOptions options = options_;
  options.verify = VerifyLevel::kFull;
  absl::StatusOr<std::shared_ptr<const Base>> base = Base::Open(base_->directory, options);
  if (!base.ok()) return base.status();
  return VerifyStructure(**base);
}

absl::Status BaseIndex::VerifyAgainst(const SnapshotSource& source, size_t most,
                                      std::vector<std::string>* differences) const {
  if (absl::Status s = CheckSameDatabase(*base_, source); !s.ok()) return s;
  return VerifyAgainstSource(*base_, source, parallelism_.threads, most, differences);
}

absl::StatusOr<IndexStats> BaseIndex::Stats() const {
  IndexStats stats;
  stats.rows = base_->manifest.rows;
  stats.entries = base_->manifest.entries;
  stats.distinct_keys = base_->run_file.properties.distinct_keys;
  stats.sequence = base_->manifest.sequence;
  stats.version = base_->manifest.version;
  stats.database_id = base_->manifest.database_id;
  stats.ordered_index = base_->index->description();
  stats.ordered_index_bytes = base_->index->memory_bytes();
  stats.ordered_index_huge_page_bytes = base_->index->huge_page_bytes();
  stats.fallback = base_->fallback;
  for (const auto& [file, prefix] :
       {std::pair{&base_->run_file.file, "base"}, std::pair{&base_->rows_file.file, "rows"}}) {
    for (const Section& section : file->sections()) {
      stats.sections.push_back(
          {base_->manifest.FindFile(prefix)->name, file->SectionName(section.id), section.size});
    }
  }
  return stats;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SecondaryIndex>> SecondaryIndex::Open(const std::string& directory,
                                                                     const OpenOptions& options) {
  absl::StatusOr<std::shared_ptr<const Base>> base = Base::Open(directory, options);
  if (!base.ok()) return base.status();
  return std::make_unique<BaseIndex>(*std::move(base), options);
}

absl::StatusOr<std::vector<BuildReport>> SecondaryIndex::BuildAll(
    const SnapshotSource& source, absl::Span<const BuildTarget> targets,
    const BuildOptions& options) {
  return BuildIndexes(source, targets, options);
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> SecondaryIndex::Build(const SnapshotSource& source,
                                                                      const IndexSpec& spec,
                                                                      const std::string& directory,
                                                                      const BuildOptions& options) {
  const BuildTarget target{spec, directory};
  absl::StatusOr<std::vector<BuildReport>> reports =
      BuildIndexes(source, absl::MakeConstSpan(&target, 1), options);
  if (!reports.ok()) return reports.status();
  OpenOptions open;
  open.verify = VerifyLevel::kMetadata;  // just written
  open.threads = options.threads;
  return Open(directory, open);
}

}  // namespace cairn
