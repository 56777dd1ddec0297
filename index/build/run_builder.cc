#include "index/build/run_builder.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_format.h"
#include "cairn/key_codec.h"
#include "index/build/run_merge.h"
#include "index/build/sorted_yield.h"
#include "index/build/spill_stretches.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/sort/bucket_split.h"
#include "index/sort/chunk_source.h"
#include "index/sort/record_split.h"
#include "index/sort/sort_entry.h"

namespace cairn {
namespace {

constexpr std::string_view kDoing = "collecting and sorting entries";

// The memory that a chunk takes at most, between filling and sorting: columns of 8 (12) bytes per
// entry become entries of 8 (16) before the columns are freed.
uint64_t Charge(PhysicalType kind, uint64_t chunk_bytes) {
  switch (kind) {
    case PhysicalType::kU32:
      return chunk_bytes * 2;
    case PhysicalType::kU64:
      return chunk_bytes + chunk_bytes / 12 * 16;
    case PhysicalType::kBytes:
      return chunk_bytes;
  }
  return chunk_bytes;
}

}  // namespace

// ---------------------------------------------------------------------------------------- Part

bool RunBuilder::Part::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  failed_ = true;
  return false;
}

// Reports whether keys of `kind` may be added.
bool RunBuilder::Part::Admit(PhysicalType kind) {
  if (failed_) return false;
  if (finished_) return Fail(absl::InvalidArgumentError("rows were added to a finished part"));
  if (kind == builder_->kind_) return true;
  return Fail(absl::InvalidArgumentError(
      absl::StrFormat("keys of kind %s were added to a part, expected %s", PhysicalTypeName(kind),
                      PhysicalTypeName(builder_->kind_))));
}

// Reports whether rows ascend from the last one on, and the keys of each row ascend.
template <typename KeyAt>
bool RunBuilder::Part::InOrder(absl::Span<const RowId> rows, KeyAt key_at) {
  int64_t before = last_row_;
  for (size_t i = 0; i < rows.size(); before = rows[i++]) {
    if (ABSL_PREDICT_TRUE(rows[i] > before)) continue;
    if (i == 0 || rows[i] < before) {
      return Fail(absl::InvalidArgumentError(
          absl::StrFormat("row %d of a part was added after row %d", rows[i], before)));
    }
    if (key_at(i - 1) < key_at(i)) continue;
    return Fail(absl::InvalidArgumentError(
        absl::StrFormat("the keys of row %d of a part do not ascend", rows[i])));
  }
  last_row_ = before;
  return true;
}

// Adds this part's new entries to the builder's count. ResourceExhausted if there are too many.
absl::Status RunBuilder::Part::Report() {
  const uint64_t more = entries_ - std::exchange(reported_, entries_);
  const uint64_t total = builder_->entries_.fetch_add(more) + more;
  if (total <= builder_->options_.max_entries) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat("an index holds at most %d entries, found %d",
                                                      builder_->options_.max_entries, total));
}

// Adds a chunk, with space for `key` if the keys are bytes.
bool RunBuilder::Part::Grow(std::string_view key) {
  if (absl::Status s = Report(); !s.ok()) return Fail(std::move(s));
  const PhysicalType kind = builder_->kind_;
  if (key.size() > KeyCodec::kMaxKeyBytes) {
    return Fail(absl::InvalidArgumentError(
        absl::StrFormat("a key of %d bytes was added to a part, expected at most %d", key.size(),
                        KeyCodec::kMaxKeyBytes)));
  }
  if (kind == PhysicalType::kBytes && !bytes_.chunks().empty()) {
    // The memory that sorting the full chunk will take.
    const uint64_t more = bytes_.chunks().back().entries * sizeof(BytesEntry);
    charged_ += more;
    builder_->charged_.fetch_add(more, std::memory_order_relaxed);
  }
  try {
    const size_t chunks = kind == PhysicalType::kU32   ? u32_.chunks().size()
                          : kind == PhysicalType::kU64 ? u64_.chunks().size()
                                                       : bytes_.chunks().size();
    const uint64_t wanted =
        Charge(kind, std::max<uint64_t>(NextChunkBytes(chunks), KeyRecord::Bytes(key.size())));
    if (absl::Status s = builder_->MakeRoom(this, wanted); !s.ok()) return Fail(std::move(s));
    const uint64_t charge = Charge(kind, kind == PhysicalType::kU32   ? u32_.AddChunk()
                                         : kind == PhysicalType::kU64 ? u64_.AddChunk()
                                                                      : bytes_.AddChunk(key));
    charged_ += charge;
    builder_->charged_.fetch_add(charge, std::memory_order_relaxed);
  } catch (...) {
    return Fail(StatusOfException(kDoing));
  }
  return true;
}

template <typename Key>
bool RunBuilder::Part::AddNumbers(ColumnChunks<Key>* chunks, absl::Span<const Key> keys,
                                  absl::Span<const RowId> rows) {
  if (!InOrder(rows, [keys](size_t i) { return keys[i]; })) return false;
  while (!keys.empty()) {
    if (chunks->full() && !Grow({})) return false;
    const size_t count = chunks->Add(keys, rows);
    entries_ += count;
    unspilled_ += count;
    keys.remove_prefix(count);
    rows.remove_prefix(count);
  }
  return true;
}

bool RunBuilder::Part::AddStrings(const EncodedKeys& keys, absl::Span<const RowId> rows) {
  if (!InOrder(rows, [&keys](size_t i) { return keys.bytes(i); })) return false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view key = keys.bytes(i);
    if (ABSL_PREDICT_FALSE(bytes_.full(key)) && !Grow(key)) return false;
    bytes_.Add(key, rows[i]);
    key_bytes_ += key.size();
    ++entries_;
    ++unspilled_;
  }
  return true;
}

bool RunBuilder::Part::Add(const EncodedKeys& keys, absl::Span<const RowId> local_rows) {
  if (!Admit(keys.kind())) return false;
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return AddNumbers<uint32_t>(&u32_, keys.u32(), local_rows);
    case PhysicalType::kU64:
      return AddNumbers<uint64_t>(&u64_, keys.u64(), local_rows);
    case PhysicalType::kBytes:
      return AddStrings(keys, local_rows);
  }
  return false;
}

absl::Status RunBuilder::Part::Finish() {
  if (finished_) return absl::FailedPreconditionError("a part was finished twice");
  if (absl::Status s = Report(); !s.ok()) Fail(std::move(s));
  finished_ = true;
  if (!failed_ && unspilled_ > 0) {
    const MutexLock lock(&builder_->mutex_);
    builder_->resting_.push_back(this);
  }
  return status_;
}

// ------------------------------------------------------------------------------------ spilling

RunBuilder::RunBuilder(PhysicalType kind, Options options, int parts)
    : kind_(kind), options_(std::move(options)) {
  for (int i = 0; i < parts; ++i) parts_.push_back(std::make_unique<Part>(this));
}

RunBuilder::~RunBuilder() = default;

// Spills if `bytes` more for `part` would exceed the budget: the largest of `part` and the resting
// parts. A small part spills nothing while other parts that are being filled hold the memory; those
// will spill. That can exceed the budget by at most a quarter, which is therefore set aside.
absl::Status RunBuilder::MakeRoom(Part* part, uint64_t bytes) {
  const uint64_t budget = options_.memory_budget - options_.memory_budget / 4;
  while (charged_.load(std::memory_order_relaxed) + bytes > budget) {
    Part* largest = part;
    {
      const MutexLock lock(&mutex_);
      if (!spill_status_.ok()) return spill_status_;
      for (Part* resting : resting_) {
        if (resting->charged_ > largest->charged_) largest = resting;
      }
      const uint64_t worth_it = budget / (4 * static_cast<uint64_t>(std::max(options_.threads, 1)));
      if (largest == part && (part->unspilled_ == 0 || part->charged_ < worth_it)) {
        return absl::OkStatus();
      }
      resting_.erase(std::remove(resting_.begin(), resting_.end(), largest), resting_.end());
    }
    RETURN_IF_ERROR(Spill(largest));
  }
  return absl::OkStatus();
}

absl::StatusOr<SpillFile*> RunBuilder::OpenSpillFile() {
  const MutexLock lock(&mutex_);
  if (spill_file_ == nullptr) {
    if (options_.spill_directory.empty()) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("the entries take more than the memory budget of %d bytes, and there is "
                          "no directory to spill them to",
                          options_.memory_budget));
    }
    ASSIGN_OR_RETURN(spill_file_, SpillFile::Create(options_.spill_directory, options_.files));
  }
  return spill_file_.get();
}

// Sorts a part's entries in memory on the caller's thread, and writes them as a spilled run.
absl::Status RunBuilder::Spill(Part* part) {
  const RowId no_base = 0;
  StopFlag stop(nullptr);
  absl::StatusOr<SpillRun> run;
  switch (kind_) {
    case PhysicalType::kU32:
      run = SpillSorted<uint32_t>({&part, 1}, {&no_base, 1}, 1, &stop);
      break;
    case PhysicalType::kU64:
      run = SpillSorted<uint64_t>({&part, 1}, {&no_base, 1}, 1, &stop);
      break;
    case PhysicalType::kBytes:
      run = SpillSorted<std::string_view>({&part, 1}, {&no_base, 1}, 1, &stop);
      break;
  }
  const MutexLock lock(&mutex_);
  if (!run.ok()) {
    if (spill_status_.ok()) spill_status_ = run.status();
    return run.status();
  }
  size_t index = 0;
  while (parts_[index].get() != part) ++index;
  spilled_.push_back({index, *std::move(run)});
  return absl::OkStatus();
}

// Sorts the entries that `parts` have in memory into a new run, and frees them.
template <typename Key>
absl::StatusOr<SpillRun> RunBuilder::SpillSorted(absl::Span<Part* const> parts,
                                                 absl::Span<const RowId> bases, int threads,
                                                 StopFlag* stop) {
  ASSIGN_OR_RETURN(auto* file, OpenSpillFile());
  SpillWriter writer(file);
  const std::function<void(uint64_t)> no_progress;
  EntryBatch<Key> batch(&writer, no_progress, stop);
  RETURN_IF_ERROR(SortUnspilled(parts, bases, threads, &batch, stop));
  return writer.Finish();
}

// -------------------------------------------------------------------------------------- Finish

// Sorts and appends the entries that `parts` have in memory, and frees them. bases[i] belongs to
// parts[i].
template <typename Key>
absl::Status RunBuilder::SortUnspilled(absl::Span<Part* const> parts, absl::Span<const RowId> bases,
                                       int threads, EntryBatch<Key>* batch, StopFlag* stop) {
  const auto all_chunks = [&](auto chunks_of) {
    std::vector<ChunkOf<std::remove_reference_t<decltype(chunks_of(parts[0])[0])>>> chunks;
    for (size_t p = 0; p < parts.size(); ++p) {
      for (auto& chunk : chunks_of(parts[p])) chunks.push_back({&chunk, bases[p]});
    }
    return chunks;
  };
  uint64_t entries = 0;
  for (const Part* part : parts) entries += part->unspilled_;
  absl::Status status;
  if constexpr (std::is_same_v<Key, std::string_view>) {
    if (!WorthSplitting<BytesEntry>(entries)) threads = 1;
    RecordSplit split(all_chunks([](Part * part) -> auto& { return part->bytes_.chunks(); }),
                      threads, stop);
    status = SortAndYield(&split, threads, batch, stop);
  } else {
    using Entry = std::conditional_t<std::is_same_v<Key, uint32_t>, Entry32, Entry64>;
    if (!WorthSplitting<Entry>(entries)) threads = 1;
    ColumnSource<Entry> source(all_chunks([](Part * part) -> auto& {
                                 if constexpr (std::is_same_v<Key, uint32_t>) {
                                   return part->u32_.chunks();
                                 } else {
                                   return part->u64_.chunks();
                                 }
                               }),
                               threads, stop);
    status = SortAndYield<Entry>(&source, threads, batch, stop);
  }
  for (Part* part : parts) {
    part->u32_ = {};
    part->u64_ = {};
    part->bytes_ = {};
    part->unspilled_ = 0;
    charged_.fetch_sub(std::exchange(part->charged_, 0), std::memory_order_relaxed);
  }
  return status;
}

template <typename Key>
absl::Status RunBuilder::MergeSpilled(std::vector<RunOf> runs, EntryBatch<Key>* batch,
                                      StopFlag* stop) {
  const auto stretches =
      SpillStretches<Key>::Cut(*spill_file_, runs, options_.memory_budget / 2, options_.threads);
  if (stretches) return stretches->Yield(batch, stop);
  // A cursor holds a block twice: as read, and as keys. This many cursors stay in half the budget.
  const size_t fan_in = static_cast<size_t>(
      std::clamp<uint64_t>(options_.memory_budget / (4 * SpillWriter::kBlockBytes), 16, 1024));
  while (runs.size() > fan_in) {
    SpillWriter writer(spill_file_.get());
    const std::function<void(uint64_t)> no_progress;
    EntryBatch<Key> merged(&writer, no_progress, stop);
    RETURN_IF_ERROR(MergeRuns(*spill_file_, absl::MakeConstSpan(runs).first(fan_in), &merged));
    runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(fan_in));
    runs.push_back({writer.Finish(), 0});
  }
  return MergeRuns(*spill_file_, runs, batch);
}

template <typename Key>
absl::Status RunBuilder::Yield(absl::Span<const RowId> bases, EntrySink* sink,
                               const std::function<void(uint64_t)>& on_progress,
                               const std::atomic<bool>* cancelled) {
  uint64_t key_bytes = 0;
  bool unspilled = false;
  std::vector<Part*> parts;
  for (const auto& part : parts_) {
    key_bytes += part->key_bytes_;
    unspilled |= part->unspilled_ > 0;
    parts.push_back(part.get());
  }
  RETURN_IF_ERROR(sink->Begin(entries(), key_bytes));

  StopFlag stop(cancelled);
  EntryBatch<Key> batch(sink, on_progress, &stop);
  if (spilled_.empty()) return SortUnspilled(parts, bases, options_.threads, &batch, &stop);
  std::vector<RunOf> runs;
  for (PartRun& spilled : spilled_) runs.push_back({std::move(spilled.run), bases[spilled.part]});
  if (unspilled) {
    ASSIGN_OR_RETURN(SpillRun last, SpillSorted<Key>(parts, bases, options_.threads, &stop));
    runs.push_back({std::move(last), 0});
  }
  return MergeSpilled(std::move(runs), &batch, &stop);
}

absl::Status RunBuilder::CheckParts(absl::Span<const RowId> base_row_ids) const {
  if (base_row_ids.size() != parts_.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "expected one base row id per part: %d, found %d", parts_.size(), base_row_ids.size()));
  }
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = *parts_[p];
    if (!part.status_.ok()) return part.status_;
    if (!part.finished_) {
      return absl::FailedPreconditionError(absl::StrFormat("part %d is not finished", p));
    }
    const uint64_t end = base_row_ids[p] + static_cast<uint64_t>(part.last_row_ + 1);
    const uint64_t limit = p + 1 < parts_.size() ? base_row_ids[p + 1] : kMaxEntries;
    if (end > limit) {
      return absl::InvalidArgumentError(
          absl::StrFormat("part %d has row ids from %d to %d, expected them below %d", p,
                          base_row_ids[p], end - 1, limit));
    }
  }
  return absl::OkStatus();
}

absl::Status RunBuilder::Finish(absl::Span<const RowId> base_row_ids, EntrySink* sink,
                                const std::function<void(uint64_t)>& on_progress,
                                const std::atomic<bool>* cancelled) try {
  if (finished_) return absl::FailedPreconditionError("a run builder was finished twice");
  RETURN_IF_ERROR(CheckParts(base_row_ids));
  if (!spill_status_.ok()) return spill_status_;
  if (cancelled != nullptr && cancelled->load()) return absl::CancelledError("cancelled");
  finished_ = true;
  switch (kind_) {
    case PhysicalType::kU32:
      return Yield<uint32_t>(base_row_ids, sink, on_progress, cancelled);
    case PhysicalType::kU64:
      return Yield<uint64_t>(base_row_ids, sink, on_progress, cancelled);
    case PhysicalType::kBytes:
      return Yield<std::string_view>(base_row_ids, sink, on_progress, cancelled);
  }
  return absl::InvalidArgumentError("unknown kind of keys");
} catch (...) {
  return StatusOfException(kDoing);
}

}  // namespace cairn
