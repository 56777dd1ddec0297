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

// A multi-GPU index: one index over several devices of this machine (docs/multi-gpu.md).

namespace cairn {

// The maximum number of members of a group.
inline constexpr size_t kMaxGroupMembers = 64;

enum class PeerExchange : uint8_t;

// Options of all functions that create a group.
struct DeviceGroupOptions {
  // For tests: how queries and results are transferred between the device of a batch and the other
  // devices (internal/peer_exchange.h). By default this depends on the devices.
  PeerExchange exchange = PeerExchange();
  // The maximum number of queries per chunk of a batch; two chunks are in progress at a time. At
  // most 2^30; 0: 2^25 for shards and 2^23 for replicas. The scratch memory of a call depends on it
  // (docs/multi-gpu.md).
  size_t chunk_queries = 0;
  // The minimum number of queries of a batch that is split over replicas, and of a host-memory
  // batch that is split over devices. One device executes a smaller batch.
  size_t min_split = size_t{1} << 18;
  // Creates the fallback on the CPU for a member whose device is lost, from its entries:
  // [](SortedRun run) { return MakeOrderedIndex("cpu:auto", std::move(run)); }. Called once per
  // member, from any thread, when it is first needed. Null: no fallback, so that a shard whose
  // device is lost returns Unavailable. Used only by groups that are built from runs.
  std::function<absl::StatusOr<std::unique_ptr<OrderedIndex>>(SortedRun)> make_fallback;
};

// A batch in the memory of one of the devices of a group, with 64-bit results. Owns nothing.
struct WideDeviceBatch {
  Operation operation = Operation::kFindFirst;
  DeviceKeys keys = {};      // integers, for operations on keys
  DeviceRanges ranges = {};  // kCount, kPositions

  // Results. Those of the operation have size() elements; all others are ignored.
  uint64_t* values = nullptr;  // global row ids (kFindFirst), positions, begin positions, or counts
  uint64_t* ends = nullptr;    // end positions (kEqualRange, kPositions)
  bool* found = nullptr;       // kContains

  // Create a batch of one operation. Pointers to results have one element per query.
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

// An index over a list of devices. Each list element is a member; several members may use the same
// device. In a replicated group, each member has all entries. In a sharded group, each member has a
// range of the entries in (key, row) order. A key with many rows may then span several members; the
// results are exact all the same.
//
// A position is the rank of an entry among all entries of the group. Row ids are those of the run
// if the group is built from one run, otherwise GlobalRowIds (MakeGlobalRowId). Each member has at
// most kMaxEntries entries; a sharded group has the sum of its members.
//
// Immutable and thread-safe. Execute waits until the results are complete. Errors: those of
// DeviceIndex. A member whose device is lost is not used again: the other replicas, or its fallback
// on the CPU, take over its queries, including those of the batch in which it was lost. Unavailable
// if there is neither, or if the lost device is that of the batch.
class DeviceGroup {
 public:
  // Creates a group with the same entries on each device. Supports every key type. Errors here and
  // below: those of MakeDeviceIndex; InvalidArgument for invalid options, or if there are no
  // members or more than kMaxGroupMembers.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Replicate(
      std::string_view factory, SortedRun run, absl::Span<const int> devices,
      const DeviceGroupOptions& options = {});
  // Creates one shard per device, in key order. Shard sizes are equal, rounded to 16 entries.
  // Unimplemented for byte-string keys.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Shard(std::string_view factory, SortedRun run,
                                                            absl::Span<const int> devices,
                                                            const DeviceGroupOptions& options = {});
  // Creates a group from existing shards: run i on devices[i]. Rows are GlobalRowIds.
  // InvalidArgument if a key of a run is less than a key of the run before it, if the key types
  // differ, or if there is not one device per run; Unimplemented for byte-string keys.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> OfShards(
      std::string_view factory, std::vector<SortedRun> shards, absl::Span<const int> devices,
      const DeviceGroupOptions& options = {});

  // Creates a group from indexes that are on their devices, for example built there by
  // MakeDeviceIndex. It has no fallback and supports neither byte-string keys nor Find and Scan of
  // host-memory batches. Replicas must have the same entries; only their key types and sizes are
  // checked.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> OfReplicas(
      std::vector<std::unique_ptr<const DeviceIndex>> replicas,
      const DeviceGroupOptions& options = {});
  // Creates a group from shards that are on their devices, in key order. Searches each shard for
  // its minimum and maximum key. Rows are GlobalRowIds. InvalidArgument and Unimplemented as for
  // shards from runs.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> OfShards(
      std::vector<std::unique_ptr<const DeviceIndex>> shards,
      const DeviceGroupOptions& options = {});

  virtual ~DeviceGroup() = default;
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  virtual PhysicalType kind() const = 0;
  // Returns the number of entries of all shards, or of one replica.
  virtual uint64_t size() const = 0;
  // Returns whether each member has all entries; otherwise the group is sharded.
  virtual bool replicated() const = 0;
  // Returns whether rows are GlobalRowIds.
  virtual bool has_global_rows() const = 0;
  // Return the number of members, a member (i < members()), and the number of members whose device
  // is lost.
  virtual size_t members() const = 0;
  virtual const DeviceIndex& member(size_t i) const = 0;
  virtual size_t lost_members() const = 0;
  // Returns, for example, "replicated 4 x gpu:packed,… on devices 0, 1, 2, 3".
  virtual std::string description() const = 0;
  // Returns the total bytes of device memory.
  virtual uint64_t memory_bytes() const = 0;

  // Executes a batch in the memory of the device of `stream`, after the work that is now enqueued
  // on `stream`. Errors: those of the class; InvalidArgument if the device is not in the group;
  // Unimplemented for byte-string keys; FailedPrecondition if the stream is being captured.
  virtual absl::Status Execute(const WideDeviceBatch& batch, DeviceStream stream) const = 0;

  // Returns the group as an index of one device (an ordinal), for batches in the memory of that
  // device with 32-bit results. It can be used like any DeviceIndex, with three differences: its
  // calls wait; CopyRows and Scan return Unimplemented for a sharded group, and replicated groups
  // execute them on the replica of that device; and batches of byte-string keys run only on the
  // replica of that device. Valid as long as the group. Errors: InvalidArgument if the device is
  // not in the group; FailedPrecondition if has_global_rows() or if the group has more than
  // kMaxEntries entries.
  virtual absl::StatusOr<const DeviceIndex*> On(int device) const = 0;

  // Executes a host-memory batch, split over the devices. A group built from one run supports all
  // operations of an OrderedIndex. Otherwise kFind and kScan return Unimplemented. If
  // has_global_rows(), kFindFirst requires Batch::rows. With more than kMaxEntries entries,
  // operations on positions return FailedPrecondition, and kCount with a bound for each range
  // returns Unimplemented. If no device is left, the fallback over the whole run executes the
  // batch; Unavailable if there is none.
  virtual absl::Status Execute(const Batch& batch) const = 0;

 protected:
  DeviceGroup() = default;
};

}  // namespace cairn
