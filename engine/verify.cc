#include "engine/verify.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/row_extractor.h"
#include "index/escaped_text.h"

namespace cairn {
namespace {

// Entries or rows looked at in one batch.
constexpr size_t kBatch = 4096;

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

// Appends entry `i`'s key to a column of the run's kind.
void AppendKey(const SortedRun& run, size_t i, KeyColumn* keys) {
  switch (run.kind()) {
    case KeyKind::kU32:
      return keys->AppendU32(run.u32()[i]);
    case KeyKind::kU64:
      return keys->AppendU64(run.u64()[i]);
    case KeyKind::kBytes:
      return keys->AppendBytes(run.bytes()[i]);
  }
}

bool SameKey(const SortedRun& run, size_t i, size_t j) {
  switch (run.kind()) {
    case KeyKind::kU32:
      return run.u32()[i] == run.u32()[j];
    case KeyKind::kU64:
      return run.u64()[i] == run.u64()[j];
    case KeyKind::kBytes:
      return run.bytes()[i] == run.bytes()[j];
  }
  return false;
}

// A key for a message; bytes that are no encoding are shown as such.
std::string KeyText(const Base& base, const KeyColumn& keys, size_t i) {
  absl::StatusOr<std::string> text = base.codec.Format(keys, i);
  if (text.ok()) return *std::move(text);
  return keys.kind() == KeyKind::kBytes ? EscapeBytes(keys.bytes(i)) : "(no encoding of a key)";
}

absl::Status CheckRun(const Base& base) {
  const SortedRun& run = base.run();
  if (absl::Status s = run.CheckOrder(); !s.ok()) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': %s", base.directory, std::string(s.message())));
  }
  for (size_t i = 0; i < run.size(); ++i) {
    if (run.row_ids()[i] >= base.rows().rows()) {
      return absl::DataLossError(absl::StrFormat("index '%s': entry %d names row %d of %d",
                                                 base.directory, i, run.row_ids()[i],
                                                 base.rows().rows()));
    }
  }
  return absl::OkStatus();
}

// Every distinct key's lower and upper bound, and the count of distinct keys.
absl::Status CheckOrderedIndex(const Base& base) {
  const SortedRun& run = base.run();
  KeyColumn keys(run.kind());
  std::vector<Position> expected_lower, expected_upper, lower, upper;
  uint64_t distinct = 0;
  for (size_t i = 0; i < run.size();) {
    keys.Clear(run.kind());
    expected_lower.clear();
    expected_upper.clear();
    while (i < run.size() && keys.size() < kBatch) {
      size_t end = i + 1;
      while (end < run.size() && SameKey(run, i, end)) ++end;
      AppendKey(run, i, &keys);
      expected_lower.push_back(static_cast<Position>(i));
      expected_upper.push_back(static_cast<Position>(end));
      i = end;
    }
    distinct += keys.size();
    lower.resize(keys.size());
    upper.resize(keys.size());
    const KeyBatch batch = keys.Batch();
    for (const ResidentIndex& resident : base.resident.indexes) {
      const OrderedIndex& index = *resident.index;
      if (absl::Status s = index.LowerBound(batch, absl::MakeSpan(lower)); !s.ok()) return s;
      if (absl::Status s = index.UpperBound(batch, absl::MakeSpan(upper)); !s.ok()) return s;
      for (size_t k = 0; k < keys.size(); ++k) {
        if (lower[k] == expected_lower[k] && upper[k] == expected_upper[k]) continue;
        return absl::DataLossError(
            absl::StrFormat("index '%s': %s finds key %s at [%d, %d), but it is at [%d, %d)",
                            base.directory, index.description(), KeyText(base, keys, k), lower[k],
                            upper[k], expected_lower[k], expected_upper[k]));
      }
    }
  }
  if (distinct != base.run_file.properties.distinct_keys) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': %d distinct keys, but the run file says %d", base.directory,
                        distinct, base.run_file.properties.distinct_keys));
  }
  return absl::OkStatus();
}

// The state of one comparison with a database.
class Comparison {
 public:
  Comparison(const Base& base, const SnapshotSource& source, RowExtractor extractor, size_t most,
             std::vector<std::string>* differences)
      : base_(base),
        source_(source),
        extractor_(std::move(extractor)),
        most_(most),
        differences_(*differences),
        entries_seen_(base.run().size()),
        rows_seen_(base.rows().rows()) {}

  absl::Status Run(int threads);

 private:
  // Rows of the source with their keys, looked up together.
  struct Batch {
    PrimaryKeyColumn primary_keys;
    KeyColumn keys;
    std::vector<uint32_t> row_of_key;  // index in primary_keys of each key's row
    std::vector<Position> lower, upper;
    std::vector<std::string_view> primary_key_views;
    std::vector<RowId> row_ids;  // one a primary key
  };

  absl::Status CompareRange(const PrimaryKeyRange& range);
  absl::Status CompareBatch(Batch* batch);
  absl::Status ReportWhatIsLeft();
  void Report(std::string line);
  bool full() const { return reported_.load(std::memory_order_relaxed) >= most_; }

  const Base& base_;
  const SnapshotSource& source_;
  const RowExtractor extractor_;
  const size_t most_;
  std::vector<std::string>& differences_;  // guarded by mutex_
  AtomicBitmap entries_seen_;
  AtomicBitmap rows_seen_;
  std::atomic<size_t> reported_ = 0;
  std::mutex mutex_;
  absl::Status error_;  // guarded by mutex_
};

absl::Status Comparison::Run(int threads) {
  absl::StatusOr<std::vector<PrimaryKeyRange>> ranges = source_.Split(threads * 8);
  if (!ranges.ok()) return ranges.status();
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (size_t range; (range = next.fetch_add(1)) < ranges->size() && !failed && !full();) {
      if (absl::Status s = CompareRange((*ranges)[range]); !s.ok()) {
        failed = true;
        std::lock_guard<std::mutex> lock(mutex_);
        error_ = std::move(s);
      }
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  if (!error_.ok()) return error_;
  return ReportWhatIsLeft();
}

void Comparison::Report(std::string line) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (reported_.load(std::memory_order_relaxed) >= most_) return;
  reported_.fetch_add(1, std::memory_order_relaxed);
  differences_.push_back(std::move(line));
}

absl::Status Comparison::CompareRange(const PrimaryKeyRange& range) {
  absl::StatusOr<std::unique_ptr<RowCursor>> cursor = source_.Scan(range);
  if (!cursor.ok()) return cursor.status();
  RowExtractor::Scratch scratch;
  Batch batch;
  batch.keys.Clear(base_.run().kind());
  while (!full() && (*cursor)->Next()) {
    const RowView& row = (*cursor)->row();
    if (absl::Status s = extractor_.Extract(row, &scratch, &batch.keys); !s.ok()) {
      if (base_.spec.on_error == ErrorPolicy::kFail) {
        Report(absl::StrFormat("row '%s' cannot be read: %s", EscapeBytes(row.primary_key),
                               std::string(s.message())));
      }
    }
    batch.row_of_key.resize(batch.keys.size(), static_cast<uint32_t>(batch.primary_keys.size()));
    batch.primary_keys.heap()->append(row.primary_key);
    batch.primary_keys.EndKey();
    if (batch.primary_keys.size() == kBatch || batch.keys.size() >= 4 * kBatch) {
      if (absl::Status s = CompareBatch(&batch); !s.ok()) return s;
    }
  }
  if (absl::Status s = (*cursor)->status(); !s.ok()) return s;
  return CompareBatch(&batch);
}

absl::Status Comparison::CompareBatch(Batch* batch) {
  const SortedRun& run = base_.run();
  batch->row_ids.resize(batch->primary_keys.size());
  batch->primary_key_views.clear();
  for (size_t i = 0; i < batch->primary_keys.size(); ++i) {
    batch->primary_key_views.push_back(batch->primary_keys[i]);
  }
  if (absl::Status s = base_.rows().Find(batch->primary_key_views, absl::MakeSpan(batch->row_ids));
      !s.ok()) {
    return s;
  }
  for (size_t i = 0; i < batch->row_ids.size(); ++i) {
    if (batch->row_ids[i] != kNoRow) {
      rows_seen_.Set(batch->row_ids[i]);
    } else {
      Report(absl::StrFormat("row '%s' is in the database but not in the index",
                             EscapeBytes(batch->primary_keys[i])));
    }
  }
  batch->lower.resize(batch->keys.size());
  batch->upper.resize(batch->keys.size());
  const KeyBatch keys = batch->keys.Batch();
  const OrderedIndex& index = *base_.resident.indexes.front().index;
  if (absl::Status s = index.LowerBound(keys, absl::MakeSpan(batch->lower)); !s.ok()) return s;
  if (absl::Status s = index.UpperBound(keys, absl::MakeSpan(batch->upper)); !s.ok()) return s;
  for (size_t i = 0; i < batch->keys.size(); ++i) {
    const RowId row = batch->row_ids[batch->row_of_key[i]];
    if (row == kNoRow) continue;  // reported above
    const RowId* const begin = run.row_ids().data() + batch->lower[i];
    const RowId* const end = run.row_ids().data() + batch->upper[i];
    const RowId* const entry = std::lower_bound(begin, end, row);
    if (entry != end && *entry == row) {
      entries_seen_.Set(static_cast<size_t>(entry - run.row_ids().data()));
    } else {
      Report(absl::StrFormat("key %s of row '%s' is not in the index",
                             KeyText(base_, batch->keys, i),
                             EscapeBytes(batch->primary_keys[batch->row_of_key[i]])));
    }
  }
  batch->primary_keys.Clear();
  batch->keys.Clear(run.kind());
  batch->row_of_key.clear();
  return absl::OkStatus();
}

absl::Status Comparison::ReportWhatIsLeft() {
  const SortedRun& run = base_.run();
  PrimaryKeyColumn primary_key;
  for (size_t row = rows_seen_.NextUnset(0); row < base_.rows().rows() && !full();
       row = rows_seen_.NextUnset(row + 1)) {
    primary_key.Clear();
    if (absl::Status s = base_.rows().PrimaryKeys({static_cast<RowId>(row)}, &primary_key);
        !s.ok()) {
      return s;
    }
    Report(absl::StrFormat("row '%s' is in the index but not in the database",
                           EscapeBytes(primary_key[0])));
  }
  KeyColumn key(run.kind());
  for (size_t i = entries_seen_.NextUnset(0); i < run.size() && !full();
       i = entries_seen_.NextUnset(i + 1)) {
    key.Clear(run.kind());
    AppendKey(run, i, &key);
    primary_key.Clear();
    if (absl::Status s = base_.rows().PrimaryKeys({run.row_ids()[i]}, &primary_key); !s.ok())
      return s;
    Report(absl::StrFormat("the index has key %s for row '%s', the database does not",
                           KeyText(base_, key, 0), EscapeBytes(primary_key[0])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyStructure(const Base& base) {
  if (absl::Status s = CheckRun(base); !s.ok()) return s;
  if (absl::Status s = base.rows().CheckOrder(); !s.ok()) return s;
  return CheckOrderedIndex(base);
}

absl::Status VerifyAgainstSource(const Base& base, const SnapshotSource& source, int threads,
                                 size_t most, std::vector<std::string>* differences) {
  absl::StatusOr<RowExtractor> extractor = RowExtractor::Create(base.spec);
  if (!extractor.ok()) return extractor.status();
  return Comparison(base, source, *std::move(extractor), most, differences).Run(threads);
}

}  // namespace cairn
