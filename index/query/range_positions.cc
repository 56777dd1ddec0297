#include "index/query/range_positions.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "index/query/physical_key.h"
#include "index/run/gallop.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// The size of the buffer for the successors of a chunk's prefixes. Longer ones are found by
// galloping.
constexpr size_t kSuccessorBytes = 4096;

// A chunk's upper keys, with every prefix replaced by its successor: the lowest string that is
// greater than all strings with that prefix.
class Successors {
 public:
  // Requires at most kQueryChunk keys.
  KeyBatch Make(const RangeBatch& ranges, size_t first, size_t count) {
    const absl::Span<const std::string_view> lower = ranges.lower.bytes();
    const absl::Span<const std::string_view> upper = ranges.upper.bytes();
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
      how_[i] = How::kKey;
      keys_[i] = upper[first + i];
      if (ranges.upper_bound_of(first + i) != Bound::kPrefix) continue;
      std::string_view prefix = lower[first + i];
      while (!prefix.empty() && prefix.back() == '\xff') prefix.remove_suffix(1);
      if (prefix.empty()) {
        how_[i] = How::kEnd;
        keys_[i] = {};
      } else if (prefix.size() > kSuccessorBytes - used) {
        how_[i] = How::kGallop;
        keys_[i] = lower[first + i];
      } else {
        char* copy = bytes_ + used;
        std::memcpy(copy, prefix.data(), prefix.size());
        ++copy[prefix.size() - 1];
        used += prefix.size();
        keys_[i] = {copy, prefix.size()};
      }
    }
    return absl::MakeConstSpan(keys_, count);
  }

  // Turns the lower bounds of these keys into the ends of their ranges.
  void Finish(const RangeBatch& ranges, size_t first, const SortedRun& run,
              absl::Span<Position> ends) const {
    for (size_t i = 0; i < ends.size(); ++i) {
      if (how_[i] == How::kEnd) ends[i] = static_cast<Position>(run.size());
      if (how_[i] != How::kGallop) continue;
      const std::string_view prefix = ranges.lower.bytes()[first + i];
      ends[i] = static_cast<Position>(Gallop(
          ends[i], run.size(), [&](size_t p) { return StartsWith(run.bytes()[p], prefix); }));
    }
  }

 private:
  enum class How : uint8_t { kKey, kEnd, kGallop };

  std::string_view keys_[kQueryChunk];
  How how_[kQueryChunk];
  char bytes_[kSuccessorBytes];
};

// The kinds of bounds that one end of a chunk's ranges has.
struct BoundsPresent {
  bool inclusive = false, exclusive = false, open = false, prefix = false;

  void Add(Bound bound) {
    inclusive |= bound == Bound::kInclusive;
    exclusive |= bound == Bound::kExclusive;
    open |= bound == Bound::kOpen;
    prefix |= bound == Bound::kPrefix;
  }
  bool all_open() const { return !inclusive && !exclusive && !prefix; }
};

// Whether both batches are views of the same keys.
bool SameKeys(const KeyBatch& a, const KeyBatch& b) {
  return WithPhysicalKey(a.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    return a.as<Key>().data() == b.as<Key>().data();
  });
}

}  // namespace

void RangePositions(const SortedRun& run,
                    absl::FunctionRef<void(KeyBatch keys, Position* positions)> lower_bound,
                    const RangeBatch& ranges, size_t first, absl::Span<Position> begin,
                    absl::Span<Position> end) {
  const size_t count = begin.size();
  const auto lower_bound_of = [&](size_t i) { return ranges.lower_bound_of(first + i); };
  const auto upper_bound_of = [&](size_t i) { return ranges.upper_bound_of(first + i); };
  BoundsPresent lower, upper;
  for (size_t i = 0; i < count; ++i) {
    lower.Add(lower_bound_of(i));
    upper.Add(upper_bound_of(i));
  }
  const KeyBatch lower_keys = ranges.lower.Slice(first, count);
  const KeyBatch upper_keys = ranges.upper.Slice(first, count);

  if (lower.all_open()) {
    std::fill(begin.begin(), begin.end(), 0);
  } else {
    lower_bound(lower_keys, begin.data());
  }

  // Ranges of one key each need one search: their ends are found from their starts.
  const bool one_key = SameKeys(lower_keys, upper_keys) && !upper.prefix;
  if (upper.prefix) {
    Successors successors;
    lower_bound(successors.Make(ranges, first, count), end.data());
    successors.Finish(ranges, first, run, end);
  } else if (one_key && !lower.all_open()) {
    std::copy(begin.begin(), begin.end(), end.begin());
  } else if (!upper.all_open()) {
    lower_bound(upper_keys, end.data());
  }

  WithColumn(run, [&](const auto& column) {
    if (lower.exclusive) {
      SkipEqual(column, run.size(), lower_keys, begin,
                [&](size_t i) { return lower_bound_of(i) == Bound::kExclusive; });
    }
    if (upper.inclusive) {
      SkipEqual(column, run.size(), upper_keys, end,
                [&](size_t i) { return upper_bound_of(i) == Bound::kInclusive; });
    }
  });
  for (size_t i = 0; i < count; ++i) {
    if (lower.open && lower_bound_of(i) == Bound::kOpen) begin[i] = 0;
    if (upper.open && upper_bound_of(i) == Bound::kOpen) end[i] = static_cast<Position>(run.size());
    end[i] = std::max(begin[i], end[i]);  // crossed ends contain nothing
  }
}

}  // namespace cairn
