#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/device_memory.h"
#include "gpu/device_run.h"

namespace cairn::gpu {

// How entries stand in memory: Henneberg and Schuhknecht, "Is Binary Search Really All You Need?"
// (2025), section 4.4. Both take the same bytes.
enum class EntryLayout : uint8_t {
  kSoA,  // keys, then row ids
  kAoS,  // each key before its row id: pairs of 8 bytes, of 12 (4-byte aligned) for 64-bit keys
};

// Entries as kernels see them.
template <typename Key, EntryLayout kLayout>
struct EntryView;

template <typename Key>
struct EntryView<Key, EntryLayout::kSoA> {
  const Key* keys;
  const RowId* row_ids;

  __host__ __device__ Key key(size_t i) const { return keys[i]; }
  __host__ __device__ RowId row_id(size_t i) const { return row_ids[i]; }
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
};

// Entries in device memory, in either layout. Movable.
template <typename Key>
struct EntryArray {
  EntryLayout layout = EntryLayout::kSoA;
  DeviceBuffer<Key> keys;        // kSoA
  DeviceBuffer<RowId> row_ids;   // kSoA
  DeviceBuffer<uint32_t> words;  // kAoS

  uint64_t bytes() const { return keys.bytes() + row_ids.bytes() + words.bytes(); }
  // Requires that kLayout be `layout`.
  template <EntryLayout kLayout>
  EntryView<Key, kLayout> view() const {
    if constexpr (kLayout == EntryLayout::kSoA) {
      return {keys.data(), row_ids.data()};
    } else {
      return {words.data()};
    }
  }
  void SetStream(cudaStream_t stream) {
    keys.SetStream(stream);
    row_ids.SetStream(stream);
    words.SetStream(stream);
  }
};

// The bytes that ArrangeEntries takes besides the run.
template <typename Key>
size_t ArrangeBytes(size_t size, EntryLayout layout) {
  return layout == EntryLayout::kSoA ? 0 : size * (sizeof(Key) + sizeof(RowId));
}

// A run's entries, in run order. Enqueued on `stream`, which frees the run if it is not kept.
template <typename Key>
absl::StatusOr<EntryArray<Key>> ArrangeEntries(DeviceRun<Key> run, EntryLayout layout,
                                               cudaStream_t stream);

}  // namespace cairn::gpu
