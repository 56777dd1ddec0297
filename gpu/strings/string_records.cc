#include "gpu/strings/string_records.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/pinned_memory.h"
#include "gpu/runtime/stream.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr size_t kRecordsATask = size_t{1} << 14;
// Units in each half of the staging buffer; one half is filled while the other is copied.
constexpr size_t kStagedUnits = size_t{2} << 20;

constexpr uint64_t UnitsFor(uint64_t key_bytes) {
  return 1 + (key_bytes + 7) / 8;
}

void WriteRecord(std::string_view key, RowId row_id, uint64_t* record) {
  record[0] = row_id | uint64_t{key.size()} << 32;
  if (key.empty()) return;
  record[UnitsFor(key.size()) - 1] = 0;
  std::memcpy(record + 1, key.data(), key.size());
}

// The beginning of each record, and the end of the last.
AlignedBuffer<uint32_t> FindBegins(const DistinctStrings& keys, int threads) {
  AlignedBuffer<uint32_t> begins(keys.size() + 1);
  const size_t tasks = (keys.size() + kRecordsATask - 1) / kRecordsATask;
  std::vector<uint64_t> units(tasks + 1);
  const auto for_each = [&](size_t task, auto take) {
    const size_t last = std::min((task + 1) * kRecordsATask, keys.size());
    for (size_t i = task * kRecordsATask; i < last; ++i) take(i, UnitsFor(keys[i].size()));
  };
  ParallelFor(threads, tasks, [&](size_t task) {
    uint64_t sum = 0;
    for_each(task, [&](size_t, uint64_t count) { sum += count; });
    units[task + 1] = sum;
  });
  for (size_t task = 0; task < tasks; ++task) units[task + 1] += units[task];
  ParallelFor(threads, tasks, [&](size_t task) {
    uint64_t at = units[task];
    for_each(task, [&](size_t i, uint64_t count) {
      begins[i] = static_cast<uint32_t>(at);
      at += count;
    });
  });
  begins[keys.size()] = static_cast<uint32_t>(units[tasks]);
  return begins;
}

uint64_t AllUnits(const DistinctStrings& keys) {
  return keys.size() + keys.bytes() / sizeof(uint64_t);
}

}  // namespace

absl::Status StringRecords::CheckKeys(const DistinctStrings& keys) {
  if (keys.longest() <= kMaxKeyBytes && AllUnits(keys) <= kMaxUnits) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrFormat("byte-string keys on a GPU: expected up to %d bytes per key and 32 GiB in "
                      "total; the longest has "
                      "%d bytes, all have %d",
                      kMaxKeyBytes, keys.longest(), AllUnits(keys) * sizeof(uint64_t)));
}

uint64_t StringRecords::BytesFor(const DistinctStrings& keys) {
  return (AllUnits(keys) + kReadableBehind) * sizeof(uint64_t) +
         (keys.length().has_value() ? 0 : keys.size() * sizeof(uint32_t));
}

absl::StatusOr<StringRecords> StringRecords::Upload(const DistinctStrings& keys,
                                                    absl::Span<const RowId> row_ids, int threads,
                                                    cudaStream_t stream) {
  RETURN_IF_ERROR(CheckKeys(keys));
  StringRecords records;
  RETURN_IF_ERROR(Resize(&records.units_, AllUnits(keys) + kReadableBehind, stream));
  records.begins_ = FindBegins(keys, threads);
  const AlignedBuffer<uint32_t>& begins = records.begins_;
  const size_t half = std::max(kStagedUnits, static_cast<size_t>(UnitsFor(keys.longest())));
  ASSIGN_OR_RETURN(const PinnedMemory pinned, PinnedMemory::Allocate(2 * half * sizeof(uint64_t)));
  const WaitsAtEnd waits(stream);
  if (keys.length().has_value()) {
    records.stride_ = static_cast<uint32_t>(UnitsFor(*keys.length()));
  } else {
    RETURN_IF_ERROR(
        gpu::Upload(absl::MakeConstSpan(begins.data(), keys.size()), &records.at_, stream));
  }
  bool second = false;
  for (size_t first = 0; first < keys.size(); second = !second) {
    uint64_t* const staged = reinterpret_cast<uint64_t*>(pinned.data()) + (second ? half : 0);
    // As many records as fit.
    const uint64_t begin = begins[first];
    const auto behind = begins.span().subspan(first + 1);
    const size_t count = static_cast<size_t>(
        std::upper_bound(behind.begin(), behind.end(), begin + half) - behind.begin());
    ParallelFor(threads, (count + kRecordsATask - 1) / kRecordsATask, [&](size_t task) {
      const size_t last = first + std::min((task + 1) * kRecordsATask, count);
      for (size_t i = first + task * kRecordsATask; i < last; ++i) {
        WriteRecord(keys[i], row_ids[keys.FirstPosition(i)], staged + (begins[i] - begin));
      }
    });
    // The copy from the other half is then complete, and it can be overwritten.
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(records.units_.data() + begin, staged,
                                               (begins[first + count] - begin) * sizeof(uint64_t),
                                               cudaMemcpyHostToDevice, stream));
    first += count;
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return records;
}

void StringRecords::Detach() {
  units_.SetStream(AfterAllUses());
  at_.SetStream(AfterAllUses());
}

}  // namespace cairn::gpu
