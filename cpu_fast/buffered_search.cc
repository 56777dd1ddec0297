#include "cpu_fast/buffered_search.h"

#include <algorithm>
#include <cstddef>

#include "index/run_columns.h"

namespace cairn {
namespace {

// Queries whose parts are found in step.
constexpr size_t kGroup = 64;

// A part that expects fewer queries than this is not worth a buffer of its own: an index needs as
// many at a time to hide its cache misses.
constexpr size_t kLeastPerPart = 64;

template <typename Key>
class PartBuffers {
  using Role = StrategyScratch::Role;

 public:
  // `parts` is a power of two, at least 2; `keys`, the run's, are not empty.
  PartBuffers(const OrderedIndex& index, Answer answer, absl::Span<const Key> keys, size_t parts,
              size_t capacity, StrategyScratch* scratch, absl::Span<uint32_t> out)
      : index_(index),
        answer_(answer),
        parts_(parts),
        capacity_(capacity),
        separators_(scratch->Take<Key>(Role::kSeparators, parts - 1)),
        fill_(scratch->Take<uint32_t>(Role::kFill, parts)),
        keys_(scratch->Take<Key>(Role::kKeys, parts * capacity)),
        slots_(scratch->Take<uint32_t>(Role::kSlots, parts * capacity)),
        answers_(scratch->Take<uint32_t>(Role::kAnswers, capacity)),
        out_(out) {
    for (size_t i = 0; i + 1 < parts; ++i) separators_[i] = keys[(i + 1) * keys.size() / parts];
    std::fill(fill_.begin(), fill_.end(), 0);
  }

  absl::Status Run(absl::Span<const Key> queries) {
    uint16_t parts[kGroup];
    for (size_t first = 0; first < queries.size(); first += kGroup) {
      const size_t count = std::min(kGroup, queries.size() - first);
      FindParts(queries.subspan(first, count), parts);
      for (size_t j = 0; j < count; ++j) {
        const size_t part = parts[j];
        const size_t at = part * capacity_ + fill_[part]++;
        keys_[at] = queries[first + j];
        slots_[at] = static_cast<uint32_t>(first + j);
        if (fill_[part] < capacity_) continue;
        if (absl::Status s = RunPart(part); !s.ok()) return s;
      }
    }
    for (size_t part = 0; part < parts_; ++part) {
      if (absl::Status s = RunPart(part); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  // A query's part is the number of separators below it.
  void FindParts(absl::Span<const Key> queries, uint16_t* parts) const {
    std::fill_n(parts, queries.size(), 0);
    for (size_t half = parts_ / 2; half > 0; half /= 2) {
      for (size_t j = 0; j < queries.size(); ++j) {
        // A mask, since compilers make a branch of a conditional.
        const size_t less = separators_[parts[j] + half - 1] < queries[j];
        parts[j] = static_cast<uint16_t>(parts[j] + (half & (0 - less)));
      }
    }
  }

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
  const size_t parts_;
  const size_t capacity_;  // of a buffer, in queries
  // separators_[i] is the first key of part i + 1, unless that key repeats: then parts i and i + 1
  // share its entries. Any separators would do, since a part is searched in the whole index.
  const absl::Span<Key> separators_;
  const absl::Span<uint32_t> fill_;   // [parts_] queries in each buffer
  const absl::Span<Key> keys_;        // [parts_][capacity_] the buffers: queries,
  const absl::Span<uint32_t> slots_;  // and which of the batch they are
  const absl::Span<uint32_t> answers_;
  const absl::Span<uint32_t> out_;
};

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
      return PartBuffers<uint32_t>(index, answer, index.run().u32(), parts, capacity, scratch, out)
          .Run(keys.u32());
    case KeyKind::kU64:
      return PartBuffers<uint64_t>(index, answer, index.run().u64(), parts, capacity, scratch, out)
          .Run(keys.u64());
    case KeyKind::kBytes:
      break;
  }
  return absl::UnimplementedError("buffered search takes keys of u32 or u64, not bytes");
}

}  // namespace cairn
