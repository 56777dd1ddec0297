#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/run/key_survey.h"
#include "index/machine/parallel.h"

namespace cairn::gpu {
namespace {

// Keys that a thread surveys at a time: half a millisecond's work.
constexpr size_t kPart = size_t{1} << 19;

// Adds keys [first, end) to the counts.
template <typename Key>
void CountKeys(absl::Span<const Key> keys, size_t first, size_t end, KeySurvey<Key>* survey) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  for (size_t i = first; i < end; ++i) {
    const Key key = keys[i], before = i == 0 ? Key{0} : keys[i - 1];
    if (i != 0 && key == before) continue;
    ++survey->distinct;
    for (int width = 0; 16 * (width + 1) < kKeyBits; ++width) {
      const int bits = 16 * (width + 1);
      const Key step = (key >> bits) - (before >> bits);
      survey->blocks[width] += i == 0 || step != 0 ? 1 : 0;
      survey->gaps[width] += (i == 0 ? step != 0 : step > 1) ? 1 : 0;
    }
  }
}

}  // namespace

template <typename Key>
absl::Status CheckEntries(const KeySurvey<Key>& survey) {
  if (!survey.keys_ascend) return absl::DataLossError("the entries' keys do not ascend");
  if (!survey.rows_ascend) return absl::DataLossError("the row ids of equal keys do not ascend");
  if (survey.has_no_row) {
    return absl::DataLossError(
        absl::StrFormat("an entry's row id is %d, which is no row's", kNoRow));
  }
  return absl::OkStatus();
}

template <typename Key>
KeySurvey<Key> SurveyOnHost(absl::Span<const Key> keys, int threads) {
  std::vector<KeySurvey<Key>> parts((keys.size() + kPart - 1) / kPart);
  const auto count = [&](size_t part) {
    CountKeys(keys, part * kPart, std::min(keys.size(), (part + 1) * kPart), &parts[part]);
  };
  if (parts.size() == 1) {
    count(0);
  } else {
    ParallelFor(threads, parts.size(), count);
  }
  KeySurvey<Key> survey = {};
  survey.least = keys.front();
  survey.greatest = keys.back();
  survey.keys_ascend = survey.rows_ascend = true;
  for (const KeySurvey<Key>& part : parts) {
    survey.distinct += part.distinct;
    for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
      survey.blocks[width] += part.blocks[width];
      survey.gaps[width] += part.gaps[width];
    }
  }
  return survey;
}

template KeySurvey<uint32_t> SurveyOnHost(absl::Span<const uint32_t>, int);
template KeySurvey<uint64_t> SurveyOnHost(absl::Span<const uint64_t>, int);

template absl::Status CheckEntries(const KeySurvey<uint32_t>&);
template absl::Status CheckEntries(const KeySurvey<uint64_t>&);

}  // namespace cairn::gpu
