// Partial aggregates of shards: bytes for a valid question are either rejected, or are results that
// encode and decode to themselves and can be combined.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/key_codec.h"
#include "engine/aggregates/aggregate_part.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/combined_parts.h"

namespace cairn {
namespace {

// A part's question: a length, and text.
std::string QuestionOf(const std::string& part) {
  uint64_t size;
  std::memcpy(&size, part.data(), sizeof size);
  return part.substr(0, sizeof size + size);
}

void Try(const AggregatePlan& plan, const KeyCodec& codec, std::string_view bytes) {
  constexpr size_t kRanges = 2;
  const PhysicalType kind = codec.kind();
  std::string part = QuestionOf(EncodePart(plan, kind, kRanges, AggregateResults(plan)));
  part += bytes;
  if (const auto results = DecodeRanges(plan, kind, kRanges, part); results.ok()) {
    const std::string again = EncodePart(plan, kind, kRanges, *results);
    if (again.size() != part.size() || !DecodeRanges(plan, kind, kRanges, again).ok()) std::abort();
  }
  GroupResults none(plan);
  none.more.resize(kRanges);
  std::string groups = QuestionOf(EncodePart(plan, kind, none));
  groups += bytes;
  if (const auto results = DecodeGroups(plan, kind, kRanges, groups); results.ok()) {
    const std::string again = EncodePart(plan, kind, *results);
    if (again.size() != groups.size() || !DecodeGroups(plan, kind, kRanges, again).ok()) {
      std::abort();
    }
  }
  const std::vector<uint32_t> queries = {1, 0};
  std::vector<ColumnValues> values;
  if (CombineRangeParts(plan, codec, kRanges, {{queries, part}, {queries, part}}, &values).ok()) {
    for (const ColumnValues& column : values) {
      if (column.size() != kRanges) std::abort();
    }
  }
  AggregateGroupsResult found;
  QueryOptions options;
  options.limit = 2;
  if (CombineGroupParts(plan, codec, kRanges, 1, options, {{queries, groups}, {queries, groups}},
                        &found)
          .ok()) {
    if (found.offsets.size() != kRanges + 1 || found.offsets.back() > 4) std::abort();
  }
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<ColumnSchema> columns = {
      {"n", DataType::kI32}, {"x", DataType::kF64}, {"t", DataType::kText}};
  const std::vector<std::vector<Aggregate>> questions = {
      {Aggregate::Count(), Aggregate::CountDistinct()},
      {Aggregate::Sum("n"), Aggregate::Avg("x"), Aggregate::Min("n")},
      {Aggregate::Max("t")}};
  for (const DataType type : {DataType::kU32, DataType::kU64, DataType::kText}) {
    const auto codec = KeyCodec::Create({type});
    if (!codec.ok()) std::abort();
    for (const std::vector<Aggregate>& question : questions) {
      auto plan = AggregatePlan::Make(columns, question);
      if (!plan.ok()) std::abort();
      if (plan->counts_keys) plan->lists_keys = KeyList::kAll;
      Try(*plan, *codec, bytes);
    }
  }
  return 0;
}
