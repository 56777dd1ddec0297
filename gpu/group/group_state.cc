#include "gpu/group/group_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/internal/peer_exchange.h"
#include "gpu/runtime/device_memory.h"
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

absl::StatusOr<std::unique_ptr<GroupState>> GroupState::Create(std::vector<GroupMember> members,
                                                               std::optional<ShardRouting> routing,
                                                               const DeviceGroupOptions& options) {
  std::unique_ptr<GroupState> state(new GroupState);
  state->members_ = std::move(members);
  state->routing_ = std::move(routing);
  state->options_ = options;
  if (options.chunk_queries == 0) {
    state->options_.chunk_queries = state->replicated() ? kReplicaChunk : kShardChunk;
  }
  state->kind_ = state->members_.front().index->kind();
  for (GroupMember& member : state->members_) {
    member.first_position = state->replicated() ? 0 : state->size_;
    state->size_ = state->replicated() ? member.index->size() : state->size_ + member.index->size();
  }
  state->lost_ = std::make_unique<std::atomic<bool>[]>(state->members_.size());
  state->fallbacks_ = std::make_unique<Fallback[]>(state->members_.size() + 1);
  RETURN_IF_ERROR(state->FindPeers());
  return state;
}

absl::Status GroupState::FindPeers() {
  for (const GroupMember& source : members_) {
    std::vector<bool>& reached = reaches_.emplace_back();
    for (const GroupMember& member : members_) {
      ASSIGN_OR_RETURN(const bool reaches, AllowPeerAccess(member.device, source.device));
      if (!reaches && options_.exchange == PeerExchange::kKernels) {
        return absl::UnimplementedError(
            absl::StrFormat("device group: device %d cannot access the memory of device %d",
                            source.device, member.device));
      }
      reached.push_back(reaches && options_.exchange != PeerExchange::kCopies);
    }
  }
  return absl::OkStatus();
}

bool GroupState::HasDevice(int device) const {
  return std::ranges::any_of(members_, [&](const GroupMember& m) { return m.device == device; });
}

bool GroupState::Reaches(int source, size_t member) const {
  const auto of_source =
      std::ranges::find_if(members_, [&](const GroupMember& m) { return m.device == source; });
  return reaches_[static_cast<size_t>(of_source - members_.begin())][member];
}

size_t GroupState::LostMembers() const {
  size_t lost = 0;
  for (size_t i = 0; i < members_.size(); ++i) lost += IsLost(i) ? 1 : 0;
  return lost;
}

std::optional<size_t> GroupState::LivingMember(std::optional<int> device) const {
  std::optional<size_t> living;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (IsLost(i)) continue;
    if (!device.has_value() || members_[i].device == *device) return i;
    if (!living.has_value()) living = i;
  }
  return living;
}

absl::StatusOr<const OrderedIndex*> GroupState::MakeOnce(const std::optional<SortedRun>& run,
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

absl::StatusOr<const OrderedIndex*> GroupState::FallbackOf(size_t member) const {
  const GroupMember& lost = members_[member];
  return MakeOnce(lost.run, absl::StrFormat("member %d, on device %d,", member, lost.device),
                  fallbacks_[member]);
}

absl::StatusOr<const OrderedIndex*> GroupState::FallbackOfAll(
    const std::optional<SortedRun>& run) const {
  return MakeOnce(run, "every device", fallbacks_[members_.size()]);
}

absl::StatusOr<std::unique_ptr<GroupContext>> GroupState::TakeContext(int source) const {
  std::vector<int> devices;
  std::vector<bool> lost;
  for (size_t i = 0; i < members_.size(); ++i) {
    devices.push_back(members_[i].device);
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

void GroupState::GiveBack(std::unique_ptr<GroupContext> context) const {
  const MutexLock lock(&mutex_);
  idle_.push_back(std::move(context));
}

absl::Status GroupState::Execute(const PointQuery& query, int source, cudaStream_t after) {
  // Waits here for all work that is enqueued.
  const WaitsForItsUses waits;
  for (;;) {
    ASSIGN_OR_RETURN(std::unique_ptr<GroupContext> context, TakeContext(source));
    const GroupOutcome outcome = replicated() ? AnswerFromReplicas(*this, query, *context, after)
                                              : AnswerFromShards(*this, query, *context, after);
    if (outcome.status.ok()) {
      GiveBack(std::move(context));
      return absl::OkStatus();
    }
    if (!absl::IsUnavailable(outcome.status) || !outcome.member.has_value()) return outcome.status;
    SetLost(*outcome.member);  // guarantees that the loop ends
  }
}

}  // namespace cairn::gpu
