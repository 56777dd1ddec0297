#include "engine/key_ranges.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

// Spans lighter than 1 / (kFineness * parts) of the whole are not halved further, so that ranges
// end up within a quarter of their share where weights are right.
constexpr int kFineness = 4;
// More candidates than this for each range are thinned out before they are weighed.
constexpr size_t kCandidatesPerRange = 16;
// Each round halves every span that is too heavy; keys that differ only after a long common prefix
// are told apart 8 bytes at a time, so this bounds the work and not the depth that matters.
constexpr int kMaxRounds = 128;

struct WeighedSpan {
  std::string lower;  // the upper end is the next span's lower one, or the last key
  uint64_t weight = 0;
};

// Bytes [offset, offset + 8) as a big-endian number, missing ones as zeros.
uint64_t BigEndianAt(std::string_view key, size_t offset) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) {
    number <<= 8;
    if (offset + i < key.size()) number |= static_cast<unsigned char>(key[offset + i]);
  }
  return number;
}

// At most `limit` of the keys, evenly spread.
void ThinOut(std::vector<std::string>* keys, size_t limit) {
  if (keys->size() <= limit) return;
  std::vector<std::string> kept;
  kept.reserve(limit);
  for (size_t i = 0; i < limit; ++i) {
    kept.push_back(std::move((*keys)[static_cast<size_t>(
        static_cast<double>(i) * static_cast<double>(keys->size()) / static_cast<double>(limit))]));
  }
  *keys = std::move(kept);
}

uint64_t TotalWeight(const std::vector<WeighedSpan>& spans) {
  uint64_t total = 0;
  for (const WeighedSpan& span : spans) total += span.weight;
  return total;
}

std::string_view UpperOf(const std::vector<WeighedSpan>& spans, size_t i, std::string_view last) {
  return i + 1 < spans.size() ? std::string_view(spans[i + 1].lower) : last;
}

// Weighs the spans that `chosen` names.
absl::Status Weigh(const WeighKeys& weigh, std::string_view last, absl::Span<const size_t> chosen,
                   std::vector<WeighedSpan>* spans) {
  if (chosen.empty()) return absl::OkStatus();
  std::vector<KeySpan> asked;
  asked.reserve(chosen.size());
  for (size_t i : chosen) asked.push_back({(*spans)[i].lower, UpperOf(*spans, i, last)});
  absl::StatusOr<std::vector<uint64_t>> weights = weigh(asked);
  if (!weights.ok()) return weights.status();
  // Capped, so that no sum of estimates overflows.
  for (size_t i = 0; i < chosen.size() && i < weights->size(); ++i) {
    (*spans)[chosen[i]].weight = std::min((*weights)[i], uint64_t{1} << 44);
  }
  return absl::OkStatus();
}

// Halves every span heavier than `limit` once. The indexes of the new halves go to `fresh`; a span
// in which no key can be found keeps its weight.
std::vector<WeighedSpan> HalveHeavySpans(std::vector<WeighedSpan> spans, std::string_view last,
                                         uint64_t limit, std::vector<size_t>* fresh) {
  fresh->clear();
  std::vector<WeighedSpan> halves;
  halves.reserve(spans.size() * 2);
  for (size_t i = 0; i < spans.size(); ++i) {
    std::optional<std::string> middle;
    if (spans[i].weight > limit) middle = KeyBetween(spans[i].lower, UpperOf(spans, i, last));
    const uint64_t half = spans[i].weight / 2;
    if (middle.has_value()) fresh->push_back(halves.size());
    halves.push_back({spans[i].lower, middle.has_value() ? half : spans[i].weight});
    if (middle.has_value()) {
      fresh->push_back(halves.size());
      halves.push_back({*std::move(middle), half});
    }
  }
  return halves;
}

// The lower ends of the spans nearest to the ideal cuts.
std::vector<PrimaryKeyRange> CutAtShares(const std::vector<WeighedSpan>& spans, int parts) {
  const double share = static_cast<double>(TotalWeight(spans)) / parts;
  std::vector<PrimaryKeyRange> ranges(1);
  double before = 0;  // weight of the spans before i
  int cuts = 0;       // ideal cuts passed
  for (size_t i = 1; i < spans.size() && static_cast<int>(ranges.size()) < parts; ++i) {
    before += static_cast<double>(spans[i - 1].weight);
    const double ahead = before + static_cast<double>(spans[i].weight);
    const double ideal = share * (cuts + 1);
    // The ideal cut lies before this boundary, or nearer to it than to the next one.
    if (before < ideal && ideal - before > ahead - ideal) continue;
    cuts = std::max(cuts + 1, static_cast<int>(std::floor(before / share + 0.5)));
    ranges.back().upper = spans[i].lower;
    ranges.back().open = false;
    ranges.push_back({spans[i].lower, std::string(), true});
  }
  return ranges;
}

}  // namespace

std::optional<std::string> KeyBetween(std::string_view lower, std::string_view upper) {
  const size_t shorter = std::min(lower.size(), upper.size());
  const size_t common = static_cast<size_t>(
      std::mismatch(lower.begin(), lower.begin() + static_cast<ptrdiff_t>(shorter), upper.begin())
          .first -
      lower.begin());
  const uint64_t low = BigEndianAt(lower, common);
  const uint64_t high = BigEndianAt(upper, common);
  if (low >= high || high - low < 2) return std::nullopt;
  const uint64_t middle = low + (high - low) / 2;
  std::string key(lower.substr(0, common));
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(middle >> shift));
  while (key.size() > common && key.back() == '\0') key.pop_back();
  if (std::string_view(key) <= lower || std::string_view(key) >= upper) return std::nullopt;
  return key;
}

absl::StatusOr<std::vector<PrimaryKeyRange>> CutKeyRanges(std::string_view first,
                                                          std::string_view last,
                                                          std::vector<std::string> candidates,
                                                          int parts, const WeighKeys& weigh) {
  if (parts < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rows can be split into 1 range or more, not %d", parts));
  }
  if (parts == 1 || first >= last) return std::vector<PrimaryKeyRange>(1);

  candidates.erase(
      std::remove_if(candidates.begin(), candidates.end(),
                     [&](const std::string& key) { return key <= first || key >= last; }),
      candidates.end());
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  ThinOut(&candidates, kCandidatesPerRange * static_cast<size_t>(parts));

  std::vector<WeighedSpan> spans;
  spans.push_back({std::string(first), 0});
  for (std::string& key : candidates) spans.push_back({std::move(key), 0});
  std::vector<size_t> fresh(spans.size());
  for (size_t i = 0; i < fresh.size(); ++i) fresh[i] = i;
  if (absl::Status s = Weigh(weigh, last, fresh, &spans); !s.ok()) return s;

  const uint64_t pieces = static_cast<uint64_t>(kFineness) * static_cast<uint64_t>(parts);
  if (TotalWeight(spans) == 0) {
    // Nothing is known: equal stretches of the key space are as good a guess as any.
    for (WeighedSpan& span : spans) span.weight = uint64_t{1} << 44;
    for (uint64_t made = 1; made < pieces; made *= 2) {
      spans = HalveHeavySpans(std::move(spans), last, 0, &fresh);
    }
    return CutAtShares(spans, parts);
  }
  for (int round = 0; round < kMaxRounds; ++round) {
    const uint64_t limit = TotalWeight(spans) / pieces;
    spans = HalveHeavySpans(std::move(spans), last, limit, &fresh);
    if (fresh.empty()) break;
    if (absl::Status s = Weigh(weigh, last, fresh, &spans); !s.ok()) return s;
    if (TotalWeight(spans) == 0) break;
  }
  if (TotalWeight(spans) == 0) return std::vector<PrimaryKeyRange>(1);
  return CutAtShares(spans, parts);
}

}  // namespace cairn
