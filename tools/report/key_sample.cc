#include "tools/report/key_sample.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "index/machine/status_macros.h"

namespace cairn::tools {
namespace {

// Entries per page of a scan; pages grow while keys are short.
constexpr uint64_t kFirstPage = 1;
constexpr uint64_t kLargestPage = 1 << 8;  // long keys may follow short ones
constexpr uint64_t kPageBytes = 4 << 20;
constexpr uint64_t kSampleBytes = 1 << 28;

constexpr size_t kRanksAtOnce = 512;
// Ranges of at most this many entries are searched entry by entry.
constexpr uint64_t kFewEntries = 8;
constexpr size_t kMaxCommonBytes = 256;
constexpr size_t kMaxBytes = 64;

bool Passed(Deadline deadline) {
  return std::chrono::steady_clock::now() >= deadline;
}

// Counts the entries before each key.
absl::Status CountBelow(const SecondaryIndex& index, EncodedKeys* keys,
                        std::vector<uint64_t>* counts) {
  RangeBatch ranges;
  ranges.lower = ranges.upper = keys->Batch();
  ranges.lower_bound = Bound::kOpen;
  counts->assign(keys->size(), 0);
  return index.Count(ranges, absl::MakeSpan(*counts));
}

// Bisects the numbers: the key of a rank is the greatest number with at most `rank` entries below
// it.
absl::Status NumbersOfRanks(const SecondaryIndex& index, absl::Span<const uint64_t> ranks,
                            EncodedKeys* found) {
  const bool narrow = index.kind() == PhysicalType::kU32;
  std::vector<uint64_t> low(ranks.size(), 0);
  std::vector<uint64_t> high(ranks.size(), narrow ? UINT32_MAX : UINT64_MAX);
  EncodedKeys middle(index.kind());
  std::vector<uint64_t> below;
  for (int bit = narrow ? 32 : 64; bit > 0; --bit) {
    middle.Clear(index.kind());
    for (size_t i = 0; i < ranks.size(); ++i) {
      const uint64_t key = low[i] + (high[i] - low[i]) / 2 + (low[i] < high[i]);
      narrow ? middle.AppendU32(static_cast<uint32_t>(key)) : middle.AppendU64(key);
    }
    RETURN_IF_ERROR(CountBelow(index, &middle, &below));
    for (size_t i = 0; i < ranks.size(); ++i) {
      const uint64_t key = narrow ? middle.u32(i) : middle.u64(i);
      if (below[i] <= ranks[i]) {
        low[i] = key;
      } else {
        high[i] = key - 1;
      }
    }
  }
  for (const uint64_t key : low) {
    narrow ? found->AppendU32(static_cast<uint32_t>(key)) : found->AppendU64(key);
  }
  return absl::OkStatus();
}

// The search for the key of a rank, for keys of bytes: `below` entries are less than `prefix`, and
// `end` entries are less or begin with it.
struct Descent {
  uint64_t rank;
  std::string prefix;
  uint64_t below = 0;
  uint64_t end = UINT64_MAX;
  bool done = false;
};

// Extends each prefix by one byte: the greatest one for which at most `rank` entries are below.
absl::Status Descend(const SecondaryIndex& index, std::vector<Descent*>* active) {
  std::vector<uint64_t> counts;
  EncodedKeys keys(PhysicalType::kBytes);
  // The prefix itself may be the key.
  for (const Descent* one : *active) keys.AppendBytes(one->prefix + std::string(1, '\0'));
  RETURN_IF_ERROR(CountBelow(index, &keys, &counts));
  std::vector<Descent*> on;
  std::vector<int> low, high;
  for (size_t i = 0; i < active->size(); ++i) {
    Descent* one = (*active)[i];
    if (counts[i] > one->rank) {
      one->end = counts[i];
      one->done = true;
    } else {
      one->below = counts[i];
      on.push_back(one);
    }
  }
  low.assign(on.size(), 0);
  high.assign(on.size(), 255);
  for (int bit = 0; bit < 8; ++bit) {
    keys.Clear(PhysicalType::kBytes);
    std::vector<int> middle;
    for (size_t i = 0; i < on.size(); ++i) {
      middle.push_back((low[i] + high[i] + 1) / 2);
      keys.AppendBytes(on[i]->prefix + static_cast<char>(middle[i]));
    }
    RETURN_IF_ERROR(CountBelow(index, &keys, &counts));
    for (size_t i = 0; i < on.size(); ++i) {
      if (counts[i] <= on[i]->rank) {
        low[i] = middle[i];
        on[i]->below = counts[i];
      } else {
        high[i] = middle[i] - 1;
        on[i]->end = counts[i];
      }
    }
  }
  for (size_t i = 0; i < on.size(); ++i) on[i]->prefix += static_cast<char>(low[i]);
  *active = std::move(on);
  return absl::OkStatus();
}

// Reads the keys that the searches have found.
absl::Status ReadKeys(const SecondaryIndex& index, const std::vector<Descent>& descents,
                      EncodedKeys* found) {
  EncodedKeys keys(PhysicalType::kBytes);
  for (const Descent& one : descents) keys.AppendBytes(one.prefix);
  RangeBatch ranges;
  ranges.lower = ranges.upper = keys.Batch();
  ranges.upper_bound = Bound::kOpen;
  QueryOptions options;
  options.limit = kFewEntries;
  options.with_keys = true;
  FindResult matches;
  size_t page = kFirstPage;
  for (size_t begin = 0; begin < descents.size() && found->heap().size() < kSampleBytes;) {
    const size_t size = std::min(page, descents.size() - begin);
    RETURN_IF_ERROR(index.Scan(ranges.Slice(begin, size), &matches, options));
    for (size_t i = 0; i < size; ++i) {
      const Descent& one = descents[begin + i];
      const uint64_t first = matches.offsets[i];
      const uint64_t behind = one.end - one.below <= kFewEntries ? one.rank - one.below : 0;
      if (first + behind < matches.offsets[i + 1]) AppendKey(matches.keys, first + behind, found);
    }
    begin += size;
    page = matches.keys.heap().size() < kPageBytes ? page * 2 : std::max<size_t>(page / 2, 1);
  }
  return absl::OkStatus();
}

absl::Status BytesOfRanks(const SecondaryIndex& index, absl::Span<const uint64_t> ranks,
                          const std::string& common, EncodedKeys* found) {
  std::vector<Descent> descents;
  for (const uint64_t rank : ranks) descents.push_back({rank, common});
  std::vector<Descent*> active;
  for (Descent& one : descents) active.push_back(&one);
  for (size_t bytes = 0; bytes < kMaxBytes && !active.empty(); ++bytes) {
    RETURN_IF_ERROR(Descend(index, &active));
    const auto near = [](const Descent* one) { return one->end - one->below <= kFewEntries; };
    active.erase(std::remove_if(active.begin(), active.end(), near), active.end());
  }
  return ReadKeys(index, descents, found);
}

// Returns a common prefix of all keys, of at most kMaxCommonBytes.
absl::StatusOr<std::string> CommonBytes(const SecondaryIndex& index) {
  const RangeBatch all = RangeBatch::Everything(PhysicalType::kBytes);
  ASSIGN_OR_RETURN(const EncodedKeys first, EndOfRange(index, all, Order::kAscending));
  ASSIGN_OR_RETURN(const EncodedKeys last, EndOfRange(index, all, Order::kDescending));
  if (first.empty() || last.empty()) return std::string();
  const std::string_view a = first.bytes(0).substr(0, kMaxCommonBytes);
  const std::string_view b = last.bytes(0).substr(0, kMaxCommonBytes);
  const size_t common = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  return std::string(a.substr(0, common));
}

}  // namespace

void AppendKey(const EncodedKeys& from, size_t i, EncodedKeys* to) {
  switch (from.kind()) {
    case PhysicalType::kU32:
      return to->AppendU32(from.u32(i));
    case PhysicalType::kU64:
      return to->AppendU64(from.u64(i));
    case PhysicalType::kBytes:
      return to->AppendBytes(from.bytes(i));
  }
}

absl::StatusOr<bool> VisitAllKeys(const SecondaryIndex& index, Deadline deadline,
                                  const KeyVisitor& visit) {
  FindResult matches;
  std::vector<std::string> after;
  QueryOptions options;
  options.limit = kFirstPage;
  options.with_keys = true;
  for (;;) {
    RangeBatch range = RangeBatch::Everything(index.kind());
    range.after = after;
    RETURN_IF_ERROR(index.Scan(range, &matches, options));
    const size_t size = matches.row_ids.size();
    for (size_t i = 0; i < size; ++i) visit(matches.keys, i);
    if (matches.cursors.empty() || matches.cursors[0].empty()) return true;
    if (Passed(deadline)) return false;
    after = matches.cursors;
    if (matches.keys.heap().size() < kPageBytes) {
      options.limit = std::min(options.limit * 2, kLargestPage);
    } else {
      options.limit = std::max<uint64_t>(options.limit / 2, 1);
    }
  }
}

absl::StatusOr<EncodedKeys> KeysOfRanks(const SecondaryIndex& index,
                                        const std::vector<uint64_t>& ranks, Deadline deadline) {
  EncodedKeys found(index.kind());
  std::string common;
  if (index.kind() == PhysicalType::kBytes) {
    ASSIGN_OR_RETURN(common, CommonBytes(index));
  }
  const auto enough = [&] { return Passed(deadline) || found.heap().size() >= kSampleBytes; };
  for (size_t i = 0; i < ranks.size() && (i == 0 || !enough()); i += kRanksAtOnce) {
    const auto some = absl::MakeConstSpan(ranks).subspan(i, kRanksAtOnce);
    RETURN_IF_ERROR(index.kind() == PhysicalType::kBytes ? BytesOfRanks(index, some, common, &found)
                                                         : NumbersOfRanks(index, some, &found));
  }
  return found;
}

absl::StatusOr<EncodedKeys> EndOfRange(const SecondaryIndex& index, const RangeBatch& range,
                                       Order order) {
  QueryOptions options;
  options.order = order;
  options.limit = 1;
  options.with_keys = true;
  FindResult matches;
  RETURN_IF_ERROR(index.Scan(range, &matches, options));
  return std::move(matches.keys);
}

}  // namespace cairn::tools
