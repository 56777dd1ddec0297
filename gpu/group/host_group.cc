#include "gpu/group/host_group.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/group/group_view.h"
#include "gpu/group/wide_batch.h"
#include "gpu/host/query_context.h"
#include "index/machine/batch_threads.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"

namespace cairn::gpu {
namespace {

// An empty run of the given key type.
SortedRun NoEntries(PhysicalType kind) {
  switch (kind) {
    case PhysicalType::kU32:
      return SortedRun::Wrap(absl::Span<const uint32_t>(), {}, nullptr);
    case PhysicalType::kU64:
      return SortedRun::Wrap(absl::Span<const uint64_t>(), {}, nullptr);
    case PhysicalType::kBytes:
      break;
  }
  static constexpr uint32_t kNoOffsets[] = {0};
  return SortedRun::Wrap(BytesColumn("", absl::MakeConstSpan(kNoOffsets)), {}, nullptr);
}

// Runs body(0) … body(parts - 1) in parallel. Returns the first error.
template <typename Body>
absl::Status AskParts(size_t parts, Body body) {
  if (parts == 1) return body(0);
  std::vector<absl::Status> statuses(parts);
  RunOnBatchThreads(parts, [&](size_t i) { statuses[i] = body(i); });
  for (absl::Status& status : statuses) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

}  // namespace

HostGroup::HostGroup(const Group& group) : group_(group) {
  if (group.size() > kMaxEntries) return;
  HostBatchPolicy policy;
  if (!group.replicated()) policy.max_rows_from_run = SIZE_MAX;
  for (size_t i = 0; i < group.members(); ++i) {
    indexes_.push_back(std::make_unique<GpuIndex>(
        group.run().has_value() ? *group.run() : NoEntries(group.kind()),
        std::make_unique<GroupView>(
            group, i, group.replicated() ? GroupView::Asks::kOne : GroupView::Asks::kAll),
        policy));
  }
}

absl::Status HostGroup::Check(const Batch& batch) const {
  if (group_.has_global_rows() && batch.operation == Operation::kFindFirst) {
    RETURN_IF_ERROR(CheckQueries(group_.kind(), batch));
    return CheckOutput(batch.size(), batch.rows.size(), "rows");
  }
  RETURN_IF_ERROR(CheckBatchWithRows(group_.kind(), batch));
  if (batch.gives_matches() && !group_.run().has_value()) {
    return absl::UnimplementedError(
        absl::StrFormat("device group: %s requires all entries in one run in host memory",
                        OperationName(batch.operation)));
  }
  if (!indexes_.empty()) return absl::OkStatus();
  if (batch.operation == Operation::kCount) {
    if (batch.ranges.lower_bounds.empty() && batch.ranges.upper_bounds.empty()) {
      return absl::OkStatus();
    }
    return absl::UnimplementedError(
        "device group: kCount over more than kMaxEntries entries does not support per-range "
        "bounds");
  }
  if (batch.operation == Operation::kFindFirst || batch.operation == Operation::kContains) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("device group: %s: positions of %d entries do not fit 32 bits",
                      OperationName(batch.operation), group_.size()));
}

std::vector<size_t> HostGroup::Sources() const {
  std::vector<size_t> sources;
  for (size_t i = 0; i < group_.members(); ++i) {
    const bool again = !group_.replicated() && std::ranges::any_of(sources, [&](size_t other) {
      return group_.at(other).device() == group_.at(i).device();
    });
    if (!group_.IsLost(i) && !again) sources.push_back(i);
  }
  return sources;
}

absl::Status HostGroup::Execute(const Batch& batch) const {
  RETURN_IF_ERROR(Check(batch));
  if (batch.empty()) {
    return batch.gives_matches() ? BeginMatches(group_.kind(), 0, batch.matches) : absl::OkStatus();
  }
  const std::vector<size_t> sources = Sources();
  // Each part of a sharded group waits for its own chunks. A second part per device is copied
  // during that time.
  size_t parts = group_.replicated() ? sources.size() : 2 * sources.size();
  const size_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  if (batch.size() < group_.options().min_split || batch.gives_matches()) parts = 1;
  parts = std::max<size_t>(1, std::min(parts, batch.size()));
  return AskParts(parts, [&](size_t i) {
    constexpr size_t kMultiple = 64;
    const size_t first = CutOf(batch.size(), parts, i, kMultiple);
    const size_t count = CutOf(batch.size(), parts, i + 1, kMultiple) - first;
    if (count == 0) return absl::OkStatus();
    const size_t source = sources.empty() ? 0 : sources[(i + turn) % sources.size()];
    return Guarded("executing a batch on a device group", [&] {
      return parts == 1 ? AnswerPart(batch, source) : AnswerPart(batch.Slice(first, count), source);
    });
  });
}

absl::Status HostGroup::AnswerPart(const Batch& part, size_t source) const {
  for (;;) {
    if (!group_.IsLost(source)) {
      absl::Status status = Ask(part, source);
      if (!absl::IsUnavailable(status)) return status;
      // If a lost shard has no fallback, trying another source cannot help.
      for (size_t i = 0; !group_.replicated() && i < group_.members(); ++i) {
        if (group_.IsLost(i) && !group_.FallbackOf(i).ok()) return status;
      }
      group_.SetLost(source);
    }
    const std::optional<size_t> next = group_.LivingMember();
    if (!next.has_value()) break;
    source = *next;
  }
  ASSIGN_OR_RETURN(const OrderedIndex* const fallback, group_.FallbackOfAll());
  return fallback->Execute(part);
}

absl::Status HostGroup::Ask(const Batch& part, size_t source) const {
  if (indexes_.empty() || (group_.has_global_rows() && part.operation == Operation::kFindFirst)) {
    return AskWide(part, group_.at(source).device());
  }
  return indexes_[source]->Execute(part);
}

absl::Status HostGroup::AskWide(const Batch& part, int device) const {
  const size_t size = part.size();
  HostColumn inputs[2], output{};
  size_t columns = 1;
  if (part.takes_ranges()) {
    inputs[0] = InputOf(part.ranges.lower);
    inputs[columns++] = InputOf(part.ranges.upper);
    output = {part.counts.data(), sizeof(uint64_t)};
  } else {
    inputs[0] = InputOf(part.keys);
    output = part.operation == Operation::kContains
                 ? HostColumn{part.found.data(), sizeof(bool)}
                 : HostColumn{part.rows.data(), sizeof(uint64_t)};
  }
  const auto search = [&](const void* const* in, void* const* out, size_t count,
                          cudaStream_t stream) {
    WideDeviceBatch batch;
    batch.operation = part.operation;
    batch.values = static_cast<uint64_t*>(out[0]);
    batch.found = static_cast<bool*>(out[0]);
    if (part.takes_ranges()) {
      batch.ranges.lower = KeysIn(group_.kind(), in[0], count);
      batch.ranges.upper = KeysIn(group_.kind(), in[1], count);
      batch.ranges.lower_bound = part.ranges.lower_bound;
      batch.ranges.upper_bound = part.ranges.upper_bound;
    } else {
      batch.keys = KeysIn(group_.kind(), in[0], count);
    }
    return AnswerWide(group_, batch, device, stream);
  };
  const auto nothing = [](size_t, size_t, size_t, void*) {};
  ASSIGN_OR_RETURN(const QueryContextLease context, QueryContextLease::Acquire(device));
  const HostColumn outputs[] = {output};
  return RunHostBatch(
      {size, absl::MakeConstSpan(inputs).first(columns), outputs, false, nothing, search}, {},
      *context);
}

}  // namespace cairn::gpu
