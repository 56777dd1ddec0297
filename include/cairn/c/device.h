#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cairn/c.h"

// The device part of the C API (cairn/c.h): indexes whose keys and answers are in the memory of one
// GPU (cairn/device.h). Batches are DLPack tensors, in the layout of DLPack 0.2 to 1.x; who makes
// them includes dlpack.h. Calls enqueue their work on `stream`, a cudaStream_t of which NULL is the
// default one, and return, without a copy and without a wait, unless they say that they wait.
// Tensors are borrowed: what they show must stay until the stream has done the work; their deleters
// are not called. Where there is no device, or the library was built without CUDA, an index cannot
// be opened: CAIRN_UNAVAILABLE, which says why.
//
// Tensors have one dimension, are contiguous, aligned to their elements, and in the memory of the
// index's device (kDLCUDA, or kDLCUDAManaged); another is CAIRN_INVALID_ARGUMENT, which names the
// tensor, what was expected and found. Elements of answers may be signed integers of the same
// width. An index may be used by any number of threads and streams, and be closed while its work is
// enqueued.

struct DLManagedTensor;

#ifdef __cplusplus
extern "C" {
#endif

// How many devices this process may use. CAIRN_UNAVAILABLE, saying why, where there is none.
CAIRN_C_MUST_USE cairn_error* cairn_devices(int32_t* count);

typedef struct cairn_device_index cairn_device_index;

// Copies the index's entries, as they are now, to device number `device`, and builds the structure
// that a factory string names over them; NULL: "gpu:auto". Waits. The index may be closed then.
CAIRN_C_MUST_USE cairn_error* cairn_device_open(const cairn_index* index, const char* structure,
                                                int32_t device, cairn_device_index** device_index);
CAIRN_C_API void cairn_device_close(cairn_device_index* index);
CAIRN_C_API int32_t cairn_device_kind(const cairn_device_index* index);  // CAIRN_KIND_…
CAIRN_C_API uint64_t cairn_device_entries(const cairn_device_index* index);
CAIRN_C_API uint64_t cairn_device_memory_bytes(const cairn_device_index* index);

// Physical keys (cairn/key_codec.h): those of one u32 or u64 part are its values. `size` is the
// structure's.
typedef struct cairn_device_keys {
  size_t size;
  // uint32 or uint64, or of byte strings their bytes (uint8), one behind the other, in memory that
  // can be read in whole words of four bytes.
  const struct DLManagedTensor* keys;
  // Of byte strings: where each begins and the last one ends (uint32 or int32, one more than keys).
  const struct DLManagedTensor* offsets;
} cairn_device_keys;
CAIRN_C_INIT(cairn_device_keys)

// As cairn_ranges, of whole keys. One of the two may be NULL, which is open; CAIRN_EQUAL and
// CAIRN_PREFIX take `lower` alone.
typedef struct cairn_device_ranges {
  size_t size;
  int32_t kind;
  int32_t lower_bound;
  int32_t upper_bound;
  int32_t reserved;  // 0
  const cairn_device_keys* lower;
  const cairn_device_keys* upper;
} cairn_device_ranges;
CAIRN_C_INIT(cairn_device_ranges)

// The lowest row of each key, or CAIRN_NO_ROW: uint32, one a key.
CAIRN_C_MUST_USE cairn_error* cairn_device_find_first(const cairn_device_index* index,
                                                      const cairn_device_keys* keys,
                                                      const struct DLManagedTensor* row_ids,
                                                      void* stream);
// Whether any row has each key: bool or uint8.
CAIRN_C_MUST_USE cairn_error* cairn_device_contains(const cairn_device_index* index,
                                                    const cairn_device_keys* keys,
                                                    const struct DLManagedTensor* found,
                                                    void* stream);
// The number of entries in each range: uint64.
CAIRN_C_MUST_USE cairn_error* cairn_device_count(const cairn_device_index* index,
                                                 const cairn_device_ranges* ranges,
                                                 const struct DLManagedTensor* counts,
                                                 void* stream);

// All rows of each range, of CAIRN_EQUAL each key, in two steps, between which the caller makes
// room. First where the entries of each range begin (uint32), at most `limit` (0: any number) of
// them, and where its rows go: uint64 offsets, one more than ranges, of which the last one is the
// number of rows.
CAIRN_C_MUST_USE cairn_error* cairn_device_plan(const cairn_device_index* index,
                                                const cairn_device_ranges* ranges, uint64_t limit,
                                                int32_t order, const struct DLManagedTensor* begin,
                                                const struct DLManagedTensor* offsets,
                                                void* stream);
// Then the rows, as many as `row_ids` (uint32) has room for: exactly the last of the offsets.
CAIRN_C_MUST_USE cairn_error* cairn_device_copy_rows(const cairn_device_index* index,
                                                     const struct DLManagedTensor* begin,
                                                     const struct DLManagedTensor* offsets,
                                                     int32_t order,
                                                     const struct DLManagedTensor* row_ids,
                                                     void* stream);

// Both steps in one, where the caller has room without knowing how many rows there are: offsets as
// cairn_device_plan's, of all rows; of these as many as `row_ids` (uint32) has room for.
CAIRN_C_MUST_USE cairn_error* cairn_device_scan(const cairn_device_index* index,
                                                const cairn_device_ranges* ranges, uint64_t limit,
                                                int32_t order,
                                                const struct DLManagedTensor* offsets,
                                                const struct DLManagedTensor* row_ids,
                                                void* stream);

#ifdef __cplusplus
}
#endif
