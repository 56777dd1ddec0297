#include "engine/source/key_ranges.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Spans lighter than 1 / (kFineness * parts) of the total are not halved. So if weights are right,
// the weight of each range is within 25% of its share.
constexpr uint64_t kFineness = 4;
// If there are more candidates per range than this, only some of them are used.
constexpr size_t kCandidatesPerRange = 4;
// Each round halves every span that is too heavy. Both halves contain keys, so most key sets need
// few rounds. The limit bounds the work if keys differ only in their last bytes, after a long
// common part, or if weights do not decrease with the spans.
constexpr int kMaxRounds = 48;
// Weights are capped, so that no sum of wrong estimates overflows.
constexpr uint64_t kMaxWeight = uint64_t{1} << 44;

// A span between two existing keys; both belong to it.
struct WeighedSpan {
  std::string first;
  std::string last;
  uint64_t weight = 0;
  bool indivisible = false;
};

// Returns bytes [offset, offset + 8) as a big-endian number. Missing bytes are 0.
uint64_t BigEndianAt(std::string_view key, size_t offset) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) {
    number <<= 8;
    if (offset + i < key.size()) number |= static_cast<unsigned char>(key[offset + i]);
  }
  return number;
}

// Keeps at most `limit` of the keys, evenly spread.
void ThinOut(std::vector<std::string>* keys, size_t limit) {
  if (keys->size() <= limit) return;
  std::vector<std::string> kept;
  kept.reserve(limit);
  const double step = static_cast<double>(keys->size()) / static_cast<double>(limit);
  for (size_t i = 0; i < limit; ++i) {
    kept.push_back(std::move((*keys)[static_cast<size_t>(static_cast<double>(i) * step)]));
  }
  *keys = std::move(kept);
}

uint64_t TotalWeight(absl::Span<const WeighedSpan> spans) {
  uint64_t total = 0;
  for (const WeighedSpan& span : spans) total += span.weight;
  return total;
}

// Makes the spans, in key order.
class Cutter {
 public:
  explicit Cutter(KeySpace* keys) : keys_(keys) {}

  // Starts with one span of all keys, or none if there are no keys.
  absl::Status Start() {
    std::optional<std::string> below;
    std::optional<std::string> first;
    RETURN_IF_ERROR(keys_->FindNeighbours("", &below, &first));
    if (!first.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(FindLast(&below));
    if (!below.has_value() || *below < *first) return absl::OkStatus();
    spans_.push_back({*std::move(first), *std::move(below), 0, false});
    return absl::OkStatus();
  }

  // Splits the last span before `cut`, which is greater than all previous cuts, if keys are on both
  // sides.
  absl::Status CutLastSpan(std::string_view cut) {
    if (spans_.empty() || cut <= spans_.back().first || cut > spans_.back().last) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::optional<WeighedSpan> above, Split(cut, &spans_.back()));
    if (above.has_value()) spans_.push_back(*std::move(above));
    return absl::OkStatus();
  }

  absl::Status WeighAll() {
    std::vector<size_t> all(spans_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return Weigh(all);
  }

  // Halves every span heavier than `limit`; returns false if there was none to halve.
  absl::StatusOr<bool> HalveHeavySpans(uint64_t limit) {
    std::vector<WeighedSpan> halves;
    std::vector<size_t> fresh;
    halves.reserve(spans_.size() * 2);
    for (WeighedSpan& span : spans_) {
      if (span.weight <= limit || span.indivisible || span.first >= span.last) {
        halves.push_back(std::move(span));
        continue;
      }
      const std::optional<std::string> middle = KeyBetween(span.first, span.last);
      ASSIGN_OR_RETURN(std::optional<WeighedSpan> above,
                       Split(middle.has_value() ? *middle : span.last, &span));
      if (!above.has_value()) {
        span.indivisible = true;
        halves.push_back(std::move(span));
        continue;
      }
      above->weight = span.weight;
      // Both halves have the weight of the whole until WeighHalves divides it.
      for (WeighedSpan* half : {&span, &*above}) {
        fresh.push_back(halves.size());
        halves.push_back(std::move(*half));
      }
    }
    spans_ = std::move(halves);
    if (fresh.empty()) return false;
    return WeighHalves(fresh);
  }

  std::vector<WeighedSpan>& spans() { return spans_; }

 private:
  absl::Status FindLast(std::optional<std::string>* last) {
    // Finds an end after every key, by appending 0xFF bytes.
    std::optional<std::string> above;
    std::string end(16, '\xFF');
    while (true) {
      RETURN_IF_ERROR(keys_->FindNeighbours(end, last, &above));
      if (!above.has_value()) return absl::OkStatus();
      end.assign(std::max(above->size() + 1, end.size() * 2), '\xFF');
    }
  }

  // Shortens `span` to the keys less than `cut` and returns the rest. Returns nullopt if either
  // side would be empty.
  absl::StatusOr<std::optional<WeighedSpan>> Split(std::string_view cut, WeighedSpan* span) {
    std::optional<std::string> below;
    std::optional<std::string> above;
    RETURN_IF_ERROR(keys_->FindNeighbours(cut, &below, &above));
    if (!below.has_value() || !above.has_value() || *below < span->first || *below >= *above ||
        *above > span->last) {
      return std::optional<WeighedSpan>();
    }
    WeighedSpan rest{*std::move(above), std::move(span->last), 0, false};
    span->last = *std::move(below);
    return std::optional<WeighedSpan>(std::move(rest));
  }

  // Divides the weight of each halved span between its halves, in proportion to their estimates.
  // Estimates for small spans are often wrong, because files are weighed by block and memory by
  // sampling. The errors do not add up, because the sum of the halves' weights stays the same.
  absl::StatusOr<bool> WeighHalves(absl::Span<const size_t> halves) {
    std::vector<uint64_t> whole(halves.size());
    for (size_t i = 0; i < halves.size(); ++i) whole[i] = spans_[halves[i]].weight;
    RETURN_IF_ERROR(Weigh(halves));
    for (size_t i = 0; i + 1 < halves.size(); i += 2) {
      uint64_t& lower = spans_[halves[i]].weight;
      uint64_t& upper = spans_[halves[i + 1]].weight;
      const double share = lower + upper == 0
                               ? 0.5
                               : static_cast<double>(lower) /
                                     (static_cast<double>(lower) + static_cast<double>(upper));
      lower = static_cast<uint64_t>(static_cast<double>(whole[i]) * share);
      upper = whole[i] - lower;
    }
    return true;
  }

  absl::Status Weigh(absl::Span<const size_t> chosen) {
    std::vector<KeySpan> asked;
    asked.reserve(chosen.size());
    for (size_t i : chosen) {
      asked.push_back(
          {spans_[i].first, i + 1 < spans_.size() ? spans_[i + 1].first : spans_[i].last});
    }
    ASSIGN_OR_RETURN(std::vector<uint64_t> weights, keys_->Weigh(asked));
    for (size_t i = 0; i < chosen.size() && i < weights.size(); ++i) {
      spans_[chosen[i]].weight = std::min(weights[i], kMaxWeight);
    }
    return absl::OkStatus();
  }

  KeySpace* const keys_;
  std::vector<WeighedSpan> spans_;
};

// Cuts at the starts of spans that are nearest to the ideal cuts.
std::vector<PrimaryKeyRange> CutAtShares(absl::Span<const WeighedSpan> spans, int parts) {
  const double share = static_cast<double>(TotalWeight(spans)) / parts;
  std::vector<PrimaryKeyRange> ranges(1);
  if (share == 0) return ranges;
  double before = 0;  // weight of the spans before i
  double ideal = share;
  for (size_t i = 1; i < spans.size() && ranges.size() < static_cast<size_t>(parts); ++i) {
    before += static_cast<double>(spans[i - 1].weight);
    const double ahead = before + static_cast<double>(spans[i].weight);
    // Continue if the next boundary is at least as close.
    if (before < ideal && ideal - before >= std::abs(ahead - ideal)) continue;
    ideal = share * std::max(ideal / share + 1, std::floor(before / share + 0.5) + 1);
    ranges.back().upper = spans[i].first;
    ranges.back().open = false;
    ranges.push_back({spans[i].first, std::string(), true});
  }
  return ranges;
}

}  // namespace

std::optional<std::string> KeyBetween(std::string_view lower, std::string_view upper) {
  const size_t shorter = std::min(lower.size(), upper.size());
  size_t common = 0;
  while (common < shorter && lower[common] == upper[common]) ++common;
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

absl::StatusOr<std::vector<PrimaryKeyRange>> CutKeyRanges(std::vector<std::string> candidates,
                                                          int parts, KeySpace* keys) {
  if (parts < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Split: expected at least 1 range, got %d", parts));
  }
  if (parts == 1) return std::vector<PrimaryKeyRange>(1);
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  ThinOut(&candidates, kCandidatesPerRange * static_cast<size_t>(parts));

  Cutter cutter(keys);
  RETURN_IF_ERROR(cutter.Start());
  for (const std::string& candidate : candidates) {
    RETURN_IF_ERROR(cutter.CutLastSpan(candidate));
  }
  RETURN_IF_ERROR(cutter.WeighAll());
  const uint64_t pieces = kFineness * static_cast<uint64_t>(parts);
  for (int round = 0; round < kMaxRounds; ++round) {
    const uint64_t total = TotalWeight(cutter.spans());
    if (total == 0 && cutter.spans().size() < pieces) {
      // Nothing is known, so all spans get the same weight.
      for (WeighedSpan& span : cutter.spans()) span.weight = 1;
    }
    ASSIGN_OR_RETURN(bool halved, cutter.HalveHeavySpans(total / pieces));
    if (!halved) break;
  }
  if (TotalWeight(cutter.spans()) == 0) {
    for (WeighedSpan& span : cutter.spans()) span.weight = 1;
  }
  return CutAtShares(cutter.spans(), parts);
}

}  // namespace cairn
