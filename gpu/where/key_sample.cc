#include "gpu/where/key_sample.h"

#include <algorithm>

namespace cairn::gpu {

EntryEstimate KeySample::Below(uint64_t key) const {
  const auto at =
      static_cast<size_t>(std::lower_bound(keys_.begin(), keys_.end(), key) - keys_.begin());
  if (at == 0) return {};
  if (at == keys_.size()) return {entries_, entries_, static_cast<double>(entries_)};
  // keys_[at - 1] < key <= keys_[at].
  const uint64_t before = PositionOf(at - 1, entries_), behind = PositionOf(at, entries_);
  const double share =
      static_cast<double>(key - keys_[at - 1]) / static_cast<double>(keys_[at] - keys_[at - 1]);
  const double expected =
      static_cast<double>(before) + share * static_cast<double>(behind - before);
  return {before + 1, behind,
          std::clamp(expected, static_cast<double>(before + 1), static_cast<double>(behind))};
}

EntryEstimate KeySample::Estimate(DeviceKeyRange range) const {
  if (range.first > range.last) return {};
  const EntryEstimate begin = Below(range.first);
  const auto all = static_cast<double>(entries_);
  const EntryEstimate end =
      range.last == UINT64_MAX ? EntryEstimate{entries_, entries_, all} : Below(range.last + 1);
  EntryEstimate of;
  of.least = end.least > begin.most ? end.least - begin.most : 0;
  of.most = end.most - begin.least;
  of.expected = std::clamp(end.expected - begin.expected, static_cast<double>(of.least),
                           static_cast<double>(of.most));
  return of;
}

}  // namespace cairn::gpu
