#include "engine/version/verify.h"

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "index/machine/status_macros.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// Entries or rows per batch.
constexpr size_t kKeysAtATime = 4096;

bool SameKey(const SortedRun& run, size_t i, size_t j) {
  return WithColumn(run, [&](const auto& column) { return column[i] == column[j]; });
}

// Checks every distinct key's lower and upper bound.
absl::Status CheckOrderedIndex(const Base& base, const StopCondition& stop) {
  const SortedRun& run = base.run();
  EncodedKeys keys(run.kind());
  std::vector<Position> expected_lower, expected_upper, lower, upper;
  for (size_t i = 0; i < run.size();) {
    RETURN_IF_ERROR(stop.Check());
    keys.Clear(run.kind());
    expected_lower.clear();
    expected_upper.clear();
    while (i < run.size() && keys.size() < kKeysAtATime) {
      size_t end = i + 1;
      while (end < run.size() && SameKey(run, i, end)) ++end;
      AppendKey(run, i, &keys);
      expected_lower.push_back(static_cast<Position>(i));
      expected_upper.push_back(static_cast<Position>(end));
      i = end;
    }
    lower.resize(keys.size());
    upper.resize(keys.size());
    const KeyBatch batch = keys.Batch();
    for (const ResidentIndex& resident : base.resident.indexes) {
      const OrderedIndex& index = *resident.index;
      RETURN_IF_ERROR(
          index.Execute(Batch::EqualRange(batch, absl::MakeSpan(lower), absl::MakeSpan(upper))));
      for (size_t k = 0; k < keys.size(); ++k) {
        if (lower[k] == expected_lower[k] && upper[k] == expected_upper[k]) continue;
        return absl::DataLossError(
            absl::StrFormat("index '%s': %s finds key %s at [%d, %d), but it is at [%d, %d)",
                            base.directory, index.description(), KeyText(base.codec, keys, k),
                            lower[k], upper[k], expected_lower[k], expected_upper[k]));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyStructure(const Base& base, const StopCondition& stop) {
  return CheckOrderedIndex(base, stop);
}

}  // namespace cairn
