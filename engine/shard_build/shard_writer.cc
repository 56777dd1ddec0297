#include "engine/shard_build/shard_writer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/build/base_files.h"
#include "engine/extract/included_columns.h"
#include "engine/log/anchor.h"
#include "index/build/run_merge.h"
#include "index/files/index_directory.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// A set of rows of a segment and their ranks in it. The ranks are the row ids in a shard that has
// only these rows. Any number of threads may mark rows. After Count has been called, any number may
// read ranks. Takes one bit per row, plus 1/16 of that.
class RowRanks {
 public:
  // Throws std::bad_alloc.
  explicit RowRanks(uint64_t rows)
      : rows_(rows), words_((rows + 63) / 64), before_(words_.size() / kWordsPerBlock + 1) {}

  uint64_t rows() const { return rows_; }
  // Requires row < rows().
  void Mark(RowId row) {
    words_[row / 64].fetch_or(uint64_t{1} << (row % 64), std::memory_order_relaxed);
  }

  // Counts the marked rows; `first` is the rank of the first one. Returns the rank after the last
  // one.
  uint64_t Count(uint64_t first) {
    for (size_t w = 0; w < words_.size(); ++w) {
      if (w % kWordsPerBlock == 0) before_[w / kWordsPerBlock] = first;
      first += static_cast<uint64_t>(std::popcount(Word(w)));
    }
    return first;
  }
  // The rank of a marked row.
  RowId Rank(RowId row) const {
    const size_t word = row / 64;
    uint64_t rank = before_[word / kWordsPerBlock];
    for (size_t w = word / kWordsPerBlock * kWordsPerBlock; w < word; ++w) {
      rank += static_cast<uint64_t>(std::popcount(Word(w)));
    }
    rank += static_cast<uint64_t>(std::popcount(Word(word) & ((uint64_t{1} << (row % 64)) - 1)));
    return static_cast<RowId>(rank);
  }
  // Appends the marked rows in [begin, end).
  void Append(uint64_t begin, uint64_t end, std::vector<RowId>* marked) const {
    for (uint64_t row = begin; row < end; row = (row / 64 + 1) * 64) {
      uint64_t word = Word(row / 64) >> (row % 64);
      for (uint64_t at = row; word != 0; ++at, word >>= 1) {
        const auto skip = static_cast<uint64_t>(std::countr_zero(word));
        at += skip;
        word >>= skip;
        if (at >= end) return;
        marked->push_back(static_cast<RowId>(at));
      }
    }
  }

 private:
  static constexpr size_t kWordsPerBlock = 16;

  uint64_t Word(size_t w) const { return words_[w].load(std::memory_order_relaxed); }

  uint64_t rows_;
  std::vector<std::atomic<uint64_t>> words_;
  std::vector<uint64_t> before_;  // the rank of the first row of each block
};

// Entries that are passed to the file at a time.
constexpr size_t kEntriesAtATime = 4096;
// Entries that a thread marks at a time, and rows that it writes at a time.
constexpr uint64_t kMarkedAtATime = uint64_t{1} << 20;
constexpr uint64_t kRowsOfPart = uint64_t{1} << 20;
constexpr uint64_t kRowsAtATime = 4096;

// Iterates over a segment's slice, with the row ids of the shard.
template <typename Key>
class SliceCursor {
 public:
  SliceCursor(const SortedRun& run, uint64_t begin, uint64_t end, const RowRanks* ranks)
      : keys_(ColumnOf<Key>(run)), rows_(run.row_ids()), at_(begin), end_(end), ranks_(ranks) {
    Load();
  }

  bool exhausted() const { return at_ == end_; }
  const Key& key() const { return key_; }
  RowId row_id() const { return row_id_; }
  void Next() {
    ++at_;
    Load();
  }

 private:
  void Load() {
    if (exhausted()) return;
    key_ = keys_[at_];
    row_id_ = ranks_->Rank(rows_[at_]);
  }

  decltype(ColumnOf<Key>(SortedRun())) keys_;
  absl::Span<const RowId> rows_;
  uint64_t at_, end_;
  const RowRanks* ranks_;
  Key key_ = {};
  RowId row_id_ = 0;
};

class ShardWrite {
 public:
  ShardWrite(const Segments& segments, const ShardPlan& plan, uint32_t shard,
             const ShardWriterOptions& options)
      : segments_(segments),
        plan_(plan),
        shard_(shard),
        options_(options),
        stop_(options.cancelled) {}

  absl::StatusOr<BuildReport> Run(const std::string& directory) {
    RETURN_IF_ERROR(FindSlices());
    RETURN_IF_ERROR(MarkRows());
    ASSIGN_OR_RETURN(directory_, IndexDirectory::OpenForWrite(directory, options_.files));
    BaseFiles files(directory_.get(), options_.prebuild_search_structure);
    RETURN_IF_ERROR(WriteRows(&files));
    if (!segments_.spec.include.empty()) {
      RETURN_IF_ERROR(
          files.WriteColumns(IncludedColumns(segments_.spec),
                             [&](ColumnFileWriter* file) { return WriteColumns(file); }));
    }
    RETURN_IF_ERROR(files.WriteRun(
        segments_.spec, options_.threads,
        [&](absl::Span<const RowId> rows, StringList* primary_keys) {
          return PrimaryKeys(rows, primary_keys);
        },
        [&](EntrySink* sink) {
          return WithPhysicalKey(segments_.kind, [&](auto type) {
            return MergeSlices<typename decltype(type)::type>(sink);
          });
        }));
    Manifest manifest = NewManifest();
    files.Take().Describe(&manifest);
    RETURN_IF_ERROR(directory_->Publish(std::move(manifest)));
    BuildReport report;
    report.rows = rows_;
    report.entries = entries_;
    return report;
  }

 private:
  absl::Status FindSlices();
  absl::Status MarkRows();
  absl::Status WriteRows(BaseFiles* files);
  absl::Status WriteRowPart(size_t segment, uint64_t begin, uint64_t end, RowTableWriter::Part* to);
  absl::Status WriteColumns(ColumnFileWriter* file);
  template <typename Key>
  absl::Status MergeSlices(EntrySink* sink);
  absl::Status PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys) const;
  Manifest NewManifest() const;
  absl::Status Stopped() { return absl::CancelledError("building a shard was cancelled"); }

  const Segments& segments_;
  const ShardPlan& plan_;
  const uint32_t shard_;
  const ShardWriterOptions& options_;
  StopFlag stop_;
  SegmentPositions begin_, end_;  // the shard's slice of each segment
  uint64_t entries_ = 0;
  std::vector<std::unique_ptr<RowRanks>> ranks_;  // of each segment
  std::vector<uint64_t> first_rows_;              // of each segment
  uint64_t rows_ = 0;
  std::unique_ptr<IndexDirectory> directory_;
};

absl::Status ShardWrite::FindSlices() {
  const ShardPlan::Shard& planned = plan_.shards[shard_];
  begin_.assign(segments_.size(), 0);
  for (const Segment& segment : segments_.all) end_.push_back(segment.run().size());
  if (planned.lower) {
    ASSIGN_OR_RETURN(begin_, PositionsOfBound(segments_, *planned.lower));
  }
  if (planned.upper) {
    ASSIGN_OR_RETURN(end_, PositionsOfBound(segments_, *planned.upper));
  }
  for (size_t s = 0; s < segments_.size(); ++s) {
    if (begin_[s] > end_[s]) return absl::InvalidArgumentError("the plan's bounds do not ascend");
    entries_ += end_[s] - begin_[s];
  }
  if (entries_ != planned.entries) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the segments have %d entries for shard %d, but the plan has %d", entries_,
                        shard_, planned.entries));
  }
  if (entries_ > kMaxEntries) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a shard can have at most %d entries, found %d; use more shards", kMaxEntries, entries_));
  }
  return absl::OkStatus();
}

absl::Status ShardWrite::MarkRows() {
  for (size_t s = 0; s < segments_.size(); ++s) {
    ranks_.push_back(std::make_unique<RowRanks>(segments_[s].rows().rows()));
    const absl::Span<const RowId> rows =
        segments_[s].run().row_ids().subspan(begin_[s], end_[s] - begin_[s]);
    ParallelFor(options_.threads, (rows.size() + kMarkedAtATime - 1) / kMarkedAtATime,
                [&](size_t part) {
                  for (const RowId row : rows.subspan(part * kMarkedAtATime, kMarkedAtATime)) {
                    ranks_.back()->Mark(row);
                  }
                });
    if (stop_.stopped()) return Stopped();
    first_rows_.push_back(rows_);
    rows_ = ranks_.back()->Count(rows_);
  }
  return absl::OkStatus();
}

absl::Status ShardWrite::WriteRows(BaseFiles* files) {
  struct Part {
    size_t segment;
    uint64_t begin, end;
  };
  std::vector<Part> parts;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const uint64_t rows = ranks_[s]->rows();
    for (uint64_t begin = 0; begin < rows; begin += kRowsOfPart) {
      parts.push_back({s, begin, std::min(rows, begin + kRowsOfPart)});
    }
  }
  if (parts.empty()) parts.push_back({0, 0, 0});
  ASSIGN_OR_RETURN(RowTableWriter* const table, files->BeginRows(parts.size()));
  Mutex mutex;
  absl::Status status;
  ParallelFor(options_.threads, parts.size(), [&](size_t p) {
    if (stop_.stopped()) return;
    const Part& part = parts[p];
    absl::Status written = WriteRowPart(part.segment, part.begin, part.end, &table->part(p));
    if (written.ok()) return;
    const MutexLock lock(&mutex);
    status.Update(std::move(written));
  });
  if (stop_.stopped()) return Stopped();
  RETURN_IF_ERROR(status);
  return files->FinishRows();
}

absl::Status ShardWrite::WriteRowPart(size_t segment, uint64_t begin, uint64_t end,
                                      RowTableWriter::Part* to) {
  std::vector<RowId> rows;
  StringList primary_keys;
  for (uint64_t first = begin; first < end; first += kRowsAtATime) {
    rows.clear();
    primary_keys.Clear();
    ranks_[segment]->Append(first, std::min(end, first + kRowsAtATime), &rows);
    RETURN_IF_ERROR(segments_[segment].rows().PrimaryKeys(rows, &primary_keys));
    for (const std::string_view primary_key : primary_keys) {
      RETURN_IF_ERROR(to->Add(primary_key));
    }
  }
  return to->Close();
}

absl::Status ShardWrite::WriteColumns(ColumnFileWriter* file) {
  std::vector<ColumnValues> values;
  for (const ColumnSchema& column : file->columns()) values.emplace_back(column.type);
  std::vector<RowId> rows;
  for (size_t s = 0; s < segments_.size(); ++s) {
    for (uint64_t first = 0; first < ranks_[s]->rows(); first += kRowsAtATime) {
      if (stop_.stopped()) return Stopped();
      rows.clear();
      ranks_[s]->Append(first, std::min(ranks_[s]->rows(), first + kRowsAtATime), &rows);
      for (size_t c = 0; c < values.size(); ++c) {
        values[c].Clear();
        RETURN_IF_ERROR(segments_[s].columns().Gather(c, rows, &values[c]));
      }
      RETURN_IF_ERROR(file->Append(values));
    }
  }
  return file->Finish();
}

template <typename Key>
absl::Status ShardWrite::MergeSlices(EntrySink* sink) {
  uint64_t key_bytes = 0;
  std::vector<SliceCursor<Key>> cursors;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const SortedRun& run = segments_[s].run();
    cursors.emplace_back(run, begin_[s], end_[s], ranks_[s].get());
    if constexpr (std::is_same_v<Key, std::string_view>) {
      key_bytes += run.bytes().offset(end_[s]) - run.bytes().offset(begin_[s]);
    }
  }
  RETURN_IF_ERROR(sink->Begin(entries_, key_bytes));
  std::vector<Key> keys;
  std::vector<RowId> rows;
  const auto flush = [&] {
    absl::Status status = sink->Append(absl::MakeConstSpan(keys), absl::MakeConstSpan(rows));
    if (status.ok() && options_.on_progress) options_.on_progress(keys.size());
    keys.clear();
    rows.clear();
    return status;
  };
  LoserTree<SliceCursor<Key>> tree(&cursors);
  while (!tree.winner().exhausted()) {
    SliceCursor<Key>& cursor = tree.winner();
    keys.push_back(cursor.key());
    rows.push_back(cursor.row_id());
    cursor.Next();
    tree.Replay();
    if (keys.size() < kEntriesAtATime) continue;
    if (stop_.stopped()) return Stopped();
    RETURN_IF_ERROR(flush());
  }
  return keys.empty() ? absl::OkStatus() : flush();
}

absl::Status ShardWrite::PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys) const {
  for (const RowId row : rows) {
    const auto behind = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
    const auto s = static_cast<size_t>(behind - first_rows_.begin()) - 1;
    // Only error messages need this, so the search may be slow.
    std::vector<RowId> all;
    ranks_[s]->Append(0, ranks_[s]->rows(), &all);
    RETURN_IF_ERROR(segments_[s].rows().PrimaryKeys({all[row - first_rows_[s]]}, primary_keys));
  }
  return absl::OkStatus();
}

Manifest ShardWrite::NewManifest() const {
  Manifest manifest;
  manifest.spec = plan_.spec;
  manifest.database_id = plan_.database_id;
  manifest.column_family = segments_[0].manifest.column_family;
  Anchor anchor;
  anchor.unproven = "it is a shard of an index by key range, which is built as a whole";
  manifest.anchor = anchor.ToString();
  manifest.sequence = plan_.sequence;
  manifest.counts = {{"shard", shard_}, {"shard_plan", PlanChecksum(plan_)}};
  return manifest;
}

}  // namespace

absl::StatusOr<BuildReport> WriteShard(const Segments& segments, const ShardPlan& plan,
                                       uint32_t shard, const std::string& directory,
                                       const ShardWriterOptions& options) {
  return ShardWrite(segments, plan, shard, options).Run(directory);
}

uint64_t ShardWriterMemory(const Segments& segments) {
  uint64_t rows = 0;
  for (const Segment& segment : segments.all) rows += segment.rows().rows();
  return rows / 8 + rows / 128 + (uint64_t{16} << 20);
}

}  // namespace cairn
