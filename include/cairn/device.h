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
#include "cairn/strategy.h"
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
absl::StatusOr<std::vector<Device>> Devices();

// A batch of fixed-width keys in device memory: a typed view that owns nothing. Aligned to the
// key's size.
class DeviceKeys {
 public:
  DeviceKeys() = default;  // no keys, of any kind
  static DeviceKeys U32(const uint32_t* keys, size_t size) { return {KeyKind::kU32, keys, size}; }
  static DeviceKeys U64(const uint64_t* keys, size_t size) { return {KeyKind::kU64, keys, size}; }

  KeyKind kind() const { return kind_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const void* data() const { return keys_; }
  // Each requires that kind() be the one it names, or that there be no keys.
  const uint32_t* u32() const { return static_cast<const uint32_t*>(keys_); }
  const uint64_t* u64() const { return static_cast<const uint64_t*>(keys_); }

 private:
  DeviceKeys(KeyKind kind, const void* keys, size_t size) : kind_(kind), size_(size), keys_(keys) {}

  KeyKind kind_ = KeyKind::kU32;
  size_t size_ = 0;
  const void* keys_ = nullptr;
};

// Ranges from lower[i] to upper[i], with the same bounds for all; Bound::kPrefix is for bytes only.
struct DeviceRanges {
  DeviceKeys lower;
  DeviceKeys upper;  // as many keys as `lower`, of the same kind
  Bound lower_bound = Bound::kInclusive;
  Bound upper_bound = Bound::kExclusive;

  size_t size() const { return lower.size(); }
};

// An index in device memory over fixed-width keys. Immutable: every method is safe from any number
// of host threads and streams; scratch memory is the stream's own.
//
// Pointers are to memory of the index's device, and valid until the stream has done the call's
// work. Methods return InvalidArgument where a batch's kind is not the index's; ResourceExhausted
// where scratch memory does not fit; Unavailable where the device is lost, for the rest of the
// process; Internal where CUDA fails otherwise, naming the call. An empty batch is answered.
//
// An index may be destroyed while its work is enqueued: its memory is freed behind that work, and
// nobody waits. A stream may be captured (cudaStreamBeginCapture) while methods enqueue on it; the
// index must then outlive the graph. An error that an earlier CUDA call of the caller's has left
// behind in the thread stays there, and is no method's; PlanScan, building, and strategies that
// sort, which could not tell it from their own, return Unavailable and name it.
class DeviceIndex {
 public:
  virtual ~DeviceIndex() = default;
  DeviceIndex(const DeviceIndex&) = delete;
  DeviceIndex& operator=(const DeviceIndex&) = delete;

  KeyKind kind() const { return kind_; }
  size_t size() const { return size_; }
  int device() const { return device_; }
  // The factory string that makes this structure, with every parameter that was chosen.
  virtual std::string description() const = 0;
  // Bytes of device memory, all told.
  virtual uint64_t memory_bytes() const = 0;
  // Whether a point query's result is written once and never again, so that whoever sees it in
  // memory that the host shares need not wait for the stream.
  virtual bool writes_results_once() const { return false; }

  // positions[i] = the number of entries whose key is less than (UpperBound: at most) keys[i].
  absl::Status LowerBound(DeviceKeys keys, Position* positions, DeviceStream stream) const;
  absl::Status UpperBound(DeviceKeys keys, Position* positions, DeviceStream stream) const;
  // row_ids[i] = the first (lowest) row of keys[i], or kNoRow.
  absl::Status FindFirst(DeviceKeys keys, RowId* row_ids, DeviceStream stream) const;
  // found[i] = whether any row has keys[i].
  absl::Status Contains(DeviceKeys keys, bool* found, DeviceStream stream) const;

  // The positions [begin[i], end[i]) of range i; begin[i] = end[i] where it is empty.
  absl::Status Positions(const DeviceRanges& ranges, Position* begin, Position* end,
                         DeviceStream stream) const;
  // counts[i] = the number of entries in range i.
  absl::Status Count(const DeviceRanges& ranges, uint64_t* counts, DeviceStream stream) const;

  // All rows of a batch are found in two steps, between which the caller makes room. First the
  // positions of each query, at most `limit` of them, and where its rows go: offsets[0] = 0, and
  // offsets[size] is how many rows there are in all. A descending scan keeps a range's last ones.
  absl::Status PlanScan(const DeviceRanges& ranges, uint64_t limit, Order order, Position* begin,
                        uint64_t* offsets, DeviceStream stream) const;
  // Then the rows: those of query i to row_ids[offsets[i]] … row_ids[offsets[i + 1] - 1], in (key,
  // row id) order or its reverse. `queries` is the batch's size, `rows` is offsets[queries].
  absl::Status CopyRows(const Position* begin, const uint64_t* offsets, size_t queries,
                        uint64_t rows, Order order, RowId* row_ids, DeviceStream stream) const;

  // What a structure finds out about a key, and the type of its results.
  enum class PointQuery : uint8_t {
    kLowerBound,  // Position
    kUpperBound,  // Position
    kFindFirst,   // RowId
    kContains,    // bool
  };

 protected:
  DeviceIndex(KeyKind kind, size_t size, int device) : kind_(kind), size_(size), device_(device) {}
  // For structures that can be updated, and say what an update excludes.
  void SetSize(size_t size) { size_ = size; }

 private:
  // Answers a batch, of the index's kind and not empty, on the index's device.
  virtual absl::Status Search(PointQuery query, DeviceKeys keys, void* results,
                              DeviceStream stream) const = 0;
  // CopyRows where there are rows.
  virtual absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                                  uint64_t rows, Order order, RowId* row_ids,
                                  DeviceStream stream) const = 0;

  KeyKind kind_;
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

// DeviceIndex's operations by a strategy: functions over any index, each exact for every batch.
// With ResultOrder::kKey result i is of keys[query_of[i]]; `query_of` is for that, and as large as
// the batch, else null. Besides their errors: InvalidArgument for options that do not go together
// or are out of range, and for a batch of more than kMaxEntries. Scratch takes up to 24 bytes a
// query of 32 bits, and 36 of one of 64.
absl::Status LowerBound(const DeviceIndex& index, DeviceKeys keys, Position* positions,
                        const DeviceStrategyOptions& options, uint32_t* query_of,
                        DeviceStream stream);
absl::Status FindFirst(const DeviceIndex& index, DeviceKeys keys, RowId* row_ids,
                       const DeviceStrategyOptions& options, uint32_t* query_of,
                       DeviceStream stream);

// Builds the structure that a factory string names ("gpu:auto"; README.md lists them) over entries
// in host memory, which must be of fixed-width keys, on device `device` (an ordinal). Waits.
// Errors as MakeOrderedIndex's; DataLoss where the entries are not in order.
absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             const SortedRun& run, int device = 0);

// Builds it over entries in the memory of the stream's device, in any order; `row_ids` has as many
// elements as `keys`, and both are left as they are. Entries that are there twice stay so. Waits
// for the stream, whichever device is current. Besides MakeOrderedIndex's errors: InvalidArgument
// for a row id of kNoRow, FailedPrecondition where the stream is being captured.
absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             DeviceKeys keys, const RowId* row_ids,
                                                             DeviceStream stream);

}  // namespace cairn
