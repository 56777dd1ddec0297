#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// One index over several devices of this host (docs/multi-gpu.md).

namespace cairn {

namespace gpu {
class GroupState;
}  // namespace gpu

// The most members of a group.
inline constexpr size_t kMaxGroupMembers = 64;

// How queries and answers go between a batch's device and the others.
enum class PeerExchange : uint8_t {
  // By kernels that reach the peer's memory where the devices can, else by copies; and not at all
  // where a member is on the batch's own device.
  kAuto,
  kKernels,  // by kernels: Unimplemented where a pair of devices cannot. For tests.
  kCopies,   // by copies, of one device too. For tests.
};

struct DeviceGroupOptions {
  PeerExchange exchange = PeerExchange::kAuto;
  // A batch goes in chunks of so many queries, two under way at a time: up to 2^30; 0 is 2^25 for
  // shards and 2^23 for replicas. What a call takes of each device's memory follows from it
  // (docs/multi-gpu.md).
  size_t chunk_queries = 0;
  // Replicas: smaller batches are not split, but answered by one device. Batches of the host: the
  // same.
  size_t min_split = size_t{1} << 18;
  // Makes what answers on the CPU for a member whose device is lost, over its entries:
  // [](SortedRun run) { return MakeOrderedIndex("cpu:auto", std::move(run)); }. Called once a
  // member, when it is first needed, from any thread. Null: a shard without its device is
  // Unavailable. For groups that are built from runs.
  std::function<absl::StatusOr<std::unique_ptr<OrderedIndex>>(SortedRun)> make_fallback;
};

// A batch in the memory of one of a group's devices, with answers of 64 bits. Owns nothing.
struct WideDeviceBatch {
  Operation operation = Operation::kFindFirst;
  DeviceKeys keys = {};      // of all operations but those of ranges; of numbers
  DeviceRanges ranges = {};  // kCount, kPositions

  // Answers: those of the operation are as long as the batch; others are not looked at.
  uint64_t* values = nullptr;  // wide rows (kFindFirst), positions, where ranges begin, counts
  uint64_t* ends = nullptr;    // kEqualRange, kPositions
  bool* found = nullptr;       // kContains

  static WideDeviceBatch FindFirst(DeviceKeys keys, GlobalRowId* rows) {
    return {Operation::kFindFirst, keys, {}, rows};
  }
  static WideDeviceBatch Contains(DeviceKeys keys, bool* found) {
    return {Operation::kContains, keys, {}, nullptr, nullptr, found};
  }
  static WideDeviceBatch LowerBound(DeviceKeys keys, uint64_t* positions) {
    return {Operation::kLowerBound, keys, {}, positions};
  }
  static WideDeviceBatch UpperBound(DeviceKeys keys, uint64_t* positions) {
    return {Operation::kUpperBound, keys, {}, positions};
  }
  static WideDeviceBatch EqualRange(DeviceKeys keys, uint64_t* begin, uint64_t* end) {
    return {Operation::kEqualRange, keys, {}, begin, end};
  }
  static WideDeviceBatch Positions(const DeviceRanges& ranges, uint64_t* begin, uint64_t* end) {
    return {Operation::kPositions, {}, ranges, begin, end};
  }
  static WideDeviceBatch Count(const DeviceRanges& ranges, uint64_t* counts) {
    return {Operation::kCount, {}, ranges, counts};
  }

  size_t size() const { return TakesRanges(operation) ? ranges.size() : keys.size(); }
};

// An index over the devices of a list, its members, of which several may be one device. Replicated:
// each member has all entries. Sharded: each has a range of the entries in (key, row) order, so
// that a key with many rows may span members; answers are exact all the same.
//
// A position is an entry's rank among all of the group. Rows are those of the run where there is
// one run, else (shard, row) as one number (MakeGlobalRowId). Each member has up to kMaxEntries
// entries, the group as many as all of them.
//
// Immutable; every method is safe from any number of threads. Calls that answer wait until the
// answers are there. Errors are as DeviceIndex's. A member whose device is lost is not asked again:
// what it would have answered, and the batch in which it was lost, is answered by the other
// replicas, or by its fallback on the CPU. Unavailable where there is neither, or where the lost
// device is the batch's own. lost_members() says how many there are.
class DeviceGroup {
 public:
  // The same entries on each device. Keys of bytes too.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Replicate(
      std::string_view factory, SortedRun run, absl::Span<const int> devices,
      const DeviceGroupOptions& options = {});
  // Entries in shards of equal sizes, to 16 entries; one a device, in key order. Of numbers:
  // Unimplemented for keys of bytes.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Shard(std::string_view factory, SortedRun run,
                                                            absl::Span<const int> devices,
                                                            const DeviceGroupOptions& options = {});
  // Shards that are there already, run i on devices[i]: the keys of each are at least those of the
  // one before, else InvalidArgument. Rows are (shard, row).
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> OfShards(
      std::string_view factory, std::vector<SortedRun> shards, absl::Span<const int> devices,
      const DeviceGroupOptions& options = {});

  // Of indexes that are on their devices, built from entries there (MakeDeviceIndex), say: of
  // numbers, without a fallback, and without Find and Scan for batches of the host. Replicas must
  // have the same entries, of which kinds and numbers are checked.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> OfReplicas(
      std::vector<std::unique_ptr<const DeviceIndex>> replicas,
      const DeviceGroupOptions& options = {});
  // `first_keys` and `last_keys` are of each shard (of empty ones not looked at), and checked.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> OfShards(
      std::vector<std::unique_ptr<const DeviceIndex>> shards, absl::Span<const uint64_t> first_keys,
      absl::Span<const uint64_t> last_keys, const DeviceGroupOptions& options = {});

  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  PhysicalType kind() const;
  // Entries of all shards, or of a replica.
  uint64_t size() const;
  bool replicated() const;
  // Whether rows are (shard, row).
  bool has_global_rows() const;
  size_t members() const;
  const DeviceIndex& member(size_t i) const;
  size_t lost_members() const;
  // "replicated 4 x gpu:packed,… on devices 0, 1, 2, 3".
  std::string description() const;
  // Bytes of device memory, all told.
  uint64_t memory_bytes() const;

  // Answers a batch in the memory of `stream`'s device, which is one of the group's
  // (InvalidArgument), behind the work that `stream` has now. Of keys of bytes: Unimplemented.
  // FailedPrecondition where the stream is being captured.
  absl::Status Execute(const WideDeviceBatch& batch, DeviceStream stream) const;

  // The group as an index of one device (an ordinal of the group's), for batches in that device's
  // memory with answers of 32 bits: everything that takes a DeviceIndex takes it, but for the rows
  // of ranges (CopyRows, Scan: Unimplemented; PlanScan is answered). Its calls wait, and what is
  // asked of keys of bytes is answered by the replica on that device alone. Valid as long as the
  // group. InvalidArgument for another device; FailedPrecondition where rows are wide or the group
  // has more than kMaxEntries entries.
  absl::StatusOr<const DeviceIndex*> On(int device) const;

  // Answers a batch of the host, split over the devices. With one run everything that an
  // OrderedIndex answers. Else kFind and kScan are Unimplemented; where rows are wide kFindFirst
  // wants Batch::shards; and positions are FailedPrecondition beyond kMaxEntries entries, kCount
  // then Unimplemented with a bound for each range. Where no device is left, the fallback over the
  // whole run answers; Unavailable where there is none.
  absl::Status Execute(const Batch& batch) const;

 private:
  class Host;

  explicit DeviceGroup(std::unique_ptr<gpu::GroupState> state);

  std::unique_ptr<gpu::GroupState> state_;
  std::unique_ptr<Host> host_;
};

}  // namespace cairn
