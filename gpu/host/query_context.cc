#include "gpu/host/query_context.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr size_t kMinPositions = size_t{1} << 14;  // enough for a small batch

// The contexts of one device that no thread holds, used as a stack.
struct IdleContexts {
  std::mutex mutex;
  std::vector<std::unique_ptr<QueryContext>> contexts;
};

// Never destroyed, because CUDA may shut down earlier when the process ends.
IdleContexts& IdleOf(int device) {
  static auto& all = *new std::array<IdleContexts, kMaxDevices>;
  return all[static_cast<size_t>(device)];
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueryContext>> QueryContext::Create() {
  const BesideCaptures beside;
  std::unique_ptr<QueryContext> context(new (std::nothrow) QueryContext);
  if (context == nullptr) return absl::ResourceExhaustedError("out of memory for a query context");
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&context->device_));
  for (std::optional<Stream>& stream : context->streams_) {
    ASSIGN_OR_RETURN(stream, Stream::Create());
  }
  return context;
}

absl::Status QueryContext::Wait(int i) {
  absl::Status status = streams_[i]->Wait();
  status.Update(MayCallDevice());
  if (!status.ok()) lost_ = true;
  return status;
}

absl::Status QueryContext::WaitForAll() {
  absl::Status status;
  for (int i = 0; i < kStreams; ++i) status.Update(Wait(i));
  return status;
}

absl::StatusOr<char*> QueryContext::Pinned(size_t bytes) {
  if (bytes <= pinned_.bytes()) return pinned_.data();
  pinned_ = PinnedMemory();  // freed first, because both may not fit
  ASSIGN_OR_RETURN(pinned_, PinnedMemory::Allocate(bytes));
  return pinned_.data();
}

absl::StatusOr<Position*> QueryContext::Positions(size_t size) {
  if (size <= positions_size_) return positions_.get();
  size = std::max(size, kMinPositions);
  positions_size_ = 0;
  positions_.reset();
  positions_.reset(new (std::nothrow) Position[size]);
  if (positions_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("host memory: no space for %d positions", size));
  }
  positions_size_ = size;
  return positions_.get();
}

absl::StatusOr<QueryContextLease> QueryContextLease::Acquire(int device) {
  IdleContexts& idle = IdleOf(device);
  {
    const std::lock_guard<std::mutex> lock(idle.mutex);
    if (!idle.contexts.empty()) {
      QueryContextLease lease(std::move(idle.contexts.back()));
      idle.contexts.pop_back();
      return lease;
    }
  }
  const OnDevice on_device(device);
  ASSIGN_OR_RETURN(std::unique_ptr<QueryContext> context, QueryContext::Create());
  return QueryContextLease(std::move(context));
}

QueryContextLease::~QueryContextLease() {
  if (context_ == nullptr || context_->lost()) return;
  IdleContexts& idle = IdleOf(context_->device());
  const std::lock_guard<std::mutex> lock(idle.mutex);
  try {
    idle.contexts.push_back(std::move(context_));
  } catch (const std::bad_alloc&) {  // the context is freed
  }
}

size_t FreeIdleQueryContexts(int device) {
  std::vector<std::unique_ptr<QueryContext>> contexts;
  IdleContexts& idle = IdleOf(device);
  const std::lock_guard<std::mutex> lock(idle.mutex);
  contexts.swap(idle.contexts);
  return contexts.size();
}

}  // namespace cairn::gpu
