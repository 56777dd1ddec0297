#pragma once

#include <cstddef>
#include <string>

#include "cairn/device.h"
#include "gpu/group/group.h"

namespace cairn::gpu {

// A group as an index on one of its devices. All calls wait, except those of a single replica.
class GroupView : public DeviceIndex {
 public:
  // Which members execute point queries: all, or only the replica that the view is made for.
  enum class Asks : uint8_t { kAll, kOne };

  // `member` is on the view's device. Requires a group of at most kMaxEntries entries with 32-bit
  // row ids, or a view that is never queried for row ids.
  GroupView(const Group& group, size_t member, Asks asks);

  std::string description() const override;
  uint64_t memory_bytes() const override;
  bool writes_results_once() const override;
  bool has_distinct_keys() const override;

 private:
  bool AsksOne() const { return asks_ == Asks::kOne || kind() == PhysicalType::kBytes; }
  // The view's own member. Errors: Unavailable if its device is lost.
  absl::StatusOr<const DeviceIndex*> Own() const;

  absl::Status Search(Operation operation, DeviceKeys keys, void* results,
                      DeviceStream stream) const override;
  absl::Status FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                              DeviceStream stream) const override;
  absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                          uint64_t rows, Order order, RowId* row_ids,
                          DeviceStream stream) const override;

  const Group& group_;
  const size_t member_;
  const Asks asks_;
};

}  // namespace cairn::gpu
