#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// The device API: indexes whose keys, queries and results are in the memory of one GPU. Calls are
// stream-ordered like CUDA calls: they enqueue work on the caller's stream and return, unless their
// comment says "Waits". This header needs no CUDA headers.

struct CUstream_st;

namespace cairn {

// A cudaStream_t. Null: the default stream.
using DeviceStream = CUstream_st*;

// A CUDA device.
struct Device {
  int ordinal = 0;
  std::string name;
  size_t memory_bytes = 0;
};

// Returns the devices that this process can use and this build has code for, in CUDA's order.
// Errors: Unavailable, with the reason, if there is none: a build without CUDA, no driver, or no
// such device.
absl::StatusOr<std::vector<Device>> ListDevices();

// A batch of keys in device memory: a typed view that owns nothing. Integers must be aligned to
// their size.
class DeviceKeys {
 public:
  DeviceKeys() = default;  // no keys, of any type
  DeviceKeys(const uint32_t* keys, size_t size)
      : kind_(PhysicalType::kU32), size_(size), keys_(keys) {}
  DeviceKeys(const uint64_t* keys, size_t size)
      : kind_(PhysicalType::kU64), size_(size), keys_(keys) {}
  // Byte strings in Arrow's layout: key i is bytes[offsets[i]] … bytes[offsets[i + 1] - 1]. There
  // are size + 1 ascending offsets. The memory of the bytes must be readable in aligned words of 4
  // bytes.
  DeviceKeys(const char* bytes, const uint32_t* offsets, size_t size)
      : kind_(PhysicalType::kBytes), size_(size), keys_(bytes), offsets_(offsets) {}

  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const void* data() const { return keys_; }
  // Return the keys. Require kind() to match the method, or an empty batch.
  const uint32_t* u32() const { return static_cast<const uint32_t*>(keys_); }
  const uint64_t* u64() const { return static_cast<const uint64_t*>(keys_); }
  const char* bytes() const { return static_cast<const char*>(keys_); }
  const uint32_t* offsets() const { return offsets_; }  // for byte strings; otherwise null

 private:
  PhysicalType kind_ = PhysicalType::kU32;
  size_t size_ = 0;
  const void* keys_ = nullptr;
  const uint32_t* offsets_ = nullptr;
};

// Ranges from lower[i] to upper[i]. All ranges have the same bounds.
struct DeviceRanges {
  DeviceKeys lower;
  // Same size and type as `lower`. For Bound::kPrefix, the prefixes are in `lower`; only the size
  // of `upper` is used, and its memory may be null.
  DeviceKeys upper;
  Bound lower_bound = Bound::kInclusive;
  Bound upper_bound = Bound::kExclusive;

  size_t size() const { return lower.size(); }
};

// The device-memory counterpart of Batch (query.h). Find and Scan are separate calls of
// DeviceIndex: PlanScan, then CopyRows. Owns nothing.
struct DeviceBatch {
  Operation operation = Operation::kFindFirst;
  DeviceKeys keys = {};      // for operations on keys
  DeviceRanges ranges = {};  // kCount, kPositions

  // Results. Those of the operation have size() elements; all others are ignored.
  uint32_t* values = nullptr;  // row ids (kFindFirst), positions, or begin positions of ranges
  Position* ends = nullptr;    // end positions (kEqualRange, kPositions)
  bool* found = nullptr;       // kContains
  uint64_t* counts = nullptr;  // kCount

  // Create a batch of one operation. Pointers to results have one element per query.
  static DeviceBatch FindFirst(DeviceKeys keys, RowId* row_ids) {
    return {Operation::kFindFirst, keys, {}, row_ids};
  }
  static DeviceBatch Contains(DeviceKeys keys, bool* found) {
    return {Operation::kContains, keys, {}, nullptr, nullptr, found};
  }
  static DeviceBatch LowerBound(DeviceKeys keys, Position* positions) {
    return {Operation::kLowerBound, keys, {}, positions};
  }
  static DeviceBatch UpperBound(DeviceKeys keys, Position* positions) {
    return {Operation::kUpperBound, keys, {}, positions};
  }
  static DeviceBatch EqualRange(DeviceKeys keys, Position* begin, Position* end) {
    return {Operation::kEqualRange, keys, {}, begin, end};
  }
  static DeviceBatch Positions(const DeviceRanges& ranges, Position* begin, Position* end) {
    return {Operation::kPositions, {}, ranges, begin, end};
  }
  static DeviceBatch Count(const DeviceRanges& ranges, uint64_t* counts) {
    return {Operation::kCount, {}, ranges, nullptr, nullptr, nullptr, counts};
  }

  size_t size() const { return TakesRanges(operation) ? ranges.size() : keys.size(); }
};

// An index in device memory.
//
// Thread safety: immutable. Every method may be called from any number of host threads and streams;
// scratch memory belongs to the stream.
//
// Scratch memory: operations on single keys need none, or 8 bytes for the largest batches. Bounds
// of gpu:partial_key take 12 bytes per query, kCount 8 bytes. PlanScan takes 4 bytes per range and
// Scan up to 16, both in addition to the temporary memory of a prefix sum.
//
// Lifetime: pointers must refer to memory of the device of the index and stay valid until the
// stream has completed the work of the call. The index may be destroyed while its work is enqueued:
// its memory is freed after that work, and the destructor does not wait.
//
// Graph capture: methods may enqueue on a stream that is being captured (cudaStreamBeginCapture);
// the index must then outlive the graph.
//
// Errors: InvalidArgument if the type of the keys is not that of the index; ResourceExhausted if
// scratch memory runs out; Unavailable if the device is lost, for the rest of the process;
// Internal, naming the CUDA call, for other CUDA errors. An empty batch succeeds. If an earlier
// CUDA call of the caller has left an error in the thread, most methods ignore and keep it.
// PlanScan, Scan, builds and strategies that sort cannot distinguish it from their own errors; they
// return Unavailable and name it.
class DeviceIndex {
 public:
  virtual ~DeviceIndex() = default;
  DeviceIndex(const DeviceIndex&) = delete;
  DeviceIndex& operator=(const DeviceIndex&) = delete;

  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }
  int device() const { return device_; }
  // Returns the factory string of this structure, with all chosen parameters.
  virtual std::string description() const = 0;
  // Returns the total bytes of device memory.
  virtual uint64_t memory_bytes() const = 0;
  // Returns whether each result of an operation on single keys is written exactly once. A host
  // thread that polls memory shared with the device may then use a result as soon as it appears,
  // before the stream is done.
  virtual bool writes_results_once() const { return false; }

  // Executes a batch. InvalidArgument for kFind and kScan; use the methods below.
  absl::Status Execute(const DeviceBatch& batch, DeviceStream stream) const;

  // First of two steps to find all rows of a batch; the caller allocates memory between them. Sets
  // begin[i] to the position of the first entry to return for range i, at most `limit` entries per
  // range. Sets offsets[0] to 0 and offsets[i + 1] to the number of rows of ranges 0 … i, so that
  // offsets[size] is the total. A descending scan keeps the last entries of a range. `limit` 0: no
  // rows.
  absl::Status PlanScan(const DeviceRanges& ranges, uint64_t limit, Order order, Position* begin,
                        uint64_t* offsets, DeviceStream stream) const;
  // Second step: writes the rows of range i to row_ids[offsets[i]] … row_ids[offsets[i + 1] - 1],
  // in (key, row id) order or its reverse. `queries` is the size of the batch and `rows` is
  // offsets[queries].
  absl::Status CopyRows(const Position* begin, const uint64_t* offsets, size_t queries,
                        uint64_t rows, Order order, RowId* row_ids, DeviceStream stream) const;

  // Both steps in one call, for a buffer of `capacity` rows. Offsets are those of PlanScan, for all
  // rows. Rows are those of CopyRows, but rows that belong at row_ids[capacity] or later are
  // omitted: if offsets[size] > capacity, rows are missing. If has_distinct_keys() and each range
  // is a single key (the same memory as `lower` and `upper`, both inclusive), one search of the
  // first rows is enough.
  absl::Status Scan(const DeviceRanges& ranges, uint64_t limit, Order order, uint64_t* offsets,
                    RowId* row_ids, uint64_t capacity, DeviceStream stream) const;
  // Returns whether the structure knows that no key has more than one entry.
  virtual bool has_distinct_keys() const { return false; }

 protected:
  DeviceIndex(PhysicalType kind, size_t size, int device)
      : kind_(kind), size_(size), device_(device) {}
  // For structures that can be updated; an update excludes all other calls.
  void SetSize(size_t size) { size_ = size; }

 private:
  // Executes a batch of kFindFirst, kContains (bools), kLowerBound or kUpperBound. The batch is not
  // empty and has the key type of the index; the device of the index is current.
  virtual absl::Status Search(Operation operation, DeviceKeys keys, void* results,
                              DeviceStream stream) const = 0;
  // Finds the begin and end positions of each key, under the same conditions. Makes two searches
  // unless overridden.
  virtual absl::Status FindEqualRanges(DeviceKeys keys, Position* begin, Position* end,
                                       DeviceStream stream) const;
  // Finds the end position of the keys that start with each prefix. The index has byte-string keys;
  // the batch is not empty, and the device of the index is current.
  virtual absl::Status FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                                      DeviceStream stream) const;
  // Requires ranges of the key type of the index, not empty.
  absl::Status FindPositions(const DeviceRanges& ranges, Position* begin, Position* end,
                             DeviceStream stream) const;
  // Executes a Scan of single keys if has_distinct_keys(). The keys must have the type of the
  // index, and there must be at least one.
  absl::Status FindOnlyRows(DeviceKeys keys, uint64_t* offsets, RowId* row_ids, uint64_t capacity,
                            DeviceStream stream) const;
  // Executes CopyRows for a positive `rows`. The number of rows is offsets[queries], which may be
  // less than `rows`.
  virtual absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                                  uint64_t rows, Order order, RowId* row_ids,
                                  DeviceStream stream) const = 0;

  PhysicalType kind_;
  size_t size_;
  int device_;
};

// How a batch is executed on a device index.
struct DeviceStrategyOptions {
  Strategy strategy = Strategy::kUnbuffered;
  // kKey skips restoring the caller's order, which takes random writes and for most structures
  // longer than the search. Not supported with kUnbuffered.
  ResultOrder order = ResultOrder::kCaller;
  // kBuffered: the number of leading key bits that partition the queries, 1 to 16.
  int part_bits = 8;
};

// Executes a batch with a strategy; results are exact. Batches of ranges are executed as they are.
// With ResultOrder::kKey, result i is of keys[query_of[i]]; `query_of` then has one element per
// query and must otherwise be null. Errors: those of DeviceIndex; InvalidArgument for options that
// conflict or are out of range, and for a batch of more than kMaxEntries queries; Unimplemented for
// byte-string keys with a strategy other than kUnbuffered. Scratch memory is up to 24 bytes per
// 32-bit key and 36 bytes per 64-bit key, plus 4 bytes for kEqualRange.
absl::Status Execute(const DeviceIndex& index, const DeviceBatch& batch,
                     const DeviceStrategyOptions& options, uint32_t* query_of, DeviceStream stream);

// Builds the structure named by a factory string ("gpu:auto"; docs/tuning.md lists them)
// over entries in host memory, on the device with ordinal `device`. Waits. Errors: those of
// MakeOrderedIndex; DataLoss if the entries are not in order.
absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             const SortedRun& run, int device = 0);

// Builds the structure over entries in the memory of the stream's device, in any order. `keys` are
// integers, and `row_ids` has one element per key; both are left unchanged. Duplicate entries are
// kept. Waits for the stream, whichever device is current. Errors: those of MakeOrderedIndex;
// InvalidArgument for a row id of kNoRow; Unimplemented for byte-string keys; FailedPrecondition if
// the stream is being captured.
absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             DeviceKeys keys, const RowId* row_ids,
                                                             DeviceStream stream);

// Builds the structure without waiting. Supports structures whose size follows from the number of
// entries: gpu:fast, gpu:btree, gpu:pivot, gpu:eytzinger and gpu:sorted_array. All work is enqueued
// on `stream`. Work enqueued later on that stream may use the index at once; other streams must
// first wait for `stream`. Keys and row ids must stay unchanged until the stream has read them. The
// index may be destroyed at any time. The call blocks only if CUDA blocks to allocate memory.
//
// The entries are not inspected first. They are therefore sorted by row id and then by key, which
// takes twice the time. To avoid this, pass `rows_ascend` if the entries of each key have ascending
// row ids. An entry with row id kNoRow is not an error: the index then contains its key without a
// row. Errors: those of MakeDeviceIndex; Unimplemented for gpu:packed and gpu:auto, whose size
// depends on the keys, and for byte-string keys.
absl::StatusOr<std::unique_ptr<DeviceIndex>> EnqueueDeviceIndex(std::string_view factory,
                                                                DeviceKeys keys,
                                                                const RowId* row_ids,
                                                                bool rows_ascend,
                                                                DeviceStream stream);

// How a bulk insertion treats equal keys.
enum class EqualKeys : uint8_t {
  kKeepRows,     // a key may have several rows; one of several equal (key, row id) pairs is kept
  kReplaceRows,  // a key has one row: the lowest inserted one, otherwise the lowest existing one
};

// An index in device memory that supports insertions: a B+-tree (gpu:btree).
//
// Between updates it behaves like any DeviceIndex. An update (Insert, BulkInsert) excludes all
// other calls from any thread until it returns. It runs after all work that is enqueued on any
// stream and reads the index, and its result is visible to all streams when it returns. Do not
// launch a graph that captured a query before an update.
//
// Entries are in the memory of the device of the index, in any order, and are left unchanged.
// Errors: InvalidArgument for keys of another type, a row id of kNoRow, more than kMaxEntries
// entries in total, or a stream of another device; ResourceExhausted; FailedPrecondition if the
// stream is being captured; Unavailable and Internal as for DeviceIndex. On error the index is
// unchanged.
class UpdatableDeviceIndex : public DeviceIndex {
 public:
  // The maximum number of entries that Insert inserts one by one.
  static constexpr size_t kMaxOneByOne = 64;

  // Inserts entries, moving only entries of the affected pages. Existing (key, row id) pairs are
  // skipped. Returns the number of new entries. Up to kMaxOneByOne entries are inserted one by one,
  // in order, in 3 to 6 microseconds each; more are inserted together.
  absl::StatusOr<size_t> Insert(DeviceKeys keys, const RowId* row_ids, DeviceStream stream);

  // Inserts entries by merging all entries and rebuilding the index, with the original fill of its
  // pages. Faster than Insert for many entries. Afterwards the index has no equal (key, row id)
  // pairs, even if it had some before.
  absl::Status BulkInsert(DeviceKeys keys, const RowId* row_ids, EqualKeys equal_keys,
                          DeviceStream stream);

 protected:
  using DeviceIndex::DeviceIndex;

 private:
  // Requires entries of the key type of the index, on its device, and no concurrent readers.
  virtual absl::StatusOr<size_t> InsertEntries(DeviceKeys keys, const RowId* row_ids,
                                               DeviceStream stream) = 0;
  virtual absl::Status BulkInsertEntries(DeviceKeys keys, const RowId* row_ids,
                                         EqualKeys equal_keys, DeviceStream stream) = 0;
};

// MakeDeviceIndex for a structure that supports insertions: "gpu:btree" with its parameters. Waits.
// Errors: those of MakeDeviceIndex; Unimplemented for any other structure.
absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, DeviceKeys keys, const RowId* row_ids, DeviceStream stream);
absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, const SortedRun& run, int device = 0);

// Device memory comes from a memory resource of the program, or by default from a stream-ordered
// pool of the library, one per device. The pool keeps some freed memory for later allocations.

// Returns freed memory that the pool of a device (an ordinal) has kept to the system, except for
// `keep_bytes` bytes. Memory whose release is still enqueued on a stream stays. Also succeeds for a
// device with a memory resource of the program. Does not wait. Thread-safe. Errors: Unavailable if
// there is no such device.
absl::Status TrimDeviceMemory(int device, uint64_t keep_bytes = 0);

// A memory resource of the program. Called from any thread, when indexes are built and when batches
// need scratch memory, with the device of the memory current.
class DeviceMemoryResource {
 public:
  virtual ~DeviceMemoryResource() = default;

  // Returns memory of the current device for `bytes` > 0 bytes, aligned to 256, for work enqueued
  // on `stream` from now on; null if there is none. The stream may be in capture mode. Must not
  // throw.
  virtual void* Allocate(size_t bytes, DeviceStream stream) = 0;
  // Releases memory from Allocate, of the same number of bytes, after the work that is now enqueued
  // on `stream`, which may differ from the stream of Allocate. Must not throw.
  virtual void Deallocate(void* memory, size_t bytes, DeviceStream stream) = 0;
  // Returns the bytes that Allocate can still provide. Builds that need more fail before they
  // begin.
  virtual size_t AvailableBytes() { return SIZE_MAX; }
};

// Uses `resource` for all further device memory of the library on a device (an ordinal). The
// resource must outlive everything created with it. Null: use the pool. Must not be called while
// another thread uses the device. Errors: FailedPrecondition, with the number of bytes, while the
// library holds memory of the device (indexes, or scratch memory of a call); Unavailable if there
// is no such device.
absl::Status SetDeviceMemoryResource(int device, DeviceMemoryResource* resource);

}  // namespace cairn
