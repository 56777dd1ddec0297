#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/run/device_run.h"
#include "gpu/run/range_rows.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

// Memory layouts of entries: Henneberg and Schuhknecht, "Is Binary Search Really All You Need?"
// (2025), section 4.4. Both take the same number of bytes.
enum class EntryLayout : uint8_t {
  kSoA,  // keys, then row ids
  // Each key followed by its row id: pairs of 8 bytes, or of 12 (4-byte aligned) for u64 keys.
  kAoS,
};

// The instantiated fan-outs K of K-ary search: nodes of K - 1 keys, up to two cache lines.
constexpr bool IsSearchFanOut(int k) {
  return k == 2 || k == 9 || k == 17 || k == 33;
}

// Read access to entries in kernels.
template <typename Key, EntryLayout kLayout>
struct EntryView;

template <typename Key>
struct EntryView<Key, EntryLayout::kSoA> {
  const Key* keys;
  const RowId* row_ids;

  __host__ __device__ Key key(size_t i) const { return keys[i]; }
  __host__ __device__ RowId row_id(size_t i) const { return row_ids[i]; }
  // The entries from entry i on.
  EntryView From(size_t i) const { return {keys + i, row_ids + i}; }
};

template <typename Key>
struct EntryView<Key, EntryLayout::kAoS> {
  static constexpr int kStride = sizeof(Key) / 4 + 1;
  const uint32_t* words;

  __host__ __device__ Key key(size_t i) const {
    if constexpr (sizeof(Key) == 4) {
      return words[i * kStride];
    } else {
      return uint64_t{words[i * kStride + 1]} << 32 | words[i * kStride];
    }
  }
  __host__ __device__ RowId row_id(size_t i) const { return words[i * kStride + kStride - 1]; }
  EntryView From(size_t i) const { return {words + i * kStride}; }
};

// Write access to entries in kernels, for either layout.
template <typename Key>
struct EntryWriter {
  Key* keys;
  RowId* row_ids;
  uint32_t* words;  // null for kSoA

#ifdef __CUDACC__
  __device__ void Put(size_t i, Key key, RowId row_id) const {
    if (words == nullptr) {
      keys[i] = key;
      row_ids[i] = row_id;
    } else if constexpr (sizeof(Key) == 4) {
      words[2 * i] = key;
      words[2 * i + 1] = row_id;
    } else {
      words[3 * i] = static_cast<uint32_t>(key);
      words[3 * i + 1] = static_cast<uint32_t>(key >> 32);
      words[3 * i + 2] = row_id;
    }
  }
#endif
};

// Entries in device memory, in either layout. Movable.
template <typename Key>
class EntryArray {
 public:
  EntryArray() = default;
  // Takes the columns of a run.
  explicit EntryArray(DeviceRun<Key> run)
      : keys_(std::move(run.keys)), row_ids_(std::move(run.row_ids)) {}
  // Uninitialized, on the current device.
  static absl::StatusOr<EntryArray> Allocate(size_t size, EntryLayout layout, cudaStream_t stream);

  static size_t BytesOf(size_t size) { return size * (sizeof(Key) + sizeof(RowId)); }
  uint64_t bytes() const { return keys_.bytes() + row_ids_.bytes() + words_.bytes(); }

  // Requires that the entries have this layout.
  template <EntryLayout kLayout>
  EntryView<Key, kLayout> view() const {
    if constexpr (kLayout == EntryLayout::kSoA) {
      return {keys_.data(), row_ids_.data()};
    } else {
      return {words_.data()};
    }
  }
  EntryWriter<Key> writer() const { return {keys_.data(), row_ids_.data(), words_.data()}; }
  RowColumn row_column() const {
    if (words_.data() == nullptr) return {row_ids_.data(), 1};
    constexpr uint32_t kStride = EntryView<Key, EntryLayout::kAoS>::kStride;
    return {words_.data() + kStride - 1, kStride};
  }
  void SetStream(cudaStream_t stream) {
    keys_.SetStream(stream);
    row_ids_.SetStream(stream);
    words_.SetStream(stream);
  }

 private:
  DeviceBuffer<Key> keys_;        // kSoA
  DeviceBuffer<RowId> row_ids_;   // kSoA
  DeviceBuffer<uint32_t> words_;  // kAoS
};

// The run's entries as pairs, in run order. Enqueued on `stream`. Errors: ResourceExhausted if they
// do not fit in addition to the run.
template <typename Key>
absl::StatusOr<EntryArray<Key>> PairEntries(const DeviceRun<Key>& run, cudaStream_t stream);

// The entries of a run that is kept by the caller: its columns, or pairs that this object owns.
template <typename Key, EntryLayout kLayout>
struct RunEntries {
  // Enqueued on `stream`.
  absl::Status Build(const DeviceRun<Key>& run, cudaStream_t stream) {
    if constexpr (kLayout == EntryLayout::kSoA) {
      view = {run.keys.data(), run.row_ids.data()};
    } else {
      ASSIGN_OR_RETURN(pairs, PairEntries(run, stream));
      view = pairs.template view<kLayout>();
    }
    return absl::OkStatus();
  }

  EntryArray<Key> pairs;
  EntryView<Key, kLayout> view;
};

// A run's entries in run order. Enqueued on `stream`; if the run's memory is not kept, it is freed
// in stream order. Errors: those of PairEntries.
template <typename Key>
absl::StatusOr<EntryArray<Key>> ArrangeEntries(DeviceRun<Key> run, EntryLayout layout,
                                               cudaStream_t stream);

template <typename Key>
absl::StatusOr<EntryArray<Key>> EntryArray<Key>::Allocate(size_t size, EntryLayout layout,
                                                          cudaStream_t stream) {
  EntryArray entries;
  if (layout == EntryLayout::kAoS) {
    ASSIGN_OR_RETURN(entries.words_,
                     DeviceBuffer<uint32_t>::Allocate(
                         size * EntryView<Key, EntryLayout::kAoS>::kStride, stream));
    return entries;
  }
  ASSIGN_OR_RETURN(DeviceBuffer<Key> keys, DeviceBuffer<Key>::Allocate(size, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> row_ids, DeviceBuffer<RowId>::Allocate(size, stream));
  entries.keys_ = std::move(keys);
  entries.row_ids_ = std::move(row_ids);
  return entries;
}

}  // namespace cairn::gpu
