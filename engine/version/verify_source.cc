#include "engine/version/verify_source.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "engine/delta/delta_segment.h"
#include "engine/extract/row_extractor.h"
#include "index/keys/escaped_text.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Rows looked at in one batch.
constexpr size_t kRowsOfBatch = 4096;

// Bits that several threads set.
class AtomicBitmap {
 public:
  explicit AtomicBitmap(size_t size) : size_(size), words_((size + 63) / 64) {}
  void Set(size_t i) {
    words_[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_relaxed);
  }
  // The first unset bit at or behind `i`, or the size.
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

// The state of one comparison with a database.
class Comparison {
 public:
  // `added`: the delta's entries, in one segment; null where there are none.
  Comparison(const IndexVersion& version, std::shared_ptr<const DeltaSegment> added,
             const SnapshotSource& source, RowExtractor extractor, size_t most,
             std::vector<std::string>* differences)
      : base_(*version.base),
        delta_(*version.delta),
        added_(std::move(added)),
        source_(source),
        extractor_(std::move(extractor)),
        most_(most),
        differences_(*differences),
        entries_seen_(base_.run().size()),
        added_seen_(added_ == nullptr ? 0 : added_->size()) {}

  absl::Status Run(int threads);

 private:
  // Rows of the source with their keys, looked up together.
  struct RowBatch {
    PrimaryKeyColumn primary_keys;
    KeyColumn keys;
    std::vector<uint32_t> row_of_key;  // index in primary_keys of each key's row
    std::vector<Position> lower, upper;
    std::vector<std::string_view> primary_key_views;
    std::vector<RowPlace> places;  // one a primary key

    // Where an index has the keys' entries: at [lower[i], upper[i]).
    Batch EqualRanges() {
      return Batch::EqualRange(keys.Batch(), absl::MakeSpan(lower), absl::MakeSpan(upper));
    }
  };

  absl::Status CompareRange(const PrimaryKeyRange& range);
  absl::Status CompareBatch(RowBatch* batch);
  absl::Status FindRows(RowBatch* batch);
  // Finds the batch's keys among the base's entries, and those that are not there, `missing`, among
  // the added ones.
  absl::Status FindInBase(RowBatch* batch, std::vector<size_t>* missing);
  absl::Status FindInAdded(RowBatch* batch, const std::vector<size_t>& missing);
  absl::Status ReportWhatIsLeft();
  absl::Status ReportEntry(const SortedRun& run, size_t i, RowId row);
  void Report(std::string line);
  bool full() const { return reported_.load(std::memory_order_relaxed) >= most_; }

  const Base& base_;
  const Delta& delta_;
  const std::shared_ptr<const DeltaSegment> added_;
  const SnapshotSource& source_;
  const RowExtractor extractor_;
  const size_t most_;
  std::vector<std::string>& differences_;  // guarded by mutex_
  AtomicBitmap entries_seen_;              // of the base
  AtomicBitmap added_seen_;
  std::atomic<size_t> reported_ = 0;
  Mutex mutex_;
  absl::Status error_;  // guarded by mutex_ while there are threads
};

absl::Status Comparison::Run(int threads) {
  ASSIGN_OR_RETURN(std::vector<PrimaryKeyRange> ranges, source_.Split(threads * 8));
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (size_t range; (range = next.fetch_add(1)) < ranges.size() && !failed && !full();) {
      if (absl::Status s = CompareRange(ranges[range]); !s.ok()) {
        failed = true;
        const MutexLock lock(&mutex_);
        error_ = std::move(s);
      }
    }
  };
  ParallelFor(threads, static_cast<size_t>(threads), [&](size_t) { work(); });
  if (!error_.ok()) return error_;
  return ReportWhatIsLeft();
}

void Comparison::Report(std::string line) {
  const MutexLock lock(&mutex_);
  if (reported_.load(std::memory_order_relaxed) >= most_) return;
  reported_.fetch_add(1, std::memory_order_relaxed);
  differences_.push_back(std::move(line));
}

absl::Status Comparison::CompareRange(const PrimaryKeyRange& range) {
  ASSIGN_OR_RETURN(std::unique_ptr<RowCursor> cursor, source_.Scan(range));
  RowExtractor::Scratch scratch;
  RowBatch batch;
  batch.keys.Clear(base_.run().kind());
  while (!full() && cursor->Next()) {
    const RowView& row = cursor->row();
    if (absl::Status s = extractor_.Extract(row, &scratch, &batch.keys); !s.ok()) {
      if (base_.spec.on_error == ErrorPolicy::kFail) {
        Report(absl::StrFormat("row '%s' cannot be read: %s", EscapeBytes(row.primary_key),
                               std::string(s.message())));
      }
    }
    batch.row_of_key.resize(batch.keys.size(), static_cast<uint32_t>(batch.primary_keys.size()));
    batch.primary_keys.Append(row.primary_key);
    if (batch.primary_keys.size() == kRowsOfBatch || batch.keys.size() >= 4 * kRowsOfBatch) {
      RETURN_IF_ERROR(CompareBatch(&batch));
    }
  }
  RETURN_IF_ERROR(cursor->status());
  return CompareBatch(&batch);
}

absl::Status Comparison::CompareBatch(RowBatch* batch) {
  std::vector<size_t> missing;
  RETURN_IF_ERROR(FindRows(batch));
  RETURN_IF_ERROR(FindInBase(batch, &missing));
  RETURN_IF_ERROR(FindInAdded(batch, missing));
  batch->primary_keys.Clear();
  batch->keys.Clear(batch->keys.kind());
  batch->row_of_key.clear();
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
  RETURN_IF_ERROR(base_.resident.indexes.front().index->Answer(batch->EqualRanges()));
  for (size_t i = 0; i < batch->keys.size(); ++i) {
    const RowPlace& place = batch->places[batch->row_of_key[i]];
    const RowId* const begin = run.row_ids().data() + batch->lower[i];
    const RowId* const end = run.row_ids().data() + batch->upper[i];
    const RowId* const entry = place.found ? std::lower_bound(begin, end, place.rank) : end;
    const auto position = static_cast<size_t>(entry - run.row_ids().data());
    if (entry != end && *entry == place.rank && !delta_.removed.Contains(position)) {
      entries_seen_.Set(position);
    } else {
      missing->push_back(i);
    }
  }
  return absl::OkStatus();
}

absl::Status Comparison::FindInAdded(RowBatch* batch, const std::vector<size_t>& missing) {
  if (added_ != nullptr) {
    RETURN_IF_ERROR(added_->index().Answer(batch->EqualRanges()));
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
        continue;
      }
    }
    Report(absl::StrFormat("key %s of row '%s' is not in the index",
                           KeyText(base_.codec, batch->keys, i),
                           EscapeBytes(batch->primary_keys[row])));
  }
  return absl::OkStatus();
}

absl::Status Comparison::ReportWhatIsLeft() {
  const SortedRun& run = base_.run();
  for (size_t i = entries_seen_.NextUnset(0); i < run.size() && !full();
       i = entries_seen_.NextUnset(i + 1)) {
    if (delta_.removed.Contains(i)) continue;
    RETURN_IF_ERROR(ReportEntry(run, i, run.row_ids()[i]));
  }
  if (added_ == nullptr) return absl::OkStatus();
  for (size_t i = added_seen_.NextUnset(0); i < added_->size() && !full();
       i = added_seen_.NextUnset(i + 1)) {
    RETURN_IF_ERROR(ReportEntry(added_->run(), i, added_->rows()[i]));
  }
  return absl::OkStatus();
}

absl::Status Comparison::ReportEntry(const SortedRun& run, size_t i, RowId row) {
  KeyColumn key(run.kind());
  AppendKey(run, i, &key);
  PrimaryKeyColumn primary_key;
  RETURN_IF_ERROR(delta_.PrimaryKeys({row}, &primary_key));
  Report(absl::StrFormat("the index has key %s for row '%s', the database does not",
                         KeyText(base_.codec, key, 0), EscapeBytes(primary_key[0])));
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyAgainstSource(const IndexVersion& version, const SnapshotSource& source,
                                 int threads, size_t most, std::vector<std::string>* differences) {
  ASSIGN_OR_RETURN(RowExtractor extractor, RowExtractor::Create(version.spec()));
  ASSIGN_OR_RETURN(std::shared_ptr<const DeltaSegment> added, version.delta->AddedEntries());
  return Comparison(version, std::move(added), source, std::move(extractor), most, differences)
      .Run(threads);
}

}  // namespace cairn
