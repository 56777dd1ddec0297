#include "engine/delta/delta_parts.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/simd/key_filter.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {

template <typename Key>
absl::Status TakeEntries(std::vector<DeltaEntry<Key>> taken, const DeltaRows& rows, Delta* next) {
  std::vector<Key> keys;
  std::vector<uint64_t> hashes;
  std::vector<Position> first, removed;
  for (size_t i = next->parts.size(); i-- > 0 && !taken.empty();) {
    DeltaPart& part = next->parts[i];
    const DeltaSegment& segment = *part.segment;
    const auto column = ColumnOf<Key>(segment.run());
    keys.resize(taken.size());
    hashes.resize(taken.size());
    for (size_t k = 0; k < keys.size(); ++k) {
      keys[k] = taken[k].key;
      hashes[k] = KeyFilter::Hash(keys[k]);
    }
    first.resize(taken.size());
    segment.Prefetch(hashes);
    RETURN_IF_ERROR(segment.FindFirst<Key>(keys, hashes, absl::MakeSpan(first)));
    removed.clear();
    size_t left = 0;
    for (size_t k = 0; k < taken.size(); ++k) {
      const auto& [key, row, place] = taken[k];
      size_t p = segment.size();
      if (first[k] != DeltaSegment::kNone) {
        p = Gallop(first[k], segment.size(), [&, key = key, row = row](size_t at) {
          return column[at] == key && rows.Less(segment.rows()[at], row);
        });
      }
      if (p < segment.size() && column[p] == key && segment.rows()[p] == row &&
          !part.removed.Contains(p)) {
        removed.push_back(static_cast<Position>(p));
      } else {
        taken[left++] = taken[k];
      }
    }
    taken.resize(left);
    part.removed = part.removed.With(removed, {});
  }
  if (taken.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("%d entries of a delta are in none of its segments", taken.size()));
}

template absl::Status TakeEntries(std::vector<DeltaEntry<uint32_t>>, const DeltaRows&, Delta*);
template absl::Status TakeEntries(std::vector<DeltaEntry<uint64_t>>, const DeltaRows&, Delta*);
template absl::Status TakeEntries(std::vector<DeltaEntry<std::string_view>>, const DeltaRows&,
                                  Delta*);

}  // namespace cairn
