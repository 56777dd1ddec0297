#include "engine/verify.h"

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"

namespace cairn {
namespace {

// Entries or rows looked at in one batch.
constexpr size_t kBatch = 4096;

bool SameKey(const SortedRun& run, size_t i, size_t j) {
  switch (run.kind()) {
    case KeyKind::kU32:
      return run.u32()[i] == run.u32()[j];
    case KeyKind::kU64:
      return run.u64()[i] == run.u64()[j];
    case KeyKind::kBytes:
      return run.bytes()[i] == run.bytes()[j];
  }
  return false;
}

absl::Status CheckRun(const Base& base) {
  const SortedRun& run = base.run();
  if (absl::Status s = run.CheckOrder(); !s.ok()) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': %s", base.directory, std::string(s.message())));
  }
  for (size_t i = 0; i < run.size(); ++i) {
    if (run.row_ids()[i] >= base.rows().rows()) {
      return absl::DataLossError(absl::StrFormat("index '%s': entry %d names row %d of %d",
                                                 base.directory, i, run.row_ids()[i],
                                                 base.rows().rows()));
    }
  }
  return absl::OkStatus();
}

// Every distinct key's lower and upper bound, and the count of distinct keys.
absl::Status CheckOrderedIndex(const Base& base) {
  const SortedRun& run = base.run();
  KeyColumn keys(run.kind());
  std::vector<Position> expected_lower, expected_upper, lower, upper;
  uint64_t distinct = 0;
  for (size_t i = 0; i < run.size();) {
    keys.Clear(run.kind());
    expected_lower.clear();
    expected_upper.clear();
    while (i < run.size() && keys.size() < kBatch) {
      size_t end = i + 1;
      while (end < run.size() && SameKey(run, i, end)) ++end;
      AppendKey(run, i, &keys);
      expected_lower.push_back(static_cast<Position>(i));
      expected_upper.push_back(static_cast<Position>(end));
      i = end;
    }
    distinct += keys.size();
    lower.resize(keys.size());
    upper.resize(keys.size());
    const KeyBatch batch = keys.Batch();
    for (const ResidentIndex& resident : base.resident.indexes) {
      const OrderedIndex& index = *resident.index;
      if (absl::Status s = index.LowerBound(batch, absl::MakeSpan(lower)); !s.ok()) return s;
      if (absl::Status s = index.UpperBound(batch, absl::MakeSpan(upper)); !s.ok()) return s;
      for (size_t k = 0; k < keys.size(); ++k) {
        if (lower[k] == expected_lower[k] && upper[k] == expected_upper[k]) continue;
        return absl::DataLossError(
            absl::StrFormat("index '%s': %s finds key %s at [%d, %d), but it is at [%d, %d)",
                            base.directory, index.description(), KeyText(base.codec, keys, k),
                            lower[k], upper[k], expected_lower[k], expected_upper[k]));
      }
    }
  }
  if (distinct != base.run_file.properties.distinct_keys) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': %d distinct keys, but the run file says %d", base.directory,
                        distinct, base.run_file.properties.distinct_keys));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyStructure(const Base& base) {
  if (absl::Status s = CheckRun(base); !s.ok()) return s;
  if (absl::Status s = base.rows().CheckOrder(); !s.ok()) return s;
  return CheckOrderedIndex(base);
}

}  // namespace cairn
