#include "engine/aggregates/aggregate_part.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "index/columns/column_type.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

enum class PartOf : uint8_t { kRanges = 'r', kGroups = 'g' };

// Describes the request, for example "cairn-aggregates 2 r 2 keys …". The descriptions of the
// writer and the reader must be equal.
std::string QuestionText(const AggregatePlan& plan, PhysicalType kind, PartOf of, size_t ranges) {
  std::string text =
      absl::StrFormat("cairn-aggregates 2 %c %d keys %d,%d,%d,%d", static_cast<char>(of), ranges,
                      static_cast<int>(kind), plan.counts_entries, plan.counts_keys,
                      static_cast<int>(plan.lists_keys));
  for (const AggregatePlan::Input& input : plan.inputs) {
    absl::StrAppend(&text, ";", static_cast<int>(input.kind), " ", static_cast<int>(input.type),
                    " ", input.name);
  }
  return text;
}

class PartWriter {
 public:
  void PutSize(uint64_t size) { Put(&size, sizeof size); }
  // Writes the length, then the text.
  void PutText(std::string_view text) {
    PutSize(text.size());
    bytes_.append(text);
  }
  // Writes the numbers without their count, which the reader computes.
  template <typename T>
  void PutNumbers(const std::vector<T>& numbers) {
    Put(numbers.data(), numbers.size() * sizeof(T));
  }
  void PutStrings(const std::vector<uint64_t>& offsets, std::string_view heap) {
    PutNumbers(offsets);
    PutText(heap);
  }
  void Put(const void* data, size_t size) {
    if (size != 0) bytes_.append(static_cast<const char*>(data), size);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Each method returns false if the remaining bytes do not have the expected form.
class PartReader {
 public:
  explicit PartReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  bool Take(void* to, size_t size) {
    if (rest_.size() < size) return false;
    if (size != 0) std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }
  bool TakeSize(uint64_t* size) { return Take(size, sizeof *size); }
  bool TakeText(std::string_view* text) {
    uint64_t size;
    if (!TakeSize(&size) || rest_.size() < size) return false;
    *text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  template <typename T>
  bool TakeNumbers(size_t count, std::vector<T>* numbers) {
    if (rest_.size() / sizeof(T) < count) return false;
    numbers->resize(count);
    return Take(numbers->data(), count * sizeof(T));
  }
  // Reads offsets that start at 0 and do not decrease.
  bool TakeOffsets(size_t count, std::vector<uint64_t>* offsets) {
    return count < SIZE_MAX && TakeNumbers(count + 1, offsets) && offsets->front() == 0 &&
           std::is_sorted(offsets->begin(), offsets->end());
  }
  template <typename Append>
  bool TakeStrings(size_t count, Append append) {
    std::vector<uint64_t> offsets;
    std::string_view heap;
    if (!TakeOffsets(count, &offsets) || !TakeText(&heap) || offsets.back() != heap.size()) {
      return false;
    }
    for (size_t i = 0; i < count; ++i) {
      const uint64_t size = offsets[i + 1] - offsets[i];
      if (size > KeyCodec::kMaxKeyBytes) return false;
      append(heap.substr(offsets[i], size));
    }
    return true;
  }

 private:
  std::string_view rest_;
};

// An integer sum is stored as its low half, its high half and its count; a float sum as its bytes
// and its count.
void PutSums(const std::vector<IntegerSum>& sums, PartWriter* to) {
  std::vector<uint64_t> numbers;
  numbers.reserve(3 * sums.size());
  for (const auto& [sum, count] : sums) {
    const auto bits = static_cast<absl::uint128>(sum);
    numbers.insert(numbers.end(), {absl::Uint128Low64(bits), absl::Uint128High64(bits), count});
  }
  to->PutNumbers(numbers);
}
bool TakeSums(PartReader* from, size_t size, std::vector<IntegerSum>* sums) {
  std::vector<uint64_t> numbers;
  if (size > SIZE_MAX / 3 || !from->TakeNumbers(3 * size, &numbers)) return false;
  for (size_t i = 0; i < numbers.size(); i += 3) {
    const auto sum = static_cast<absl::int128>(absl::MakeUint128(numbers[i + 1], numbers[i]));
    const uint64_t count = numbers[i + 2];
    // A sum of `count` 64-bit numbers is at most this far from 0. So adding up the sums of all
    // shards cannot overflow.
    const absl::int128 most = absl::MakeInt128(static_cast<int64_t>(count), 0);
    if (count > kMaxEntries || sum > most || sum < -most) return false;
    sums->push_back({sum, count});
  }
  return true;
}

void PutFloatSums(const std::vector<FloatSum>& sums, PartWriter* to) {
  for (const auto& [sum, count] : sums) {
    to->Put(&sum, sizeof sum);
    to->PutSize(count);
  }
}
bool TakeFloatSums(PartReader* from, size_t size, std::vector<FloatSum>* sums) {
  std::vector<uint64_t> numbers;
  if (size > SIZE_MAX / 2 || !from->TakeNumbers(2 * size, &numbers)) return false;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    sums->push_back({absl::bit_cast<double>(numbers[i]), numbers[i + 1]});
  }
  return true;
}

// Writes one byte per value, 0 if it is null, and then all values.
void PutValues(const ColumnValues& values, PartWriter* to) {
  std::vector<uint8_t> there(values.size());
  for (size_t i = 0; i < values.size(); ++i) there[i] = values.is_null(i) ? 0 : 1;
  to->PutNumbers(there);
  if (IsTextOrBytes(values.type())) {
    to->PutStrings(values.strings().offsets(), values.strings().heap());
  } else {
    to->Put(values.data(), values.size() * values.width());
  }
}
bool TakeValues(PartReader* from, DataType type, size_t size, ColumnValues* values) {
  std::vector<uint8_t> there;
  if (!from->TakeNumbers(size, &there)) return false;
  values->Clear(type);
  const bool taken = VisitColumnType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      return from->TakeStrings(size, [&](std::string_view bytes) { values->AppendBytes(bytes); });
    } else {
      std::vector<T> numbers;
      if (!from->TakeNumbers(size, &numbers)) return false;
      std::copy(numbers.begin(), numbers.end(), values->ExtendNumbers<T>(size));
      return true;
    }
  });
  if (!taken) return false;
  for (size_t i = 0; i < size; ++i) {
    if (there[i] != 0) continue;
    if (IsTextOrBytes(type) && !values->bytes(i).empty()) return false;
    values->SetNull(i);
  }
  return true;
}

void PutKeys(const ListedKeys& listed, PhysicalType kind, PartWriter* to) {
  to->PutNumbers(listed.offsets);
  switch (kind) {
    case PhysicalType::kU32:
      return to->PutNumbers(listed.keys.u32());
    case PhysicalType::kU64:
      return to->PutNumbers(listed.keys.u64());
    case PhysicalType::kBytes:
      to->PutStrings(listed.keys.offsets(), listed.keys.heap());
  }
}
bool TakeKeys(PartReader* from, PhysicalType kind, size_t size, ListedKeys* listed) {
  listed->keys.Clear(kind);
  if (!from->TakeOffsets(size, &listed->offsets)) return false;
  const uint64_t keys = listed->offsets.back();
  if (kind == PhysicalType::kBytes) {
    return from->TakeStrings(keys, [&](std::string_view key) { listed->keys.AppendBytes(key); });
  }
  const auto take = [&](auto numbers, auto extend) {
    if (!from->TakeNumbers(keys, &numbers)) return false;
    std::copy(numbers.begin(), numbers.end(), extend(numbers.size()));
    return true;
  };
  if (kind == PhysicalType::kU32) {
    return take(std::vector<uint32_t>(), [&](size_t n) { return listed->keys.ExtendU32(n); });
  }
  return take(std::vector<uint64_t>(), [&](size_t n) { return listed->keys.ExtendU64(n); });
}

void PutResults(const AggregatePlan& plan, PhysicalType kind, const AggregateResults& results,
                PartWriter* to) {
  if (plan.counts_entries) to->PutNumbers(results.entries);
  if (plan.counts_keys) to->PutNumbers(results.keys);
  if (plan.lists_keys != KeyList::kNone) PutKeys(results.listed, kind, to);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const AggregateResults::Input& input = results.inputs[i];
    switch (plan.inputs[i].kind) {
      case MeasureKind::kSum:
        PutSums(input.sums, to);
        break;
      case MeasureKind::kFloatSum:
        PutFloatSums(input.float_sums, to);
        break;
      case MeasureKind::kMin:
      case MeasureKind::kGreatest:
        PutValues(input.extremes, to);
    }
  }
}
bool TakeResults(PartReader* from, const AggregatePlan& plan, PhysicalType kind, size_t size,
                 AggregateResults* results) {
  if (plan.counts_entries && !from->TakeNumbers(size, &results->entries)) return false;
  if (plan.counts_keys && !from->TakeNumbers(size, &results->keys)) return false;
  if (plan.lists_keys != KeyList::kNone && !TakeKeys(from, kind, size, &results->listed)) {
    return false;
  }
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    AggregateResults::Input& input = results->inputs[i];
    bool taken = false;
    switch (plan.inputs[i].kind) {
      case MeasureKind::kSum:
        taken = TakeSums(from, size, &input.sums);
        break;
      case MeasureKind::kFloatSum:
        taken = TakeFloatSums(from, size, &input.float_sums);
        break;
      case MeasureKind::kMin:
      case MeasureKind::kGreatest:
        taken = TakeValues(from, plan.inputs[i].type, size, &input.extremes);
    }
    if (!taken) return false;
  }
  return from->at_end();
}

absl::Status CheckQuestion(const std::string& expected, PartReader* from) {
  std::string_view found;
  if (from->TakeText(&found) && found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "expected a shard's part of the aggregates '%s', found %s", expected,
      found.empty() ? "none" : absl::StrCat("one of '", std::string(found.substr(0, 200)), "'")));
}

absl::Status IsDamaged() {
  return absl::InvalidArgumentError("a shard's part of aggregates is truncated or damaged");
}

}  // namespace

std::string EncodePart(const AggregatePlan& plan, PhysicalType kind, size_t ranges,
                       const AggregateResults& results) {
  PartWriter to;
  to.PutText(QuestionText(plan, kind, PartOf::kRanges, ranges));
  PutResults(plan, kind, results, &to);
  return to.Take();
}

std::string EncodePart(const AggregatePlan& plan, PhysicalType kind, const GroupResults& groups) {
  PartWriter to;
  to.PutText(QuestionText(plan, kind, PartOf::kGroups, groups.more.size()));
  to.PutNumbers(groups.offsets);
  to.PutNumbers(groups.more);
  to.PutNumbers(groups.tags);
  to.PutStrings(groups.prefixes.offsets(), groups.prefixes.heap());
  PutResults(plan, kind, groups.results, &to);
  return to.Take();
}

absl::StatusOr<AggregateResults> DecodeRanges(const AggregatePlan& plan, PhysicalType kind,
                                              size_t ranges, std::string_view part) {
  PartReader from(part);
  RETURN_IF_ERROR(CheckQuestion(QuestionText(plan, kind, PartOf::kRanges, ranges), &from));
  AggregateResults results(plan);
  if (!TakeResults(&from, plan, kind, ranges, &results)) return IsDamaged();
  return results;
}

absl::StatusOr<GroupResults> DecodeGroups(const AggregatePlan& plan, PhysicalType kind,
                                          size_t ranges, std::string_view part) {
  PartReader from(part);
  RETURN_IF_ERROR(CheckQuestion(QuestionText(plan, kind, PartOf::kGroups, ranges), &from));
  GroupResults groups(plan);
  const bool taken =
      from.TakeOffsets(ranges, &groups.offsets) && from.TakeNumbers(ranges, &groups.more) &&
      from.TakeNumbers(ranges, &groups.tags) &&
      from.TakeStrings(groups.offsets.back(),
                       [&](std::string_view bytes) { groups.prefixes.Append(bytes); }) &&
      TakeResults(&from, plan, kind, groups.offsets.back(), &groups.results);
  if (!taken) return IsDamaged();
  return groups;
}

}  // namespace cairn
