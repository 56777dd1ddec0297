#include "tools/report/key_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "index/machine/status_macros.h"
#include "index/machine/utf8.h"
#include "tools/report/exact_counts.h"
#include "tools/report/key_sample.h"
#include "tools/report/part_values.h"

namespace cairn::tools {
namespace {

constexpr size_t kSample = 4096;
constexpr size_t kTop = 10;
// Limits for the keys of batches.
constexpr size_t kMaxQueries = size_t{1} << 18;
constexpr size_t kMaxQueryBytes = size_t{1} << 26;
constexpr size_t kLongestQuery = 4096;
// From each sampled key on, kNeighbours entries are read; one in kApart of them becomes a query.
constexpr uint64_t kNeighbours = 512;
constexpr uint64_t kApart = 16;

constexpr std::chrono::seconds kScanTime(4);
constexpr std::chrono::seconds kSampleTime(3);

std::string Cut(std::string text) {
  if (text.size() <= kMaxKeyText) return text;
  // Does not cut inside a character, whose first byte is one of the last three before the cut.
  size_t end = kMaxKeyText;
  for (size_t begin = kMaxKeyText - 1; begin + 3 >= kMaxKeyText; --begin) {
    if (begin + Utf8Length(std::string_view(text).substr(begin)) > kMaxKeyText) end = begin;
  }
  text.resize(end);
  return text + kCut;
}

// Collects facts about keys, one by one.
class KeyLook {
 public:
  explicit KeyLook(const KeyCodec& codec) : codec_(&codec), queries_(codec.kind()) {
    for (const DataType type : codec.parts()) parts_.emplace_back(type);
  }

  absl::Status AddValues(const EncodedKeys& keys, size_t i) {
    RETURN_IF_ERROR(codec_->Decode(keys, i, &values_, &scratch_));
    for (size_t part = 0; part < parts_.size(); ++part) parts_[part].Add(values_[part]);
    return absl::OkStatus();
  }
  // Keeps a key for batches, unless there are enough or the key is long.
  void AddQuery(const EncodedKeys& keys, size_t i) {
    if (queries_.size() == kMaxQueries || queries_.heap().size() >= kMaxQueryBytes) return;
    if (keys.kind() == PhysicalType::kBytes && keys.bytes(i).size() > kLongestQuery) return;
    AppendKey(keys, i, &queries_);
  }

  // A key as human-readable text.
  absl::StatusOr<std::string> Text(const EncodedKeys& keys, size_t i) {
    RETURN_IF_ERROR(codec_->Decode(keys, i, &values_, &scratch_));
    if (values_.size() == 1 && std::holds_alternative<std::string_view>(values_[0])) {
      return Cut(std::string(std::get<std::string_view>(values_[0]).substr(0, kMaxKeyText + 4)));
    }
    std::string text;
    for (const DataValue& value : values_) {
      absl::StrAppend(&text, text.empty() ? "" : ", ");
      std::visit([&](const auto& one) { AppendValue(one, &text); }, value);
    }
    return Cut(std::move(text));
  }

  std::vector<PartValues>& parts() { return parts_; }
  EncodedKeys& queries() { return queries_; }

 private:
  static void AppendValue(std::monostate, std::string* text) { text->append("null"); }
  static void AppendValue(uint64_t value, std::string* text) { absl::StrAppend(text, value); }
  static void AppendValue(int64_t value, std::string* text) { absl::StrAppend(text, value); }
  static void AppendValue(double value, std::string* text) { absl::StrAppend(text, value); }
  static void AppendValue(std::string_view value, std::string* text) {
    text->append(value.substr(0, kMaxKeyText + 4));
  }

  const KeyCodec* codec_;
  std::vector<PartValues> parts_;
  EncodedKeys queries_;
  std::vector<DataValue> values_;
  std::string scratch_;
};

bool SameKey(const EncodedKeys& a, size_t i, const EncodedKeys& b, size_t j) {
  switch (a.kind()) {
    case PhysicalType::kU32:
      return a.u32(i) == b.u32(j);
    case PhysicalType::kU64:
      return a.u64(i) == b.u64(j);
    case PhysicalType::kBytes:
      return a.bytes(i) == b.bytes(j);
  }
  return false;
}

// Counts the entries of each key when keys are visited in order.
class RunLengths {
 public:
  explicit RunLengths(PhysicalType kind) : key_(kind) {}

  void Add(const EncodedKeys& keys, size_t i) {
    if (length_ != 0 && SameKey(keys, i, key_, 0)) {
      ++length_;
      return;
    }
    End();
    key_.Clear(keys.kind());
    AppendKey(keys, i, &key_);
    length_ = 1;
  }
  void End() {
    if (length_ == 0) return;
    ++counts_[length_];
    if (top_.size() < kTop || length_ > top_.back().second) {
      const auto at = std::find_if(top_.begin(), top_.end(),
                                   [&](const auto& one) { return one.second < length_; });
      top_.insert(at, {key_, length_});
      if (top_.size() > kTop) top_.pop_back();
    }
    length_ = 0;
  }

  const std::map<uint64_t, uint64_t>& counts() const { return counts_; }
  const std::vector<std::pair<EncodedKeys, uint64_t>>& top() const { return top_; }

 private:
  EncodedKeys key_;
  uint64_t length_ = 0;
  std::map<uint64_t, uint64_t> counts_;
  std::vector<std::pair<EncodedKeys, uint64_t>> top_;  // highest count first
};

// Reads every entry. Returns false if that takes too long.
absl::StatusOr<bool> ReadAll(const SecondaryIndex& index, uint64_t entries, KeyLook* look,
                             KeyFacts* facts) {
  RunLengths runs(index.kind());
  absl::Status status;
  uint64_t seen = 0;
  const uint64_t stride = std::max<uint64_t>(entries / kMaxQueries, 1);
  ASSIGN_OR_RETURN(const bool finished,
                   VisitAllKeys(index, std::chrono::steady_clock::now() + kScanTime,
                                [&](const EncodedKeys& keys, size_t i) {
                                  status.Update(look->AddValues(keys, i));
                                  runs.Add(keys, i);
                                  if (seen++ % stride == 0) look->AddQuery(keys, i);
                                }));
  RETURN_IF_ERROR(status);
  if (!finished) return false;
  runs.End();
  facts->looked_at = seen;
  facts->exact = true;
  facts->keys_by_entries = Grouped(runs.counts());
  for (const auto& [key, count] : runs.top()) {
    ASSIGN_OR_RETURN(std::string text, look->Text(key, 0));
    facts->top.push_back({std::move(text), count});
  }
  return true;
}

// Adds keys that follow those of a sample, for batches.
absl::Status AddNeighbours(const SecondaryIndex& index, EncodedKeys* sample, Deadline deadline,
                           KeyLook* look) {
  if (sample->heap().size() > sample->size() * kLongestQuery) return absl::OkStatus();
  QueryOptions options;
  options.limit = kNeighbours;
  options.with_keys = true;
  FindResult matches;
  constexpr size_t kAtOnce = 32;
  for (size_t i = 0; i < sample->size() && std::chrono::steady_clock::now() < deadline;
       i += kAtOnce) {
    RangeBatch ranges;
    ranges.lower = ranges.upper = sample->Batch();
    ranges.upper_bound = Bound::kOpen;
    RETURN_IF_ERROR(
        index.Scan(ranges.Slice(i, std::min(kAtOnce, sample->size() - i)), &matches, options));
    for (size_t j = 0; j < matches.keys.size(); j += kApart) look->AddQuery(matches.keys, j);
  }
  return absl::OkStatus();
}

// Reads entries of random ranks, in key order.
absl::Status ReadSample(const SecondaryIndex& index, uint64_t entries, KeyLook* look,
                        KeyFacts* facts) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> ranks;
  for (size_t i = 0; i < kSample; ++i) ranks.push_back(random() % entries);
  const Deadline deadline = std::chrono::steady_clock::now() + kSampleTime;
  ASSIGN_OR_RETURN(EncodedKeys sample, KeysOfRanks(index, ranks, deadline));
  for (size_t i = 0; i < sample.size(); ++i) RETURN_IF_ERROR(look->AddValues(sample, i));
  RETURN_IF_ERROR(AddNeighbours(index, &sample, deadline + kSampleTime, look));

  std::vector<uint64_t> counts(sample.size());
  RETURN_IF_ERROR(index.Count(RangeBatch::Equal(sample.Batch()), absl::MakeSpan(counts)));
  // A key with c entries is drawn c times as often as a key with one.
  std::map<uint64_t, double> keys;
  for (const uint64_t count : counts) {
    if (count != 0) {
      keys[count] += static_cast<double>(entries) / static_cast<double>(sample.size()) /
                     static_cast<double>(count);
    }
  }
  std::map<uint64_t, uint64_t> rounded;
  for (const auto& [count, number] : keys) {
    rounded[count] = std::max<uint64_t>(static_cast<uint64_t>(std::llround(number)), 1);
  }
  facts->looked_at = sample.size();
  facts->exact = false;
  facts->keys_by_entries = Grouped(rounded);

  std::vector<size_t> order(sample.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return counts[a] > counts[b]; });
  std::set<std::string> named;
  for (const size_t i : order) {
    if (facts->top.size() == kTop || counts[i] < 2) break;
    ASSIGN_OR_RETURN(const std::string text, look->Text(sample, i));
    if (named.insert(text).second) facts->top.push_back({text, counts[i]});
  }
  return absl::OkStatus();
}

absl::Status ReadEnds(const SecondaryIndex& index, KeyLook* look, KeyFacts* facts) {
  for (const Order order : {Order::kAscending, Order::kDescending}) {
    ASSIGN_OR_RETURN(const EncodedKeys key,
                     EndOfRange(index, RangeBatch::Everything(index.kind()), order));
    if (key.empty()) continue;
    ASSIGN_OR_RETURN(std::string text, look->Text(key, 0));
    (order == Order::kAscending ? facts->first : facts->last) = std::move(text);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KeysRead> ReadKeyFacts(const SecondaryIndex& index, uint64_t entries,
                                      const ReportOptions& options) {
  KeysRead read;
  KeyLook look(index.codec());
  RETURN_IF_ERROR(ReadEnds(index, &look, &read.facts));
  bool finished = false;
  if (entries <= options.scan_most) {
    ASSIGN_OR_RETURN(finished, ReadAll(index, entries, &look, &read.facts));
    if (!finished) look = KeyLook(index.codec());
  }
  if (!finished) RETURN_IF_ERROR(ReadSample(index, entries, &look, &read.facts));
  for (const PartValues& part : look.parts()) {
    read.facts.parts.push_back(part.Facts(read.facts.exact));
  }
  RETURN_IF_ERROR(CountExactly(index, entries, &read.facts));
  read.queries = std::move(look.queries());
  return read;
}

}  // namespace cairn::tools
