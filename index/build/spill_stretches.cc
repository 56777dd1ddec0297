#include "index/build/spill_stretches.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "absl/cleanup/cleanup.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/sort/bucket_sort.h"
#include "index/sort/record_sort.h"
#include "index/sort/sort_entry.h"

namespace cairn {
namespace {

template <typename Key>
using EntryOf =
    std::conditional_t<std::is_same_v<Key, uint32_t>, Entry32,
                       std::conditional_t<std::is_same_v<Key, uint64_t>, Entry64, BytesEntry>>;

template <typename Key>
constexpr bool kOfBytes = std::is_same_v<Key, std::string_view>;

// Bytes that a block's entries take in memory, from being read until they are yielded.
template <typename Key>
uint64_t MemoryOf(const SpillBlock& block) {
  return block.entries * sizeof(EntryOf<Key>) + (kOfBytes<Key> ? block.bytes : 0);
}

// The target length of a stretch, if it is many times longer than the bytes that are read twice.
// Stretches that fit in the caches are sorted faster.
constexpr uint64_t kWantedBytes = uint64_t{16} << 20;

}  // namespace

template <typename Key>
typename SpillStretches<Key>::Place SpillStretches<Key>::FirstOf(const SpillBlock& block,
                                                                 RowId base) {
  const RowId row_id = block.first.row_id + base;
  if constexpr (kOfBytes<Key>) {
    return {block.first.bytes, row_id};
  } else {
    return {static_cast<Key>(block.first.number), row_id};
  }
}

// Cuts so that no stretch takes more than `stretch_bytes`: all blocks that begin in it, and one
// block per run that began before it. Returns nothing if that is impossible.
template <typename Key>
std::optional<std::vector<typename SpillStretches<Key>::Place>> SpillStretches<Key>::CutWithin(
    absl::Span<const RunOf> runs, uint64_t stretch_bytes) {
  struct Begin {
    Place first;
    uint64_t bytes;
    bool whole;
  };
  std::vector<Begin> begins;
  uint64_t begun_before = 0;
  for (const RunOf& run : runs) {
    uint64_t most = 0;
    for (const SpillBlock& block : run.run.blocks) {
      begins.push_back({FirstOf(block, run.base), MemoryOf<Key>(block), block.first.whole()});
      most = std::max(most, begins.back().bytes);
    }
    begun_before += most;
  }
  std::sort(begins.begin(), begins.end(),
            [](const Begin& a, const Begin& b) { return a.first < b.first; });
  const uint64_t wanted = std::min(stretch_bytes, std::max(kWantedBytes, 4 * begun_before));
  std::vector<Place> cuts;
  uint64_t bytes = begun_before;
  for (const Begin& begin : begins) {
    if (begin.whole && bytes > begun_before && bytes + begin.bytes > wanted) {
      cuts.push_back(begin.first);
      bytes = begun_before;
    }
    bytes += begin.bytes;
    if (bytes > stretch_bytes) return std::nullopt;
  }
  return cuts;
}

template <typename Key>
std::optional<SpillStretches<Key>> SpillStretches<Key>::Cut(const SpillFile& file,
                                                            absl::Span<const RunOf> runs,
                                                            uint64_t memory, int threads) {
  for (threads = std::max(threads, 1); threads > 0; threads /= 2) {
    auto cuts = CutWithin(runs, memory / InMemory(threads));
    if (cuts) return SpillStretches(file, runs, *std::move(cuts), threads);
  }
  return std::nullopt;
}

// The entries of all runs in one stretch.
template <typename Key>
class SpillStretches<Key>::Stretch {
 public:
  using Entry = EntryOf<Key>;

  // The stretch begins at `from` and ends before `to`. If null, it begins with the first entry, or
  // ends with the last.
  absl::Status Read(const SpillFile& file, absl::Span<const RunOf> runs, const Place* from,
                    const Place* to) {
    std::vector<std::pair<size_t, size_t>> blocks;
    size_t entries = 0;
    for (const RunOf& run : runs) {
      blocks.push_back(BlocksOf(run, from, to));
      for (size_t b = blocks.back().first; b < blocks.back().second; ++b) {
        file.WillRead(run.run.blocks[b]);
        entries += run.run.blocks[b].entries;
      }
    }
    entries_.reserve(entries);
    for (size_t r = 0; r < runs.size(); ++r) {
      const RunOf& run = runs[r];
      for (size_t b = blocks[r].first; b < blocks[r].second; ++b) {
        const SpillBlock& block = run.run.blocks[b];
        // Most blocks lie within the stretch.
        const bool begins_within = from == nullptr || !(FirstOf(block, run.base) < *from);
        const bool ends_within =
            to == nullptr ||
            (b + 1 < run.run.blocks.size() && !(*to < FirstOf(run.run.blocks[b + 1], run.base)));
        RETURN_IF_ERROR(ReadBlock(file, block, run.base, begins_within ? nullptr : from,
                                  ends_within ? nullptr : to));
      }
    }
    return absl::OkStatus();
  }

  void Sort() {
    const absl::Span<Entry> entries = absl::MakeSpan(entries_);
    if constexpr (kOfBytes<Key>) {
      if (!entries.empty()) SortRecords(entries, TakePartialKeys(entries, 0));
    } else {
      SortBucket(entries);
    }
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  // The blocks of a run that may have entries of the stretch. The kept prefix of a long key
  // compares with a place as the key does, since places' keys are shorter.
  static std::pair<size_t, size_t> BlocksOf(const RunOf& run, const Place* from, const Place* to) {
    const auto& blocks = run.run.blocks;
    // The first block that begins at or after `place`.
    const auto first_at = [&](const Place& place) {
      return static_cast<size_t>(std::partition_point(blocks.begin(), blocks.end(),
                                                      [&](const SpillBlock& block) {
                                                        return FirstOf(block, run.base) < place;
                                                      }) -
                                 blocks.begin());
    };
    // The block before it has further entries after its first one.
    const size_t begin = from == nullptr ? 0 : first_at(*from);
    return {begin > 0 ? begin - 1 : 0, to == nullptr ? blocks.size() : first_at(*to)};
  }

  absl::Status ReadBlock(const SpillFile& file, const SpillBlock& block, RowId base,
                         const Place* from, const Place* to) {
    AlignedBuffer<char> bytes(block.bytes + KeyRecord::kSlack);
    RETURN_IF_ERROR(file.Read(block, bytes.data()));
    const auto within = [&](Key key, RowId row_id) {
      const Place place(key, row_id);
      return (from == nullptr || !(place < *from)) && (to == nullptr || place < *to);
    };
    if constexpr (kOfBytes<Key>) {
      char* record = bytes.data();
      for (size_t i = 0; i < block.entries; ++i) {
        const std::string_view key = KeyRecord::GetKey(record);
        const RowId row_id = KeyRecord::GetRowId(record) + base;
        KeyRecord::SetRowId(record, row_id);
        if (within(key, row_id)) entries_.push_back({record, 0});
        record += KeyRecord::Bytes(key.size());
      }
      records_.push_back(std::move(bytes));
    } else {
      const char* const keys = bytes.data();
      const char* const rows = keys + block.entries * sizeof(Key);
      for (size_t i = 0; i < block.entries; ++i) {
        Key key;
        RowId row_id;
        std::memcpy(&key, keys + i * sizeof key, sizeof key);
        std::memcpy(&row_id, rows + i * sizeof row_id, sizeof row_id);
        row_id += base;
        if (within(key, row_id)) entries_.push_back(Entry::Make(key, row_id));
      }
    }
    return absl::OkStatus();
  }

  std::vector<Entry> entries_;
  std::vector<AlignedBuffer<char>> records_;  // entries of bytes point to them
};

template <typename Key>
absl::Status SpillStretches<Key>::Yield(EntryBatch<Key>* batch, StopFlag* stop) const {
  std::vector<Stretch> stretches(size());
  OrderedYield yield(size(), [&](size_t i) {
    for (const EntryOf<Key>& entry : stretches[i].entries())
      batch->Add(entry.key(), entry.row_id());
    if (kOfBytes<Key>) batch->Flush();  // its keys point into the stretch
    stretches[i] = {};
  });
  Mutex mutex;
  absl::Status status;
  ParallelFor(threads_, size(), [&](size_t i) {
    auto give_up = absl::MakeCleanup([&] { yield.GiveUp(); });
    if (!yield.MayBegin(i, InMemory(threads_)) || stop->stopped()) return;
    const absl::Status read = stretches[i].Read(file_, runs_, i == 0 ? nullptr : &cuts_[i - 1],
                                                i == cuts_.size() ? nullptr : &cuts_[i]);
    if (!read.ok()) {
      stop->Stop();
      const MutexLock lock(&mutex);
      status.Update(read);
      return;
    }
    stretches[i].Sort();
    yield.Sorted(i);
    std::move(give_up).Cancel();
  });
  RETURN_IF_ERROR(status);
  batch->Flush();
  return batch->status();
}

template class SpillStretches<uint32_t>;
template class SpillStretches<uint64_t>;
template class SpillStretches<std::string_view>;

}  // namespace cairn
