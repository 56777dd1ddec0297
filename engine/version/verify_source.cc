#include "engine/version/verify_source.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "engine/delta/delta_segment.h"
#include "engine/extract/row_extractor.h"
#include "index/columns/tuple.h"
#include "index/keys/escaped_text.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Rows per batch.
constexpr size_t kRowsOfBatch = 4096;

// Bits that several threads set.
class AtomicBitmap {
 public:
  explicit AtomicBitmap(size_t size) : size_(size), words_((size + 63) / 64) {}
  void Set(size_t i) {
    words_[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_relaxed);
  }
  // The first unset bit at or after `i`, or the size.
  size_t NextUnset(size_t i) const {
    while (i < size_) {
      const uint64_t unset = ~words_[i / 64].load(std::memory_order_relaxed) >> (i % 64);
      if (unset != 0) return std::min(size_, i + static_cast<size_t>(__builtin_ctzll(unset)));
      i = (i / 64 + 1) * 64;
    }
    return size_;
  }

 private:
  const size_t size_;
  std::vector<std::atomic<uint64_t>> words_;
};

// The differences found so far. Thread-safe.
class Differences {
 public:
  Differences(size_t max_differences, std::vector<std::string>* lines)
      : most_(max_differences), lines_(*lines) {}

  void Report(std::string line) {
    const MutexLock lock(&mutex_);
    if (reported_.load(std::memory_order_relaxed) >= most_) return;
    reported_.fetch_add(1, std::memory_order_relaxed);
    lines_.push_back(std::move(line));
  }
  bool full() const { return reported_.load(std::memory_order_relaxed) >= most_; }

 private:
  const size_t most_;
  std::atomic<size_t> reported_ = 0;
  Mutex mutex_;
  std::vector<std::string>& lines_;  // guarded by mutex_
};

// Rows of the source with their keys, looked up together.
struct RowBatch {
  StringList primary_keys;
  EncodedKeys keys;
  std::vector<uint32_t> row_of_key;  // index in primary_keys of each key's row
  StringList tuples;                 // of each row, if the index includes columns
  std::vector<Position> lower, upper;
  std::vector<std::string_view> primary_key_views;
  std::vector<RowPlace> places;  // one per primary key
  // Rows with entries in the index: their indexes in primary_keys, and their ids. A row may occur
  // several times.
  std::vector<uint32_t> found;
  std::vector<RowId> found_ids;

  // The positions of the keys' entries in an index: [lower[i], upper[i]).
  Batch EqualRanges() {
    return Batch::EqualRange(keys.Batch(), absl::MakeSpan(lower), absl::MakeSpan(upper));
  }
  bool full() const {
    return primary_keys.size() >= kRowsOfBatch || keys.size() >= 4 * kRowsOfBatch;
  }
  void Clear() {
    primary_keys.Clear();
    keys.Clear(keys.kind());
    row_of_key.clear();
    tuples.Clear();
    found.clear();
    found_ids.clear();
  }
  void Found(size_t row, RowId id) {
    if (tuples.empty() || (!found.empty() && found.back() == row)) return;
    found.push_back(static_cast<uint32_t>(row));
    found_ids.push_back(id);
  }
};

// The comparison of one version with its expected rows.
class Comparison {
 public:
  // `added`: the delta's entries, in one segment; null if there are none.
  Comparison(const IndexVersion& version, std::shared_ptr<const DeltaSegment> added,
             Differences* differences)
      : base_(*version.base),
        delta_(*version.delta),
        added_(std::move(added)),
        differences_(*differences),
        entries_seen_(base_.run().size()),
        added_seen_(added_ == nullptr ? 0 : added_->size()) {}

  // Searches each of the batch's entries, and empties the batch. Thread-safe.
  absl::Status CompareBatch(RowBatch* batch);
  // Called last, once: reports entries that were not searched, since they are not in the source.
  absl::Status ReportWhatIsLeft();

 private:
  absl::Status FindRows(RowBatch* batch);
  // Searches the batch's keys among the base's entries; sets `missing` to those that are not there,
  // which are searched among the added ones.
  absl::Status FindInBase(RowBatch* batch, std::vector<size_t>* missing);
  absl::Status FindInAdded(RowBatch* batch, const std::vector<size_t>& missing);
  absl::Status CompareTuples(const RowBatch& batch);
  absl::Status ReportEntry(const SortedRun& run, size_t i, RowId row);

  const Base& base_;
  const Delta& delta_;
  const std::shared_ptr<const DeltaSegment> added_;
  Differences& differences_;
  AtomicBitmap entries_seen_;  // of the base
  AtomicBitmap added_seen_;
};

// One pass over a source whose entries belong to one of several versions.
class SourcePass {
 public:
  SourcePass(const SnapshotSource& source, RowExtractor extractor, ErrorPolicy on_error,
             PlaceEntries place, std::vector<std::unique_ptr<Comparison>> comparisons,
             const StopCondition& stop, Differences* differences)
      : source_(source),
        extractor_(std::move(extractor)),
        on_error_(on_error),
        place_(place),
        comparisons_(std::move(comparisons)),
        stop_(stop),
        differences_(*differences) {}

  absl::Status Run(int threads);

 private:
  // The data that one thread has read.
  struct Work {
    explicit Work(size_t versions) : of_version(versions) {}
    RowBatch read;
    std::string tuple;
    std::vector<uint32_t> version_of;  // of each key of `read`
    std::vector<RowBatch> of_version;
  };

  absl::Status CompareRange(const PrimaryKeyRange& range);
  // Passes the entries on to their versions.
  absl::Status HandOver(Work* work);

  const SnapshotSource& source_;
  const RowExtractor extractor_;
  const ErrorPolicy on_error_;
  const PlaceEntries place_;
  const std::vector<std::unique_ptr<Comparison>> comparisons_;
  const StopCondition stop_;
  Differences& differences_;
  Mutex mutex_;
  absl::Status error_;  // guarded by mutex_ while there are threads
};

absl::Status SourcePass::Run(int threads) {
  ASSIGN_OR_RETURN(std::vector<PrimaryKeyRange> ranges, source_.Split(threads * 8));
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (size_t range;
         (range = next.fetch_add(1)) < ranges.size() && !failed && !differences_.full();) {
      if (absl::Status s = CompareRange(ranges[range]); !s.ok()) {
        failed = true;
        const MutexLock lock(&mutex_);
        error_ = std::move(s);
      }
    }
  };
  ParallelFor(threads, static_cast<size_t>(threads), [&](size_t) { work(); });
  if (!error_.ok()) return error_;
  for (const auto& comparison : comparisons_) {
    RETURN_IF_ERROR(stop_.Check());
    RETURN_IF_ERROR(comparison->ReportWhatIsLeft());
  }
  return absl::OkStatus();
}

absl::Status SourcePass::CompareRange(const PrimaryKeyRange& range) {
  RETURN_IF_ERROR(stop_.Check());
  ASSIGN_OR_RETURN(std::unique_ptr<RowCursor> cursor, source_.Scan(range));
  RowExtractor::Scratch scratch;
  Work work(comparisons_.size());
  RowBatch& batch = work.read;
  batch.keys.Clear(extractor_.codec().kind());
  for (RowBatch& part : work.of_version) part.keys.Clear(batch.keys.kind());
  while (!differences_.full() && cursor->Next()) {
    const RowView& row = cursor->row();
    std::string* const tuple = extractor_.includes() ? &work.tuple : nullptr;
    if (absl::Status s = extractor_.Extract(row, &scratch, &batch.keys, tuple); !s.ok()) {
      if (on_error_ == ErrorPolicy::kFail) {
        differences_.Report(absl::StrFormat(
            "row '%s' cannot be read: %s", EscapeBytes(row.primary_key), std::string(s.message())));
      }
    }
    batch.row_of_key.resize(batch.keys.size(), static_cast<uint32_t>(batch.primary_keys.size()));
    batch.primary_keys.Append(row.primary_key);
    if (tuple != nullptr) batch.tuples.Append(*tuple);
    if (batch.full()) {
      RETURN_IF_ERROR(stop_.Check());
      RETURN_IF_ERROR(HandOver(&work));
    }
  }
  RETURN_IF_ERROR(cursor->status());
  RETURN_IF_ERROR(HandOver(&work));
  for (size_t v = 0; v < comparisons_.size(); ++v) {
    if (work.of_version[v].keys.empty()) continue;
    RETURN_IF_ERROR(comparisons_[v]->CompareBatch(&work.of_version[v]));
  }
  return absl::OkStatus();
}

absl::Status SourcePass::HandOver(Work* work) {
  RowBatch& read = work->read;
  if (comparisons_.size() == 1) return comparisons_[0]->CompareBatch(&read);
  work->version_of.resize(read.keys.size());
  place_(read.keys.Batch(), read.row_of_key, read.primary_keys, absl::MakeSpan(work->version_of));
  for (size_t i = 0; i < read.keys.size(); ++i) {
    RowBatch& part = work->of_version[work->version_of[i]];
    part.row_of_key.push_back(static_cast<uint32_t>(part.primary_keys.size()));
    part.primary_keys.Append(read.primary_keys[read.row_of_key[i]]);
    if (!read.tuples.empty()) part.tuples.Append(read.tuples[read.row_of_key[i]]);
    WithPhysicalKey(read.keys.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      AppendKey<Key>(KeyAt<Key>(read.keys, i), &part.keys);
    });
    if (part.full()) {
      RETURN_IF_ERROR(comparisons_[work->version_of[i]]->CompareBatch(&part));
    }
  }
  read.Clear();
  return absl::OkStatus();
}

absl::Status Comparison::CompareBatch(RowBatch* batch) {
  std::vector<size_t> missing;
  RETURN_IF_ERROR(FindRows(batch));
  RETURN_IF_ERROR(FindInBase(batch, &missing));
  RETURN_IF_ERROR(FindInAdded(batch, missing));
  RETURN_IF_ERROR(CompareTuples(*batch));
  batch->Clear();
  return absl::OkStatus();
}

absl::Status Comparison::FindRows(RowBatch* batch) {
  batch->primary_key_views.clear();
  for (size_t i = 0; i < batch->primary_keys.size(); ++i) {
    batch->primary_key_views.push_back(batch->primary_keys[i]);
  }
  batch->places.resize(batch->primary_keys.size());
  return base_.rows().Places(batch->primary_key_views, absl::MakeSpan(batch->places));
}

absl::Status Comparison::FindInBase(RowBatch* batch, std::vector<size_t>* missing) {
  const SortedRun& run = base_.run();
  batch->lower.resize(batch->keys.size());
  batch->upper.resize(batch->keys.size());
  RETURN_IF_ERROR(base_.resident.indexes.front().index->Execute(batch->EqualRanges()));
  for (size_t i = 0; i < batch->keys.size(); ++i) {
    const RowPlace& place = batch->places[batch->row_of_key[i]];
    const RowId* const begin = run.row_ids().data() + batch->lower[i];
    const RowId* const end = run.row_ids().data() + batch->upper[i];
    const RowId* const entry = place.found ? std::lower_bound(begin, end, place.rank) : end;
    const auto position = static_cast<size_t>(entry - run.row_ids().data());
    if (entry != end && *entry == place.rank && !delta_.removed.Contains(position)) {
      entries_seen_.Set(position);
      batch->Found(batch->row_of_key[i], *entry);
    } else {
      missing->push_back(i);
    }
  }
  return absl::OkStatus();
}

absl::Status Comparison::FindInAdded(RowBatch* batch, const std::vector<size_t>& missing) {
  if (added_ != nullptr) {
    RETURN_IF_ERROR(added_->index().Execute(batch->EqualRanges()));
  }
  for (const size_t i : missing) {
    const size_t row = batch->row_of_key[i];
    if (added_ != nullptr) {
      const RowId* const rows = added_->rows().data();
      const RowPlace& place = batch->places[row];
      const RowId* const end = rows + batch->upper[i];
      const RowId* const entry = std::lower_bound(
          rows + batch->lower[i], end, place,
          [&](RowId a, const RowPlace& b) { return delta_.rows->Compare(a, b) < 0; });
      if (entry != end && delta_.rows->Compare(*entry, place) == 0) {
        added_seen_.Set(static_cast<size_t>(entry - rows));
        batch->Found(row, *entry);
        continue;
      }
    }
    differences_.Report(absl::StrFormat("key %s of row '%s' is not in the index",
                                        KeyText(base_.codec, batch->keys, i),
                                        EscapeBytes(batch->primary_keys[row])));
  }
  return absl::OkStatus();
}

absl::Status Comparison::CompareTuples(const RowBatch& batch) {
  if (batch.found.empty()) return absl::OkStatus();
  const absl::Span<const ColumnSchema> schema = delta_.base_columns.columns();
  std::vector<size_t> numbers;
  std::vector<DataType> types;
  std::vector<ColumnValues> values;
  for (const ColumnSchema& column : schema) {
    numbers.push_back(numbers.size());
    types.push_back(column.type);
    values.emplace_back(column.type);
  }
  RETURN_IF_ERROR(delta_.Included(batch.found_ids, numbers, absl::MakeSpan(values)));
  std::string tuple;
  for (size_t i = 0; i < batch.found.size(); ++i) {
    tuple.clear();
    TupleWriter writer(types, &tuple);
    for (const ColumnValues& column : values) {
      RETURN_IF_ERROR(writer.Add(column.value(i)));
    }
    if (tuple == batch.tuples[batch.found[i]]) continue;
    differences_.Report(
        absl::StrFormat("the index has other values of row '%s' in its columns than the database",
                        EscapeBytes(batch.primary_keys[batch.found[i]])));
  }
  return absl::OkStatus();
}

absl::Status Comparison::ReportWhatIsLeft() {
  const SortedRun& run = base_.run();
  for (size_t i = entries_seen_.NextUnset(0); i < run.size() && !differences_.full();
       i = entries_seen_.NextUnset(i + 1)) {
    if (delta_.removed.Contains(i)) continue;
    RETURN_IF_ERROR(ReportEntry(run, i, run.row_ids()[i]));
  }
  if (added_ == nullptr) return absl::OkStatus();
  for (size_t i = added_seen_.NextUnset(0); i < added_->size() && !differences_.full();
       i = added_seen_.NextUnset(i + 1)) {
    RETURN_IF_ERROR(ReportEntry(added_->run(), i, added_->rows()[i]));
  }
  return absl::OkStatus();
}

absl::Status Comparison::ReportEntry(const SortedRun& run, size_t i, RowId row) {
  EncodedKeys key(run.kind());
  AppendKey(run, i, &key);
  StringList primary_key;
  RETURN_IF_ERROR(delta_.PrimaryKeys({row}, &primary_key));
  differences_.Report(absl::StrFormat("the index has key %s for row '%s', the database does not",
                                      KeyText(base_.codec, key, 0), EscapeBytes(primary_key[0])));
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyAgainstSource(const IndexVersion& version, const SnapshotSource& source,
                                 int threads, size_t max_differences, const StopCondition& stop,
                                 std::vector<std::string>* differences) {
  const IndexVersion* const versions[] = {&version};
  const auto place = [](KeyBatch, absl::Span<const uint32_t>, const StringList&,
                        absl::Span<uint32_t>) {};
  return VerifyAgainstSource(versions, place, source, threads, max_differences, stop, differences);
}

absl::Status VerifyAgainstSource(absl::Span<const IndexVersion* const> versions, PlaceEntries place,
                                 const SnapshotSource& source, int threads, size_t max_differences,
                                 const StopCondition& stop, std::vector<std::string>* differences) {
  if (max_differences == 0) {
    return absl::InvalidArgumentError("max_differences: expected a positive number, got 0");
  }
  const IndexSpec& spec = versions[0]->spec();
  ASSIGN_OR_RETURN(RowExtractor extractor, RowExtractor::Create(spec));
  Differences found(max_differences, differences);
  std::vector<std::unique_ptr<Comparison>> comparisons;
  for (const IndexVersion* version : versions) {
    RETURN_IF_ERROR(version->base->Prove(threads));
    ASSIGN_OR_RETURN(std::shared_ptr<const DeltaSegment> added, version->delta->AddedEntries());
    comparisons.push_back(std::make_unique<Comparison>(*version, std::move(added), &found));
  }
  return SourcePass(source, std::move(extractor), spec.on_error, place, std::move(comparisons),
                    stop, &found)
      .Run(threads);
}

}  // namespace cairn
