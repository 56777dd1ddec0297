#include "engine/util/cursor_tag.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"
#include "index/files/checksum.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Operations whose ranges have cursors. A number of leading parts is added to the last one.
constexpr uint64_t kAscendingScan = 0, kDescendingScan = 1, kGroups = 2;

uint64_t EndChecksum(const KeyBatch& keys, size_t i) {
  return WithPhysicalKey(keys.kind(), [&](auto type) -> uint64_t {
    using Key = typename decltype(type)::type;
    const Key key = keys.as<Key>()[i];
    if constexpr (std::is_same_v<Key, std::string_view>) {
      return Checksum(key.data(), key.size());
    } else {
      return key;
    }
  });
}

uint64_t RangeChecksum(uint64_t index, const RangeBatch& ranges, size_t i, uint64_t operation,
                       uint64_t sources) {
  // The keys of other bounds are ignored.
  const Bound lower = ranges.lower_bound_of(i), upper = ranges.upper_bound_of(i);
  const bool has_lower = lower != Bound::kOpen || upper == Bound::kPrefix;
  const bool has_upper = upper == Bound::kInclusive || upper == Bound::kExclusive;
  const uint64_t parts[] = {
      index,
      operation,
      sources,
      static_cast<uint64_t>(ranges.kind()) << 16 | static_cast<uint64_t>(lower) << 8 |
          static_cast<uint64_t>(upper),
      has_lower ? EndChecksum(ranges.lower, i) : 0,
      has_upper ? EndChecksum(ranges.upper, i) : 0,
  };
  return Checksum(parts, sizeof parts);
}

}  // namespace

CursorTag CursorTag::OfText(std::string_view question) {
  return CursorTag(Checksum(question.data(), question.size()));
}

CursorTag CursorTag::OfScan(uint64_t index, const RangeBatch& ranges, size_t i, Order order,
                            uint64_t sources) {
  return CursorTag(RangeChecksum(
      index, ranges, i, order == Order::kAscending ? kAscendingScan : kDescendingScan, sources));
}

CursorTag CursorTag::OfGroups(uint64_t index, const RangeBatch& ranges, size_t i,
                              size_t leading_parts) {
  return CursorTag(RangeChecksum(index, ranges, i, kGroups + leading_parts, /*sources=*/0));
}

uint64_t CursorTag::OfIndex(const IndexSpec& spec) {
  return OfText(spec.ToString()).checksum();
}

void CursorTag::AppendTo(std::string* text) const {
  static_assert(std::endian::native == std::endian::little);
  text->append(reinterpret_cast<const char*>(&checksum_), kBytes);
}

std::string CursorTag::Add(std::string_view cursor) const {
  std::string tagged;
  tagged.reserve(kBytes + cursor.size());
  AppendTo(&tagged);
  return tagged.append(cursor);
}

bool CursorTag::Matches(std::string_view tagged) const {
  if (tagged.size() <= kBytes) return false;
  return std::memcmp(tagged.data(), &checksum_, kBytes) == 0;
}

absl::StatusOr<std::string_view> CursorTag::Remove(std::string_view tagged,
                                                   std::string_view name) const {
  if (Matches(tagged)) return tagged.substr(kBytes);
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: expected a cursor of the same query, got something else; start from the first page",
      name));
}

absl::StatusOr<std::string_view> CursorTag::RemoveFrom(const RangeBatch& ranges, size_t i) const {
  const std::string_view tagged = ranges.after[i];
  if (Matches(tagged)) return tagged.substr(kBytes);
  return Remove(tagged, ranges.size() == 1 ? "after" : absl::StrFormat("after[%d]", i));
}

}  // namespace cairn
