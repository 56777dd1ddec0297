#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <vector>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/host/gpu_index.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// An index on a device with known results, for tests in which the device fails.
namespace cairn::gpu::failing {

// Key 2 i has row i.
inline constexpr size_t kEntries = size_t{1} << 16;

inline SortedRun Run() {
  std::vector<uint32_t> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<uint32_t>(2 * i);
    rows[i] = static_cast<RowId>(i);
  }
  return *SortedRun::FromSorted(keys, rows);
}

// Sizes of batches: the first is polled; the device reads and writes the second in host memory; the
// third is copied in chunks. The device copies the rows of the last two.
inline constexpr size_t kSizes[] = {100, 10000, 300000};

inline std::unique_ptr<OrderedIndex> MakeIndex(const char* factory = "gpu:packed") {
  auto index = RequireOk(MakeDeviceIndex(factory, Run()));
  HostBatchPolicy policy;
  policy.max_rows_from_run = 1000;
  policy.piece_rows = 200000;
  return std::make_unique<GpuIndex>(Run(), std::move(index), policy);
}

// Not for threads: it writes to the log of the tests.
inline std::vector<uint32_t> Keys(size_t size, uint64_t salt) {
  auto random = TestRandom(salt);
  std::vector<uint32_t> keys(size);
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random() % (2 * kEntries));
  return keys;
}

inline constexpr Operation kAskedOperations[] = {Operation::kFindFirst, Operation::kLowerBound,
                                                 Operation::kContains,  Operation::kCount,
                                                 Operation::kFind,      Operation::kScan};

inline bool AreRows(const FindResult& matches, const std::vector<uint32_t>& keys,
                    uint32_t rows_of_range) {
  if (matches.size() != keys.size()) return false;
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t first = (keys[i] + 1) / 2;
    const size_t end = std::min<size_t>((keys[i] + rows_of_range) / 2 + 1, kEntries);
    if (matches[i].size() != end - std::min(first, end)) return false;
    for (size_t j = 0; j < matches[i].size(); ++j) {
      if (matches[i][j] != first + j) return false;
    }
  }
  return true;
}

// Queries keys of an index. Returns its error, or Internal if the results are wrong. The index
// itself returns Internal only for CUDA failures that are not provoked here.
inline absl::Status Ask(const OrderedIndex& index, Operation operation,
                        const std::vector<uint32_t>& keys) {
  const size_t size = keys.size();
  const KeyBatch batch(keys);
  absl::Status status;
  bool right = true;
  switch (operation) {
    case Operation::kFindFirst: {
      std::vector<RowId> rows(size);
      status = index.Execute(Batch::FindFirst(batch, absl::MakeSpan(rows)));
      for (size_t i = 0; i < size; ++i) {
        right &= rows[i] == (keys[i] % 2 == 0 ? keys[i] / 2 : kNoRow);
      }
      break;
    }
    case Operation::kLowerBound: {
      std::vector<Position> positions(size);
      status = index.Execute(Batch::LowerBound(batch, absl::MakeSpan(positions)));
      for (size_t i = 0; i < size; ++i) right &= positions[i] == (keys[i] + 1) / 2;
      break;
    }
    case Operation::kContains: {
      const auto found = std::make_unique<bool[]>(size);
      status = index.Execute(Batch::Contains(batch, absl::MakeSpan(found.get(), size)));
      for (size_t i = 0; i < size; ++i) right &= found[i] == (keys[i] % 2 == 0);
      break;
    }
    case Operation::kCount: {
      std::vector<uint64_t> counts(size);
      status = index.Execute(Batch::Count(RangeBatch::Equal(batch), absl::MakeSpan(counts)));
      for (size_t i = 0; i < size; ++i) right &= counts[i] == (keys[i] % 2 == 0 ? 1 : 0);
      break;
    }
    case Operation::kFind: {
      FindResult matches;
      status = index.Execute(Batch::Find(batch, &matches));
      right = !status.ok() || AreRows(matches, keys, 0);
      break;
    }
    case Operation::kScan: {
      constexpr uint32_t kReach = 9;
      std::vector<uint32_t> upper(keys);
      for (uint32_t& key : upper) key += kReach;
      RangeBatch ranges;
      ranges.lower = batch;
      ranges.upper = upper;
      ranges.lower_bound = ranges.upper_bound = Bound::kInclusive;
      FindResult matches;
      status = index.Execute(Batch::Scan(ranges, &matches));
      right = !status.ok() || AreRows(matches, keys, kReach);
      break;
    }
    default:
      return absl::UnimplementedError("not asked here");
  }
  if (!status.ok()) return status;
  return right ? absl::OkStatus() : absl::InternalError("wrong answers");
}

}  // namespace cairn::gpu::failing
