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

// The device API: indexes whose keys, queries and results are all in the memory of one GPU, for
// pipelines that never leave it. Calls are stream-ordered, as CUDA's are: they enqueue their work
// on the caller's stream and return, unless they say that they wait. No CUDA header is needed here.

struct CUstream_st;

namespace cairn {

// cudaStream_t; null is the default stream.
using DeviceStream = CUstream_st*;

// A CUDA device that this process may use.
struct Device {
  int ordinal = 0;
  std::string name;
  size_t memory_bytes = 0;
};

// The usable devices, in CUDA's order: those that this build has code for. Unavailable, with the
// reason, where there is none: a build without CUDA, no driver, or no such device.
absl::StatusOr<std::vector<Device>> ListDevices();

// A batch of keys in device memory: a typed view that owns nothing. Numbers are aligned to their
// size.
class DeviceKeys {
 public:
  DeviceKeys() = default;  // no keys, of any kind
  DeviceKeys(const uint32_t* keys, size_t size)
      : kind_(PhysicalType::kU32), size_(size), keys_(keys) {}
  DeviceKeys(const uint64_t* keys, size_t size)
      : kind_(PhysicalType::kU64), size_(size), keys_(keys) {}
  // Byte strings, as Arrow has them: key i is bytes[offsets[i]] … bytes[offsets[i + 1] - 1], so
  // there are size + 1 offsets, which ascend. The memory of the bytes must be readable in whole
  // words of four, at addresses that are multiples of four.
  DeviceKeys(const char* bytes, const uint32_t* offsets, size_t size)
      : kind_(PhysicalType::kBytes), size_(size), keys_(bytes), offsets_(offsets) {}

  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const void* data() const { return keys_; }
  // Each requires that kind() be the one it names, or that there be no keys.
  const uint32_t* u32() const { return static_cast<const uint32_t*>(keys_); }
  const uint64_t* u64() const { return static_cast<const uint64_t*>(keys_); }
  const char* bytes() const { return static_cast<const char*>(keys_); }
  const uint32_t* offsets() const { return offsets_; }  // of bytes; else null

 private:
  PhysicalType kind_ = PhysicalType::kU32;
  size_t size_ = 0;
  const void* keys_ = nullptr;
  const uint32_t* offsets_ = nullptr;
};

// Ranges from lower[i] to upper[i], with the same bounds for all.
struct DeviceRanges {
  DeviceKeys lower;
  // As many keys as `lower`, of the same kind; for Bound::kPrefix, whose prefixes are in `lower`,
  // only their number counts, and their memory may be null.
  DeviceKeys upper;
  Bound lower_bound = Bound::kInclusive;
  Bound upper_bound = Bound::kExclusive;

  size_t size() const { return lower.size(); }
};

// Batch (query.h) in device memory, but for rows, which a DeviceIndex finds in two steps. Owns
// nothing.
struct DeviceBatch {
  Operation operation = Operation::kFindFirst;
  DeviceKeys keys = {};      // of all operations but those of ranges
  DeviceRanges ranges = {};  // kCount, kPositions

  // Answers: those of the operation are as long as the batch; others are not looked at.
  uint32_t* values = nullptr;  // row ids (kFindFirst), positions (bounds), or where ranges begin
  Position* ends = nullptr;    // where ranges end (kEqualRange, kPositions)
  bool* found = nullptr;       // kContains
  uint64_t* counts = nullptr;  // kCount

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

// An index in device memory. Immutable: every method is safe from any number
// of host threads and streams; scratch memory is the stream's own.
//
// Scratch memory: none for points, but two words for the largest batches; 12 bytes a query for
// bounds of gpu:partial_key, 8 for kCount, what PlanScan and Scan say of theirs.
//
// Pointers are to memory of the index's device, and valid until the stream has done the call's
// work. Methods return InvalidArgument where a batch's kind is not the index's; ResourceExhausted
// where scratch memory does not fit; Unavailable where the device is lost, for the rest of the
// process; Internal where CUDA fails otherwise, naming the call. An empty batch is answered.
//
// An index may be destroyed while its work is enqueued: its memory is freed behind that work, and
// nobody waits. A stream may be captured (cudaStreamBeginCapture) while methods enqueue on it; the
// index must then outlive the graph. An error that an earlier CUDA call of the caller's has left
// behind in the thread stays there, and is no method's; PlanScan, Scan, building, and strategies
// that sort, which could not tell it from their own, return Unavailable and name it.
class DeviceIndex {
 public:
  virtual ~DeviceIndex() = default;
  DeviceIndex(const DeviceIndex&) = delete;
  DeviceIndex& operator=(const DeviceIndex&) = delete;

  PhysicalType kind() const { return kind_; }
  size_t size() const { return size_; }
  int device() const { return device_; }
  // The factory string that makes this structure, with every parameter that was chosen.
  virtual std::string description() const = 0;
  // Bytes of device memory, all told.
  virtual uint64_t memory_bytes() const = 0;
  // Whether a point query's result is written once and never again, so that whoever sees it in
  // memory that the host shares need not wait for the stream.
  virtual bool writes_results_once() const { return false; }

  // Answers a batch. InvalidArgument for kFind and kScan: see below.
  absl::Status Execute(const DeviceBatch& batch, DeviceStream stream) const;

  // All rows of a batch are found in two steps, between which the caller makes room. First the
  // positions of each query, at most `limit` of them, and where its rows go: offsets[0] = 0, and
  // offsets[size] is how many rows there are in all. A descending scan keeps a range's last ones.
  absl::Status PlanScan(const DeviceRanges& ranges, uint64_t limit, Order order, Position* begin,
                        uint64_t* offsets, DeviceStream stream) const;
  // Then the rows: those of query i to row_ids[offsets[i]] … row_ids[offsets[i + 1] - 1], in (key,
  // row id) order or its reverse. `queries` is the batch's size, `rows` is offsets[queries].
  absl::Status CopyRows(const Position* begin, const uint64_t* offsets, size_t queries,
                        uint64_t rows, Order order, RowId* row_ids, DeviceStream stream) const;

  // Both steps in one, for callers who have room for `capacity` rows and need not know first how
  // many there are. Offsets are as PlanScan's, of all rows; rows are as CopyRows', but those that
  // would go to row_ids[capacity] or behind are left out: where offsets[size] is more than the
  // capacity, some are missing. The rows of single keys (`lower` and `upper` are the same keys,
  // both inclusive) take one search of the first rows if no key has several (has_distinct_keys).
  absl::Status Scan(const DeviceRanges& ranges, uint64_t limit, Order order, uint64_t* offsets,
                    RowId* row_ids, uint64_t capacity, DeviceStream stream) const;
  // Whether the structure knows that no key has several entries.
  virtual bool has_distinct_keys() const { return false; }

 protected:
  DeviceIndex(PhysicalType kind, size_t size, int device)
      : kind_(kind), size_(size), device_(device) {}
  // For structures that can be updated, and say what an update excludes.
  void SetSize(size_t size) { size_ = size; }

 private:
  // Answers a batch of kFindFirst, kContains (bools), kLowerBound or kUpperBound, of the index's
  // kind and not empty, on the index's device.
  virtual absl::Status Search(Operation operation, DeviceKeys keys, void* results,
                              DeviceStream stream) const = 0;
  // Where the entries of each key begin and end; likewise. Two searches, unless a structure needs
  // but one.
  virtual absl::Status FindEqualRanges(DeviceKeys keys, Position* begin, Position* end,
                                       DeviceStream stream) const;
  // Where the keys end that start with each prefix: of an index of bytes, not empty, on its device.
  virtual absl::Status FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                                      DeviceStream stream) const;
  // Of ranges of the index's kind, not empty.
  absl::Status FindPositions(const DeviceRanges& ranges, Position* begin, Position* end,
                             DeviceStream stream) const;
  // Scan of one key each, where keys are distinct, of the index's kind and not empty.
  absl::Status FindOnlyRows(DeviceKeys keys, uint64_t* offsets, RowId* row_ids, uint64_t capacity,
                            DeviceStream stream) const;
  // CopyRows where there are rows; there may be less than `rows`: offsets[queries] of them.
  virtual absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                                  uint64_t rows, Order order, RowId* row_ids,
                                  DeviceStream stream) const = 0;

  PhysicalType kind_;
  size_t size_;
  int device_;
};

// How a batch is put to a device index.
struct DeviceStrategyOptions {
  Strategy strategy = Strategy::kUnbuffered;
  // kKey, which does not go with kUnbuffered, leaves out the way back to the caller's order: random
  // writes, which for most structures take longer than the search.
  ResultOrder order = ResultOrder::kCaller;
  // Buffered: queries are gathered by so many leading bits of their keys, 1 to 16.
  int part_bits = 8;
};

// index.Execute(batch) by a strategy; exact for every batch. Batches of ranges are answered as they
// are. With ResultOrder::kKey answer i is of keys[query_of[i]]; `query_of` is for that, and as
// large as the batch, else null. Besides DeviceIndex's errors: InvalidArgument for options that do
// not go together or are out of range, and for a batch of more than kMaxEntries. Scratch takes up
// to 24 bytes a query of 32 bits, and 36 of one of 64; for kEqualRange four more.
absl::Status Execute(const DeviceIndex& index, const DeviceBatch& batch,
                     const DeviceStrategyOptions& options, uint32_t* query_of, DeviceStream stream);

// Builds the structure that a factory string names ("gpu:auto"; README.md lists them) over entries
// in host memory on device `device` (an ordinal). Waits. Errors as MakeOrderedIndex's; DataLoss
// where the entries are not in order.
absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             const SortedRun& run, int device = 0);

// Builds it over entries in the memory of the stream's device, in any order; `row_ids` has as many
// elements as `keys`, which are numbers, and both are left as they are. Entries that are there
// twice stay so. Waits for the stream, whichever device is current. Besides MakeOrderedIndex's
// errors: InvalidArgument for a row id of kNoRow, FailedPrecondition where the stream is being
// captured.
absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             DeviceKeys keys, const RowId* row_ids,
                                                             DeviceStream stream);

// The same without a wait, of structures whose size follows from the number of entries: gpu:fast,
// gpu:btree, gpu:pivot, gpu:eytzinger and gpu:sorted_array. All that is done is enqueued on
// `stream`: what is enqueued there afterwards may use the index at once, what is on other streams
// once these have waited for `stream`; keys and row ids stay as they are until the stream has read
// them. The index may be destroyed at any time. What gpu:packed takes, and so gpu:auto, follows
// from the keys, of which the host must know before it takes memory: Unimplemented, as for keys of
// bytes.
//
// Nobody looks at the entries first. So they are sorted by row id, then by key, in twice the time,
// unless `rows_ascend` promises that those of each key have ascending row ids as they are given;
// and an entry with a row id of kNoRow is not refused: the index has its key, at which there is no
// row. Waits for nothing, unless CUDA itself must for memory. Else errors as MakeDeviceIndex's.
absl::StatusOr<std::unique_ptr<DeviceIndex>> EnqueueDeviceIndex(std::string_view factory,
                                                                DeviceKeys keys,
                                                                const RowId* row_ids,
                                                                bool rows_ascend,
                                                                DeviceStream stream);

// What becomes of equal keys on a bulk insertion.
enum class EqualKeys : uint8_t {
  kKeepRows,     // a key may have many rows; of equal (key, row id) pairs one is kept
  kReplaceRows,  // a key has one row: the lowest that is inserted, else the lowest that it had
};

// An index in device memory that takes insertions: a B+-tree (gpu:btree).
//
// Between updates it is as any DeviceIndex. An update (Insert, BulkInsert) excludes all other
// calls, from any thread, from its beginning until it returns. It is done behind all work that has
// been enqueued on any stream and reads the index, and when it returns, all streams see it. A graph
// that has captured a query must not be launched after an update.
//
// Entries are in the memory of the index's device, in any order, and stay as they are. Updates
// leave the index unchanged where they fail: InvalidArgument for keys of another kind, a row id of
// kNoRow, more than kMaxEntries in all, or a stream of another device; ResourceExhausted;
// FailedPrecondition where the stream is being captured; Unavailable and Internal as DeviceIndex.
class UpdatableDeviceIndex : public DeviceIndex {
 public:
  // Insert puts up to so many entries in one by one.
  static constexpr size_t kMaxOneByOne = 64;

  // Adds entries without moving others than those of the pages that they belong to; pairs of key
  // and row id that are there already are left out. Returns how many were new. Up to kMaxOneByOne
  // go one by one, in their order, in 3 to 6 microseconds each; more go all at once.
  absl::StatusOr<size_t> Insert(DeviceKeys keys, const RowId* row_ids, DeviceStream stream);

  // Adds entries by merging all, and makes the index anew, with pages as full as it was first made
  // with: sooner done than Insert where the entries are many. No equal pairs are left, not even
  // such as were there before.
  absl::Status BulkInsert(DeviceKeys keys, const RowId* row_ids, EqualKeys equal_keys,
                          DeviceStream stream);

 protected:
  using DeviceIndex::DeviceIndex;

 private:
  // Of entries of the index's kind, on its device, when nothing reads it.
  virtual absl::StatusOr<size_t> InsertEntries(DeviceKeys keys, const RowId* row_ids,
                                               DeviceStream stream) = 0;
  virtual absl::Status BulkInsertEntries(DeviceKeys keys, const RowId* row_ids,
                                         EqualKeys equal_keys, DeviceStream stream) = 0;
};

// MakeDeviceIndex of a structure that takes insertions: "gpu:btree", with its parameters; for
// others Unimplemented. Waits.
absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, DeviceKeys keys, const RowId* row_ids, DeviceStream stream);
absl::StatusOr<std::unique_ptr<UpdatableDeviceIndex>> MakeUpdatableDeviceIndex(
    std::string_view factory, const SortedRun& run, int device = 0);

// Device memory comes from a stream-ordered pool of the library's for each device, which keeps some
// of what was freed for the next allocation, or from a memory resource of the program's.

// Gives the system back what the pool of a device (an ordinal) has kept of freed memory, but for
// `keep_bytes` of it. What is freed by work that streams have yet to do stays. Waits for nothing;
// thread-safe. Unavailable where there is no such device. A device with a resource of the program's
// keeps nothing: OK.
absl::Status TrimDeviceMemory(int device, uint64_t keep_bytes = 0);

// A memory resource of the program's. Called from any threads, as often as indexes are built and
// batches take scratch memory, with the memory's device current.
class DeviceMemoryResource {
 public:
  virtual ~DeviceMemoryResource() = default;

  // Memory of the current device for `bytes` bytes, more than none, at a multiple of 256; for work
  // enqueued on `stream` from now on, which may be being captured. Null where there is none. Must
  // not throw.
  virtual void* Allocate(size_t bytes, DeviceStream stream) = 0;
  // Takes back what Allocate gave for as many bytes, once the work enqueued on `stream` so far,
  // which may be another stream than then, is done. Must not throw.
  virtual void Deallocate(void* memory, size_t bytes, DeviceStream stream) = 0;
  // How many bytes Allocate may still give; builds that take more are refused before they begin.
  virtual size_t AvailableBytes() { return SIZE_MAX; }
};

// From now on the library's memory of a device (an ordinal) comes from a resource, which must
// outlive all that is made with it; null: from the pool. FailedPrecondition, with how much it is,
// while the library holds memory of the device: indexes, or the scratch of a call. Unavailable
// where there is no such device. Not to be called while another thread uses the device.
absl::Status SetDeviceMemoryResource(int device, DeviceMemoryResource* resource);

}  // namespace cairn
