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

// Queries at the same step of their lookup.
constexpr size_t kBlock = 16;

// Of a table of 10^9 keys one seed in some forty is none.
constexpr uint64_t kMostSeeds = 4;

// Entries that one task reads.
constexpr size_t kEntriesATask = size_t{1} << 16;

// A record, in words of 4 bytes: the first row; the key's length, and whether it has several rows;
// if so, the position of the first; the key, padded.
constexpr size_t kMostWords = UINT32_MAX;
constexpr uint32_t kSeveral = uint32_t{1} << 31;

constexpr size_t KeyWords(size_t bytes) {
  return (bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
}

constexpr size_t RecordWords(std::string_view key, bool several) {
  return key.size() >= kSeveral ? kMostWords + 1 : (several ? 3 : 2) + KeyWords(key.size());
}

uint64_t HashOf(std::string_view key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

// Calls take(position, key, several) for each distinct key of some entries.
template <typename Take>
void ForEachKey(const KeyReader& keys, size_t entries, size_t task, Take take) {
  const size_t last = std::min((task + 1) * kEntriesATask, entries);
  for (size_t i = task * kEntriesATask; i < last; ++i) {
    const std::string_view key = keys[i];
    if (i > 0 && keys[i - 1] == key) continue;
    take(i, key, i + 1 < entries && keys[i + 1] == key);
  }
}

// Where the keys and the records of each task begin, and where the last ones end.
struct Plan {
  std::vector<size_t> keys, words;

  Plan(const KeyReader& reader, size_t entries, int threads)
      : keys((entries + kEntriesATask - 1) / kEntriesATask + 1), words(keys.size()) {
    ParallelFor(threads, tasks(), [&](size_t task) {
      ForEachKey(reader, entries, task, [&](size_t, std::string_view key, bool several) {
        ++keys[task + 1];
        words[task + 1] += RecordWords(key, several);
      });
    });
    for (size_t task = 0; task < tasks(); ++task) {
      keys[task + 1] += keys[task];
      words[task + 1] += words[task];
    }
  }
  size_t tasks() const { return keys.size() - 1; }
};

}  // namespace

std::optional<KeyHash> KeyHash::Build(const SortedRun& run, const KeyReader& keys, int threads) {
  if (run.empty()) return std::nullopt;
  const Plan plan(keys, run.size(), threads);
  if (plan.words.back() > kMostWords) return std::nullopt;
  AlignedBuffer<uint32_t> records(plan.words.back());
  AlignedBuffer<uint32_t> begins(plan.keys.back());
  AlignedBuffer<uint64_t> hashes(plan.keys.back());
  for (uint64_t seed = 1; seed <= kMostSeeds; ++seed) {
    ParallelFor(threads, plan.tasks(), [&](size_t task) {
      size_t n = plan.keys[task], at = plan.words[task];
      ForEachKey(keys, run.size(), task, [&](size_t i, std::string_view key, bool several) {
        hashes[n] = HashOf(key, seed);
        begins[n++] = static_cast<uint32_t>(at);
        records[at++] = run.row_ids()[i];
        records[at++] = static_cast<uint32_t>(key.size()) | (several ? kSeveral : 0);
        if (several) records[at++] = static_cast<uint32_t>(i);
        if (key.empty()) return;
        const size_t end = at + KeyWords(key.size());
        records[end - 1] = 0;
        std::memcpy(&records[at], key.data(), key.size());
        at = end;
      });
    });
    auto table = PilotTable::Build(hashes.span(), begins.span(), threads);
    if (table.has_value()) return KeyHash(std::move(records), seed, *std::move(table));
  }
  return std::nullopt;
}

// Calls emit(i, record) for each query, with null where it is not there. Steps of blocks of queries
// alternate, so that one computes while others wait for memory.
template <typename Emit>
void KeyHash::ForEach(absl::Span<const std::string_view> queries, Emit emit) const {
  constexpr size_t kSteps = 4;
  struct Block {
    uint64_t hashes[kBlock];
    size_t at[kBlock];  // the number of a bucket, of a slot, of a word
  };
  Block in_flight[kSteps];
  const size_t blocks = (queries.size() + kBlock - 1) / kBlock;
  for (size_t turn = 0; turn < blocks + kSteps - 1; ++turn) {
    for (size_t step = 0; step < kSteps; ++step) {
      if (turn < step || turn - step >= blocks) continue;
      Block& block = in_flight[(turn - step) % kSteps];
      const size_t first = (turn - step) * kBlock;
      const auto some = queries.subspan(first, kBlock);
      switch (step) {
        case 0:
          for (size_t i = 0; i < some.size(); ++i) {
            block.hashes[i] = HashOf(some[i], seed_);
            const uint32_t bucket = table_.Bucket(block.hashes[i]);
            table_.PrefetchPilot(bucket);
            block.at[i] = bucket;
          }
          break;
        case 1:
          for (size_t i = 0; i < some.size(); ++i) {
            block.at[i] = table_.Slot(block.hashes[i], static_cast<uint32_t>(block.at[i]));
            table_.PrefetchSlot(block.at[i]);
          }
          break;
        case 2:
          for (size_t i = 0; i < some.size(); ++i) {
            block.at[i] = table_.Value(block.at[i]);
            PrefetchBytes(records_.data() + block.at[i], 3 * sizeof(uint32_t) + some[i].size());
          }
          break;
        default:
          for (size_t i = 0; i < some.size(); ++i) {
            const uint32_t* const record = records_.data() + block.at[i];
            const auto* const key =
                reinterpret_cast<const char*>(record + (record[1] & kSeveral ? 3 : 2));
            const bool found = Equal({key, record[1] & ~kSeveral}, some[i]);
            emit(first + i, found ? record : nullptr);
          }
      }
    }
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
