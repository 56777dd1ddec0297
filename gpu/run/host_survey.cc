#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/run/key_survey.h"
#include "index/layout/wide_key.h"
#include "index/machine/parallel.h"

namespace cairn::gpu {
namespace {

// Keys per task: half a millisecond of work.
constexpr size_t kPart = size_t{1} << 19;

// The number of entries so far with the last key seen.
struct RunSoFar {
  size_t length = 0;
};

// Adds keys to the counts. `before` is the key before keys[0]. If keys[0] is the first key of the
// survey, `first_of_all` is true and `before` must be 0.
template <typename Key>
void CountKeys(absl::Span<const Key> keys, Key before, bool first_of_all, RunSoFar* run,
               KeySurvey<Key>* survey) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  for (const Key key : keys) {
    if (!first_of_all && key == before) {
      if (++run->length > KeySurvey<Key>::kLongRun) survey->has_long_run = true;
      continue;
    }
    run->length = 1;
    ++survey->distinct;
    for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
      const int bits = 16 * (width + 1);
      if (bits >= kKeyBits) break;
      const Key step = (key >> bits) - (before >> bits);
      survey->blocks[width] += first_of_all || step != 0 ? 1 : 0;
      survey->gaps[width] += (first_of_all ? step != 0 : step > 1) ? 1 : 0;
    }
    before = key;
    first_of_all = false;
  }
}

// Surveys `size` keys; count(first, end, survey) adds the keys in [first, end).
template <typename Key, typename Count>
KeySurvey<Key> SurveyInParts(size_t size, int threads, Count count) {
  std::vector<KeySurvey<Key>> parts((size + kPart - 1) / kPart);
  const auto count_part = [&](size_t part) {
    count(part * kPart, std::min(size, (part + 1) * kPart), &parts[part]);
  };
  if (parts.size() == 1) {
    count_part(0);
  } else {
    ParallelFor(threads, parts.size(), count_part);
  }
  KeySurvey<Key> survey = {};
  survey.keys_ascend = survey.rows_ascend = true;
  for (const KeySurvey<Key>& part : parts) {
    survey.distinct += part.distinct;
    survey.has_long_run |= part.has_long_run;
    for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
      survey.blocks[width] += part.blocks[width];
      survey.gaps[width] += part.gaps[width];
    }
  }
  return survey;
}

}  // namespace

template <typename Key>
absl::Status CheckEntries(const KeySurvey<Key>& survey) {
  if (!survey.keys_ascend) return absl::DataLossError("the entries' keys do not ascend");
  if (!survey.rows_ascend) return absl::DataLossError("the row ids of equal keys do not ascend");
  if (survey.has_no_row) {
    return absl::DataLossError(absl::StrFormat("got row id %d, which is reserved", kNoRow));
  }
  return absl::OkStatus();
}

template <typename Key>
KeySurvey<Key> SurveyOnHost(absl::Span<const Key> keys, int threads) {
  KeySurvey<Key> survey =
      SurveyInParts<Key>(keys.size(), threads, [&](size_t first, size_t end, KeySurvey<Key>* part) {
        RunSoFar run;
        while (run.length < std::min(first, KeySurvey<Key>::kLongRun) &&
               keys[first - 1 - run.length] == keys[first - 1]) {
          ++run.length;
        }
        CountKeys(keys.subspan(first, end - first), first == 0 ? Key{0} : keys[first - 1],
                  first == 0, &run, part);
      });
  survey.least = keys.front();
  survey.greatest = keys.back();
  return survey;
}

template <typename Key>
KeySurvey<Key> SurveyOnHost(size_t size, absl::FunctionRef<void(size_t, absl::Span<Key>)> read,
                            int threads) {
  const auto key_at = [&](size_t i) {
    Key key;
    read(i, absl::MakeSpan(&key, 1));
    return key;
  };
  KeySurvey<Key> survey =
      SurveyInParts<Key>(size, threads, [&](size_t first, size_t end, KeySurvey<Key>* part) {
        Key keys[1024];
        Key before = first == 0 ? Key{0} : key_at(first - 1);
        RunSoFar run;
        while (run.length < std::min(first, KeySurvey<Key>::kLongRun) &&
               key_at(first - 1 - run.length) == before) {
          ++run.length;
        }
        for (size_t i = first; i < end; i += std::size(keys)) {
          const absl::Span<Key> some = absl::MakeSpan(keys, std::min(std::size(keys), end - i));
          read(i, some);
          CountKeys<Key>(some, before, i == 0, &run, part);
          before = some.back();
        }
      });
  survey.least = key_at(0);
  survey.greatest = key_at(size - 1);
  return survey;
}

template KeySurvey<uint32_t> SurveyOnHost(absl::Span<const uint32_t>, int);
template KeySurvey<uint64_t> SurveyOnHost(absl::Span<const uint64_t>, int);

template KeySurvey<uint64_t> SurveyOnHost(size_t,
                                          absl::FunctionRef<void(size_t, absl::Span<uint64_t>)>,
                                          int);
template KeySurvey<WideKey> SurveyOnHost(size_t,
                                         absl::FunctionRef<void(size_t, absl::Span<WideKey>)>, int);

template absl::Status CheckEntries(const KeySurvey<uint32_t>&);
template absl::Status CheckEntries(const KeySurvey<uint64_t>&);
template absl::Status CheckEntries(const KeySurvey<WideKey>&);

}  // namespace cairn::gpu
