#include "gpu/group/group.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/internal/peer_exchange.h"
#include "gpu/group/group_view.h"
#include "gpu/group/host_group.h"
#include "gpu/group/wide_batch.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/stream_check.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Queries per chunk. On two H100s, with 2^27 queries in the memory of each device (in parentheses:
// of one device), against shards of 2^28 entries of 32 bits: chunks of 2^23 reach 32 G/s (25.5),
// 2^25 34.5 (27.4), 2^27 34.9 (27.9), because searching more queries at once is faster and
// overlapping copies with searches gains little. Replicas have more to copy: 2^23 reaches 43 G/s
// (39.6), 2^25 41.5 (35).
constexpr size_t kShardChunk = size_t{1} << 25;
constexpr size_t kReplicaChunk = size_t{1} << 23;

}  // namespace

Group::Group(GroupParts parts, const DeviceGroupOptions& options)
    : parts_(std::move(parts)),
      options_(options),
      lost_(std::make_unique<std::atomic<bool>[]>(members())),
      fallbacks_(std::make_unique<Fallback[]>(members() + 1)) {
  if (options.chunk_queries == 0) {
    options_.chunk_queries = replicated() ? kReplicaChunk : kShardChunk;
  }
  for (size_t i = 0; i < members(); ++i) {
    GroupMember& member = parts_.members[i];
    if (has_global_rows()) member.row_offset = MakeGlobalRowId(static_cast<uint32_t>(i), 0);
    member.first_position = replicated() ? 0 : size_;
    size_ = member.first_position + member.index->size();
  }
}

Group::~Group() = default;

absl::StatusOr<std::unique_ptr<DeviceGroup>> Group::Create(GroupParts parts,
                                                           const DeviceGroupOptions& options) {
  std::unique_ptr<Group> group(new Group(std::move(parts), options));
  RETURN_IF_ERROR(group->FindPeers());
  group->host_ = std::make_unique<HostGroup>(*group);
  const bool narrow = !group->has_global_rows() && group->size() <= kMaxEntries;
  for (size_t i = 0; narrow && i < group->members(); ++i) {
    std::unique_ptr<const DeviceIndex>& view = group->views_[group->at(i).device()];
    if (view == nullptr) view = std::make_unique<GroupView>(*group, i, GroupView::Asks::kAll);
  }
  return group;
}

absl::Status Group::FindPeers() {
  for (const GroupMember& source : parts_.members) {
    std::vector<bool>& reached = reaches_.emplace_back();
    for (const GroupMember& member : parts_.members) {
      ASSIGN_OR_RETURN(const bool reaches, AllowPeerAccess(member.device(), source.device()));
      if (!reaches && options_.exchange == PeerExchange::kKernels) {
        return absl::UnimplementedError(
            absl::StrFormat("device group: device %d cannot access the memory of device %d",
                            source.device(), member.device()));
      }
      reached.push_back(reaches && options_.exchange != PeerExchange::kCopies);
    }
  }
  return absl::OkStatus();
}

bool Group::Reaches(int source, size_t member) const {
  const auto of_source = std::ranges::find(parts_.members, source, &GroupMember::device);
  return reaches_[static_cast<size_t>(of_source - parts_.members.begin())][member];
}

size_t Group::lost_members() const {
  size_t lost = 0;
  for (size_t i = 0; i < members(); ++i) lost += IsLost(i) ? 1 : 0;
  return lost;
}

std::string Group::description() const {
  const auto device = [](std::string* text, const GroupMember& member) {
    absl::StrAppend(text, member.device());
  };
  return absl::StrFormat("%s %d x %s on devices %s", replicated() ? "replicated" : "sharded",
                         members(), member(0).description(),
                         absl::StrJoin(parts_.members, ", ", device));
}

uint64_t Group::memory_bytes() const {
  uint64_t bytes = 0;
  for (const GroupMember& member : parts_.members) bytes += member.index->memory_bytes();
  return bytes;
}

std::optional<size_t> Group::LivingMember() const {
  for (size_t i = 0; i < members(); ++i) {
    if (!IsLost(i)) return i;
  }
  return std::nullopt;
}

absl::StatusOr<const OrderedIndex*> Group::MakeOnce(const std::optional<SortedRun>& run,
                                                    const std::string& name,
                                                    Fallback& fallback) const {
  if (options_.make_fallback == nullptr || !run.has_value()) {
    return absl::UnavailableError(absl::StrFormat(
        "device group: %s is lost, and the group has no fallback on the CPU", name));
  }
  const MutexLock lock(&fallback.mutex);
  if (!fallback.made) {
    fallback.made = true;
    auto made =
        Guarded("building a device group's fallback", [&] { return options_.make_fallback(*run); });
    fallback.status = made.status();
    if (made.ok() && *made == nullptr) {
      fallback.status = absl::InternalError("device group: make_fallback returned null");
    } else if (made.ok()) {
      fallback.index = *std::move(made);
    }
  }
  if (!fallback.status.ok()) return fallback.status;
  return fallback.index.get();
}

absl::StatusOr<const OrderedIndex*> Group::FallbackOf(size_t member) const {
  const GroupMember& lost = at(member);
  return MakeOnce(lost.run, absl::StrFormat("member %d, on device %d,", member, lost.device()),
                  fallbacks_[member]);
}

absl::StatusOr<const OrderedIndex*> Group::FallbackOfAll() const {
  return MakeOnce(run(), "every device", fallbacks_[members()]);
}

absl::StatusOr<std::unique_ptr<GroupContext>> Group::TakeContext(int source) const {
  std::vector<int> devices;
  std::vector<bool> lost;
  for (size_t i = 0; i < members(); ++i) {
    devices.push_back(at(i).device());
    lost.push_back(IsLost(i));
  }
  {
    const MutexLock lock(&mutex_);
    const auto fits = std::ranges::find_if(idle_, [&](const auto& context) {
      return context->source == source && context->lost == lost;
    });
    if (fits != idle_.end()) {
      std::unique_ptr<GroupContext> context = std::move(*fits);
      idle_.erase(fits);
      return context;
    }
  }
  return GroupContext::Create(source, devices, lost);
}

void Group::GiveBack(std::unique_ptr<GroupContext> context) const {
  const MutexLock lock(&mutex_);
  idle_.push_back(std::move(context));
}

absl::Status Group::Execute(const PointQuery& query, int source, cudaStream_t after) const {
  // Waits here for all work that is enqueued.
  const WaitsForItsUses waits;
  for (;;) {
    ASSIGN_OR_RETURN(std::unique_ptr<GroupContext> context, TakeContext(source));
    const GroupOutcome outcome = TryPoints(*this, query, *context, after);
    if (outcome.status.ok()) {
      GiveBack(std::move(context));
      return absl::OkStatus();
    }
    if (!absl::IsUnavailable(outcome.status) || !outcome.member.has_value()) return outcome.status;
    SetLost(*outcome.member);  // guarantees that the loop ends
  }
}

absl::Status Group::Execute(const WideDeviceBatch& batch, DeviceStream stream) const {
  return Guarded("executing a batch on a device group", [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckNotCapturing("device group", "executing a batch", stream));
    ASSIGN_OR_RETURN(const int device, DeviceOfStream(stream));
    if (std::ranges::count(parts_.members, device, &GroupMember::device) == 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "device group: the stream belongs to device %d, which is not in the group", device));
    }
    return AnswerWide(*this, batch, device, stream);
  });
}

absl::StatusOr<const DeviceIndex*> Group::On(int device) const {
  if (views_.empty()) {
    return absl::FailedPreconditionError(
        "device group: row ids or positions do not fit 32 bits; use WideDeviceBatch");
  }
  const auto view = views_.find(device);
  if (view == views_.end()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("device group: device %d is not in the group", device));
  }
  return view->second.get();
}

absl::Status Group::Execute(const Batch& batch) const {
  return Guarded("executing a batch on a device group", [&] { return host_->Execute(batch); });
}

}  // namespace cairn::gpu
