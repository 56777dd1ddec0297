#include "cpu_fast/buffered_search.h"

#include <algorithm>
#include <cstddef>

#include "cpu_fast/part_map.h"

namespace cairn {
namespace {

// A part that expects fewer queries than this is not worth a buffer of its own: an index needs as
// many at a time to hide its cache misses.
constexpr size_t kLeastPerPart = 64;

template <typename Key>
class PartBuffers {
  using Role = StrategyScratch::Role;

 public:
  PartBuffers(const OrderedIndex& index, Answer answer, const PartMap<Key>& map, size_t capacity,
              StrategyScratch* scratch, absl::Span<uint32_t> out)
      : index_(index),
        answer_(answer),
        map_(map),
        capacity_(capacity),
        fill_(scratch->Take<uint32_t>(Role::kFill, map.parts())),
        keys_(scratch->Take<Key>(Role::kKeys, map.parts() * capacity)),
        slots_(scratch->Take<uint32_t>(Role::kSlots, map.parts() * capacity)),
        answers_(scratch->Take<uint32_t>(Role::kAnswers, capacity)),
        out_(out) {
    std::fill(fill_.begin(), fill_.end(), 0);
  }

  absl::Status Run(absl::Span<const Key> queries) {
    for (size_t i = 0; i < queries.size(); ++i) {
      const size_t part = map_.PartOf(queries[i]);
      const size_t at = part * capacity_ + fill_[part];
      keys_[at] = queries[i];
      slots_[at] = static_cast<uint32_t>(i);
      if (++fill_[part] < capacity_) continue;
      if (absl::Status s = RunPart(part); !s.ok()) return s;
    }
    for (size_t part = 0; part < map_.parts(); ++part) {
      if (absl::Status s = RunPart(part); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunPart(size_t part) {
    const size_t count = fill_[part];
    const size_t begin = part * capacity_;
    const absl::Span<uint32_t> answers = answers_.subspan(0, count);
    fill_[part] = 0;
    if (absl::Status s =
            AnswerBatch(index_, answer_, BatchOf(keys_.subspan(begin, count)), answers);
        !s.ok()) {
      return s;
    }
    for (size_t i = 0; i < count; ++i) out_[slots_[begin + i]] = answers[i];
    return absl::OkStatus();
  }

  const OrderedIndex& index_;
  const Answer answer_;
  const PartMap<Key>& map_;
  const size_t capacity_;             // of a buffer, in queries
  const absl::Span<uint32_t> fill_;   // [parts] queries in each buffer
  const absl::Span<Key> keys_;        // [parts][capacity_] the buffers: queries,
  const absl::Span<uint32_t> slots_;  // and which of the batch they are
  const absl::Span<uint32_t> answers_;
  const absl::Span<uint32_t> out_;
};

template <typename Key>
absl::Status Search(const OrderedIndex& index, Answer answer, absl::Span<const Key> keys,
                    absl::Span<const Key> queries, size_t parts, size_t capacity,
                    StrategyScratch* scratch, absl::Span<uint32_t> out) {
  PartMap<Key>& map = scratch->part_map<Key>();
  map.Prepare(keys, parts);
  return PartBuffers<Key>(index, answer, map, capacity, scratch, out).Run(queries);
}

}  // namespace

absl::Status BufferedSearch(const OrderedIndex& index, Answer answer, KeyBatch keys,
                            const StrategyOptions& options, StrategyScratch* scratch,
                            absl::Span<uint32_t> out) {
  size_t parts = options.parts;
  while (parts > 1 && keys.size() / parts < kLeastPerPart) parts /= 2;
  if (parts == 1 || index.run().empty()) return AnswerBatch(index, answer, keys, out);
  // No buffer need hold more than the batch.
  const size_t capacity = std::min(options.buffer, keys.size());
  switch (index.run().kind()) {
    case KeyKind::kU32:
      return Search(index, answer, index.run().u32(), keys.u32(), parts, capacity, scratch, out);
    case KeyKind::kU64:
      return Search(index, answer, index.run().u64(), keys.u64(), parts, capacity, scratch, out);
    case KeyKind::kBytes:
      break;
  }
  return absl::UnimplementedError("buffered search takes keys of u32 or u64, not bytes");
}

}  // namespace cairn
