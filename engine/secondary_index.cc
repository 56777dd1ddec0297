#include "cairn/secondary_index.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "engine/base.h"
#include "engine/fetch.h"
#include "engine/index_builder.h"
#include "engine/index_router.h"
#include "engine/router.h"
#include "engine/scan_cursor.h"
#include "engine/verify.h"
#include "index/match_rows.h"
#include "index/topology.h"

namespace cairn {
namespace {

// The newest scan's part in what the next one is expected to find.
constexpr double kWeightOfLastScan = 0.25;

uint64_t BytesOf(const KeyBatch& keys) {
  if (keys.kind() != KeyKind::kBytes) {
    return keys.size() * (keys.kind() == KeyKind::kU32 ? sizeof(uint32_t) : sizeof(uint64_t));
  }
  uint64_t bytes = 0;
  for (std::string_view key : keys.bytes()) bytes += key.size();
  return bytes;
}

uint64_t BytesOf(const Matches& matches) {
  return matches.offsets.size() * sizeof(uint64_t) + matches.row_ids.size() * sizeof(RowId);
}

// Answers from one base. What a query does beyond the ordered index is written here: cursors,
// primary keys and rows.
class BaseIndex : public SecondaryIndex {
 public:
  BaseIndex(std::shared_ptr<const Base> base, const OpenOptions& options)
      : base_(std::move(base)),
        options_(options),
        threads_(Topology::Get().Threads(options.threads)),
        router_(std::make_unique<Router>(MakeRoutes(base_->resident, threads_))),
        calibration_(router_->routes(), base_->run(), threads_, base_->directory,
                     base_->manifest.version) {
    router_->SetCosts(calibration_.Get(options.calibration));
  }

  const IndexSpec& spec() const override { return base_->spec; }
  const KeyCodec& codec() const override { return base_->codec; }
  SequenceNumber sequence() const override { return base_->manifest.sequence; }

  absl::Status Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const override;
  absl::Status FindFirst(KeyBatch keys, const QueryOptions& options,
                         absl::Span<RowId> row_ids) const override;
  absl::Status Contains(KeyBatch keys, const QueryOptions& options,
                        absl::Span<bool> found) const override;
  absl::Status Count(const RangeBatch& ranges, const QueryOptions& options,
                     absl::Span<uint64_t> counts) const override;
  absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options,
                    Matches* matches) const override;
  absl::Duration PredictedTime(Operation operation, size_t queries) const override {
    return router_->PredictedTime(operation, queries);
  }
  size_t BestBatch(Operation operation) const override { return router_->BestBatch(operation); }
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
  // Has the router answer a batch, and makes new trials behind it where they are due.
  absl::Status Answer(const BatchShape& shape, const QueryOptions& options,
                      absl::FunctionRef<absl::StatusOr<uint64_t>(const Route&)> answer) const;
  // Rows that `keys` keys are expected to find, all of them.
  double ExpectedRows(size_t keys) const;
  // A scan of which each range ends at options.limit, or starts behind a cursor.
  absl::Status ScanPages(const OrderedIndex& index, const RangeBatch& ranges,
                         const QueryOptions& options, Matches* matches) const;
  // Moves one end of range i to behind the entry that its cursor names.
  absl::Status GoOn(const OrderedIndex& index, std::string_view cursor, Order order,
                    Position* begin, Position* end) const;
  // The cursor behind the entry at `position`.
  absl::StatusOr<std::string> CursorBehind(Position position) const;

  const std::shared_ptr<const Base> base_;
  const OpenOptions options_;
  const int threads_;
  const std::unique_ptr<Router> router_;
  const CostCalibration calibration_;
  mutable std::atomic_flag calibrating_ = ATOMIC_FLAG_INIT;
  mutable std::atomic<double> rows_per_range_{1};  // of scans so far, the last ones weighing most
};

absl::Status BaseIndex::Answer(
    const BatchShape& shape, const QueryOptions& options,
    absl::FunctionRef<absl::StatusOr<uint64_t>(const Route&)> answer) const {
  const absl::Status status = router_->Answer(shape, options, answer);
  // Trials take milliseconds, which a caller who is in a hurry is spared.
  if (router_->TrialsAreDue() && options.max_response_time == absl::InfiniteDuration() &&
      !calibrating_.test_and_set()) {
    router_->SetCosts(calibration_.Get(Calibration::kTrials));
    calibrating_.clear();
  }
  return status;
}

double BaseIndex::ExpectedRows(size_t keys) const {
  const RunProperties& properties = base_->run_file.properties;
  if (properties.distinct_keys == 0) return 0;
  return static_cast<double>(keys) * static_cast<double>(properties.entries) /
         static_cast<double>(properties.distinct_keys);
}

absl::Status BaseIndex::Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const {
  return Answer({Operation::kFind, keys.size(), ExpectedRows(keys.size()), options.sorted_input},
                options, [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  if (absl::Status s = route.Find(keys, options, matches); !s.ok()) return s;
                  return BytesOf(keys) + BytesOf(*matches);
                });
}

absl::Status BaseIndex::FindFirst(KeyBatch keys, const QueryOptions& options,
                                  absl::Span<RowId> row_ids) const {
  return Answer({Operation::kFindFirst, keys.size(), 0, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  if (absl::Status s = route.FindFirst(keys, options, row_ids); !s.ok()) return s;
                  return BytesOf(keys) + row_ids.size() * sizeof(RowId);
                });
}

absl::Status BaseIndex::Contains(KeyBatch keys, const QueryOptions& options,
                                 absl::Span<bool> found) const {
  return Answer({Operation::kContains, keys.size(), 0, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  if (absl::Status s = route.Contains(keys, options, found); !s.ok()) return s;
                  return BytesOf(keys) + found.size() * sizeof(bool);
                });
}

absl::Status BaseIndex::Count(const RangeBatch& ranges, const QueryOptions& options,
                              absl::Span<uint64_t> counts) const {
  return Answer({Operation::kCount, ranges.size(), 0, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  if (absl::Status s = route.Count(ranges, counts); !s.ok()) return s;
                  return BytesOf(ranges.lower) + BytesOf(ranges.upper) +
                         counts.size() * sizeof(uint64_t);
                });
}

absl::Status BaseIndex::Scan(const RangeBatch& ranges, const QueryOptions& options,
                             Matches* matches) const {
  if (!ranges.after.empty() && ranges.after.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d cursors for %d ranges", ranges.after.size(), ranges.size()));
  }
  const bool in_pages = options.limit != QueryOptions().limit || !ranges.after.empty();
  const double asked = static_cast<double>(ranges.size());
  const double per_range = rows_per_range_.load(std::memory_order_relaxed);
  return Answer({Operation::kScan, ranges.size(), asked * per_range, options.sorted_input}, options,
                [&](const Route& route) -> absl::StatusOr<uint64_t> {
                  absl::Status s = in_pages ? ScanPages(route.index(), ranges, options, matches)
                                            : route.Scan(ranges, options, matches);
                  if (!s.ok()) return s;
                  if (ranges.size() != 0) {
                    const double found = static_cast<double>(matches->row_ids.size()) / asked;
                    rows_per_range_.store(per_range + (found - per_range) * kWeightOfLastScan,
                                          std::memory_order_relaxed);
                  }
                  return BytesOf(ranges.lower) + BytesOf(ranges.upper) + BytesOf(*matches);
                });
}

absl::Status BaseIndex::ScanPages(const OrderedIndex& index, const RangeBatch& ranges,
                                  const QueryOptions& options, Matches* matches) const {
  std::vector<Position> begin(ranges.size()), end(ranges.size());
  if (absl::Status s = index.Positions(ranges, absl::MakeSpan(begin), absl::MakeSpan(end));
      !s.ok()) {
    return s;
  }
  for (size_t i = 0; i < ranges.after.size(); ++i) {
    if (ranges.after[i].empty()) continue;
    if (absl::Status s = GoOn(index, ranges.after[i], options.order, &begin[i], &end[i]); !s.ok())
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

absl::Status BaseIndex::GoOn(const OrderedIndex& index, std::string_view text, Order order,
                             Position* begin, Position* end) const {
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
  if (absl::Status s = index.Positions(RangeBatch::Equal(key.Batch()), absl::MakeSpan(&lower, 1),
                                       absl::MakeSpan(&upper, 1));
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
  return VerifyAgainstSource(*base_, source, threads_, most, differences);
}

absl::StatusOr<IndexStats> BaseIndex::Stats() const {
  IndexStats stats;
  stats.rows = base_->manifest.rows;
  stats.entries = base_->manifest.entries;
  stats.distinct_keys = base_->run_file.properties.distinct_keys;
  stats.sequence = base_->manifest.sequence;
  stats.version = base_->manifest.version;
  stats.database_id = base_->manifest.database_id;
  for (const ResidentIndex& resident : base_->resident.indexes) {
    const OrderedIndex& index = *resident.index;
    stats.ordered_indexes.push_back(
        {index.description(), index.memory_bytes(), index.huge_page_bytes()});
  }
  stats.fallback = base_->resident.fallback;
  stats.routes = router_->Stats();
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
