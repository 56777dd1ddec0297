#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "gpu/host/string_source.h"

namespace cairn::gpu {

// BoundKeys for ranges of byte strings: two keys per range to find the lower bounds of, first the
// beginnings of all ranges, then their ends. The next key after a key is the key plus one zero
// byte. The next key after all keys with a prefix is the prefix, truncated after its last byte that
// is not 0xFF, with that byte incremented.
class BoundStrings {
 public:
  explicit BoundStrings(const RangeBatch& ranges)
      : ranges_(ranges), lower_(ranges.lower.bytes()), upper_(ranges.upper.bytes()) {}

  // Key i of 2 * ranges.size().
  StringKey operator()(size_t i) const {
    const size_t size = ranges_.size();
    if (i < size) {
      const Bound bound = ranges_.lower_bound_of(i);
      return {bound == Bound::kOpen ? std::string_view() : lower_[i],
              bound == Bound::kExclusive ? 0 : StringKey::kNoByte};
    }
    i -= size;
    switch (ranges_.upper_bound_of(i)) {
      case Bound::kInclusive:
        return {upper_[i], 0};
      case Bound::kExclusive:
        return {upper_[i], StringKey::kNoByte};
      case Bound::kOpen:
        break;
      case Bound::kPrefix: {
        const std::string_view prefix = WithoutGreatest(lower_[i]);
        if (prefix.empty()) break;
        return {prefix.substr(0, prefix.size() - 1), static_cast<unsigned char>(prefix.back()) + 1};
      }
    }
    return {};
  }

  // Converts the lower bounds of all keys to positions in a run of `entries` entries.
  void Finish(const Position* bounds, size_t entries, absl::Span<Position> begin,
              absl::Span<Position> end) const {
    const Position last = static_cast<Position>(entries);
    const size_t size = ranges_.size();
    for (size_t i = 0; i < size; ++i) {
      const Bound upper = ranges_.upper_bound_of(i);
      const bool to_the_end =
          upper == Bound::kOpen || (upper == Bound::kPrefix && WithoutGreatest(lower_[i]).empty());
      const Position from = ranges_.lower_bound_of(i) == Bound::kOpen ? 0 : bounds[i];
      const Position to = to_the_end ? last : bounds[size + i];
      begin[i] = from;
      end[i] = std::max(from, to);  // ranges with crossed ends are empty
    }
  }

 private:
  // The prefix without trailing 0xFF bytes; empty if every key is before the prefix or starts with
  // it.
  static std::string_view WithoutGreatest(std::string_view prefix) {
    while (!prefix.empty() && prefix.back() == '\xff') prefix.remove_suffix(1);
    return prefix;
  }

  const RangeBatch& ranges_;
  const absl::Span<const std::string_view> lower_, upper_;
};

}  // namespace cairn::gpu
