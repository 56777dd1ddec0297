#include "cpu_fast/strings/key_hash.h"

#include <algorithm>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/strings/string_compare.h"

namespace cairn {
namespace {

// Queries that take a step of their lookup between two steps of any one query.
constexpr size_t kAhead = 16;

// For a table of 10^9 keys, about one seed in forty fails.
constexpr uint64_t kMaxSeeds = 4;

// Entries that one task reads, or slots that it fills.
constexpr size_t kATask = size_t{1} << 16;

// A record, in words of 4 bytes: the first row id; the key's length, with kSeveral set if the key
// has several rows; if so, the position of the first; the key, padded.
constexpr size_t kMaxWords = UINT32_MAX;
constexpr uint32_t kSeveral = uint32_t{1} << 31;

// Maximum additional words per key of records in slots, including padding and empty slots. The
// comparison is with consecutive records whose offsets are in slots.
constexpr size_t kMaxMoreWords = 2;

constexpr size_t KeyWords(size_t bytes) {
  return (bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
}

constexpr size_t RecordWords(std::string_view key, bool several) {
  return key.size() >= kSeveral ? kMaxWords + 1 : (several ? 3 : 2) + KeyWords(key.size());
}

// Writes RecordWords(key, several) words.
void WriteRecord(std::string_view key, RowId row, size_t first, bool several, uint32_t* record) {
  *record++ = row;
  *record++ = static_cast<uint32_t>(key.size()) | (several ? kSeveral : 0);
  if (several) *record++ = static_cast<uint32_t>(first);
  if (key.empty()) return;
  record[KeyWords(key.size()) - 1] = 0;
  std::memcpy(record, key.data(), key.size());
}

uint64_t HashOf(std::string_view key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

bool HasSeveral(const KeyReader& keys, size_t entries, size_t first) {
  return first + 1 < entries && keys[first + 1] == keys[first];
}

// Calls take(position, key, several) for each distinct key among the entries of a task.
template <typename Take>
void ForEachKey(const KeyReader& keys, size_t entries, size_t task, Take take) {
  const size_t last = std::min((task + 1) * kATask, entries);
  for (size_t i = task * kATask; i < last; ++i) {
    const std::string_view key = keys[i];
    if (i > 0 && keys[i - 1] == key) continue;
    take(i, key, HasSeveral(keys, entries, i));
  }
}

// The layout of the records.
struct Plan {
  std::vector<size_t> keys, words;  // where those of each task begin, and the end of the last
  size_t max_words = 0;             // of the longest record

  Plan(const KeyReader& reader, size_t entries, int threads)
      : keys((entries + kATask - 1) / kATask + 1), words(keys.size()) {
    std::vector<size_t> most(tasks());
    ParallelFor(threads, tasks(), [&](size_t task) {
      ForEachKey(reader, entries, task, [&](size_t, std::string_view key, bool several) {
        const size_t of_key = RecordWords(key, several);
        ++keys[task + 1];
        words[task + 1] += of_key;
        most[task] = std::max(most[task], of_key);
      });
    });
    for (size_t task = 0; task < tasks(); ++task) {
      keys[task + 1] += keys[task];
      words[task + 1] += words[task];
      max_words = std::max(max_words, most[task]);
    }
  }
  size_t tasks() const { return keys.size() - 1; }
  bool is_possible() const { return max_words <= kMaxWords; }
  // Words of a slot that can hold any record, or 0 if records should follow one another instead.
  size_t words_a_slot() const {
    const size_t slots = PilotTable::SlotsFor(keys.back());
    return slots * max_words <= words.back() + slots + keys.back() * kMaxMoreWords ? max_words : 0;
  }
};

}  // namespace

std::optional<KeyHash> KeyHash::Build(const SortedRun& run, const KeyReader& keys, int threads) {
  if (run.empty()) return std::nullopt;
  const Plan plan(keys, run.size(), threads);
  const size_t words_a_slot = plan.words_a_slot();
  const bool in_slots = words_a_slot != 0;
  if (!plan.is_possible() || (!in_slots && plan.words.back() > kMaxWords)) return std::nullopt;

  AlignedBuffer<uint32_t> records(in_slots ? 0 : plan.words.back());
  AlignedBuffer<uint32_t> values(plan.keys.back());
  AlignedBuffer<uint64_t> hashes(plan.keys.back());
  std::optional<PilotTable> table;
  uint64_t seed = 0;
  while (!table.has_value()) {
    if (seed == kMaxSeeds) return std::nullopt;
    ++seed;
    ParallelFor(threads, plan.tasks(), [&](size_t task) {
      size_t n = plan.keys[task], at = plan.words[task];
      ForEachKey(keys, run.size(), task, [&](size_t i, std::string_view key, bool several) {
        hashes[n] = HashOf(key, seed);
        values[n++] = static_cast<uint32_t>(in_slots ? i : at);
        if (in_slots) return;
        WriteRecord(key, run.row_ids()[i], i, several, &records[at]);
        at += RecordWords(key, several);
      });
    });
    table = PilotTable::Build(hashes.span(), values.span(), threads);
  }
  if (!in_slots) return KeyHash(std::move(records), 0, seed, *std::move(table));

  const AlignedBuffer<uint32_t> firsts = table->TakeSlots();
  records = AlignedBuffer<uint32_t>(firsts.size() * words_a_slot);
  ParallelFor(threads, (firsts.size() + kATask - 1) / kATask, [&](size_t task) {
    const size_t last = std::min((task + 1) * kATask, firsts.size());
    for (size_t slot = task * kATask; slot < last; ++slot) {
      const size_t i = firsts[slot];
      WriteRecord(keys[i], run.row_ids()[i], i, HasSeveral(keys, run.size(), i),
                  &records[slot * words_a_slot]);
    }
  });
  return KeyHash(std::move(records), words_a_slot, seed, *std::move(table));
}

// Calls emit(i, record) for each query, with a null record if the key does not exist. Between two
// steps of a query's lookup, kAhead other queries take a step, while the data that the next step
// reads arrives from memory.
template <bool kInSlots, typename Emit>
void KeyHash::ForEachIn(absl::Span<const std::string_view> queries, Emit emit) const {
  struct InFlight {
    uint64_t hash;
    size_t at;  // index of a bucket, then of a slot, then of a word
  };
  InFlight ring[4 * kAhead];
  const auto in_flight = [&](size_t i) -> InFlight& { return ring[i % (4 * kAhead)]; };
  const auto prefetch_record = [&](size_t i) {
    const size_t bytes = 3 * sizeof(uint32_t) + queries[i].size();
    PrefetchBytes(records_.data() + in_flight(i).at,
                  kInSlots ? std::min(bytes, words_a_slot_ * sizeof(uint32_t)) : bytes);
  };
  const auto hash = [&](size_t i) {
    InFlight& query = in_flight(i);
    query.hash = HashOf(queries[i], seed_);
    query.at = table_.Bucket(query.hash);
    table_.PrefetchPilot(static_cast<uint32_t>(query.at));
  };
  const auto choose_slot = [&](size_t i) {
    InFlight& query = in_flight(i);
    query.at = table_.Slot(query.hash, static_cast<uint32_t>(query.at));
    if (kInSlots) {
      query.at *= words_a_slot_;
      prefetch_record(i);
    } else {
      table_.PrefetchSlot(query.at);
    }
  };
  const auto read_slot = [&](size_t i) {
    in_flight(i).at = table_.Value(in_flight(i).at);
    prefetch_record(i);
  };
  const auto compare = [&](size_t i) {
    const uint32_t* const record = records_.data() + in_flight(i).at;
    const auto* const key = reinterpret_cast<const char*>(record + (record[1] & kSeveral ? 3 : 2));
    emit(i, Equal({key, record[1] & ~kSeveral}, queries[i]) ? record : nullptr);
  };
  constexpr size_t kSteps = kInSlots ? 3 : 4;
  for (size_t turn = 0; turn < queries.size() + (kSteps - 1) * kAhead; ++turn) {
    // Indexes before the first query wrap around to values past the last query.
    if (const size_t i = turn; i < queries.size()) hash(i);
    if (const size_t i = turn - kAhead; i < queries.size()) choose_slot(i);
    if (const size_t i = turn - 2 * kAhead; !kInSlots && i < queries.size()) read_slot(i);
    if (const size_t i = turn - (kSteps - 1) * kAhead; i < queries.size()) compare(i);
  }
}

template <typename Emit>
void KeyHash::ForEach(absl::Span<const std::string_view> queries, Emit emit) const {
  if (words_a_slot_ != 0) {
    ForEachIn<true>(queries, emit);
  } else {
    ForEachIn<false>(queries, emit);
  }
}

void KeyHash::Find(absl::Span<const std::string_view> queries, Entry* entries) const {
  ForEach(queries, [&](size_t i, const uint32_t* record) {
    entries[i] = {kNoRow, kNoRow};
    if (record != nullptr) entries[i] = {record[0], record[1] & kSeveral ? record[2] : kNoRow};
  });
}

void KeyHash::FindFirst(absl::Span<const std::string_view> queries, RowId* row_ids) const {
  ForEach(queries, [&](size_t i, const uint32_t* record) {
    row_ids[i] = record == nullptr ? kNoRow : record[0];
  });
}

void KeyHash::Contains(absl::Span<const std::string_view> queries, bool* found) const {
  ForEach(queries, [&](size_t i, const uint32_t* record) { found[i] = record != nullptr; });
}

}  // namespace cairn
