#include "gpu/group/group_view.h"

#include "absl/strings/str_format.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream_check.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

GroupView::GroupView(const Group& group, size_t member, Asks asks)
    : DeviceIndex(group.kind(), static_cast<size_t>(group.size()), group.at(member).device()),
      group_(group),
      member_(member),
      asks_(asks) {}

std::string GroupView::description() const {
  return group_.member(member_).description();
}

uint64_t GroupView::memory_bytes() const {
  return AsksOne() ? group_.member(member_).memory_bytes() : group_.memory_bytes();
}

bool GroupView::writes_results_once() const {
  return AsksOne() && group_.member(member_).writes_results_once();
}

bool GroupView::has_distinct_keys() const {
  return group_.replicated() && group_.member(member_).has_distinct_keys();
}

absl::StatusOr<const DeviceIndex*> GroupView::Own() const {
  absl::Status status = MayCallMember(static_cast<int>(member_));
  if (group_.IsLost(member_)) {
    status = absl::UnavailableError(
        absl::StrFormat("device group: member %d, on device %d, is lost", member_, device()));
  }
  if (!status.ok()) return status;
  return &group_.member(member_);
}

absl::Status GroupView::Search(Operation operation, DeviceKeys keys, void* results,
                               DeviceStream stream) const {
  if (AsksOne()) {
    ASSIGN_OR_RETURN(const DeviceIndex* const own, Own());
    return own->Execute(PointBatch(operation, keys, results), stream);
  }
  RETURN_IF_ERROR(CheckNotCapturing("device group", "executing a batch", stream));
  return group_.Execute({operation, keys, {results}}, device(), stream);
}

absl::Status GroupView::FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                                       DeviceStream stream) const {
  if (kind() != PhysicalType::kBytes)
    return absl::UnimplementedError("prefixes: expected byte-string keys");
  ASSIGN_OR_RETURN(const DeviceIndex* const own, Own());
  ASSIGN_OR_RETURN(const DeviceBuffer<Position> begin,
                   DeviceBuffer<Position>::Allocate(prefixes.size(), stream));
  DeviceRanges ranges;
  ranges.lower = ranges.upper = prefixes;
  ranges.upper_bound = Bound::kPrefix;
  return own->Execute(DeviceBatch::Positions(ranges, begin.data(), ends), stream);
}

absl::Status GroupView::GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                                   uint64_t rows, Order order, RowId* row_ids,
                                   DeviceStream stream) const {
  if (!group_.replicated()) {
    return absl::UnimplementedError("device group: CopyRows is not supported for shards");
  }
  ASSIGN_OR_RETURN(const DeviceIndex* const own, Own());
  return own->CopyRows(begin, offsets, queries, rows, order, row_ids, stream);
}

}  // namespace cairn::gpu
