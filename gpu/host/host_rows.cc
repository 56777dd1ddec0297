#include "gpu/host/host_rows.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "gpu/host/row_pieces.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr size_t kStreams = QueryContext::kStreams;

class PieceRun {
 public:
  PieceRun(const DeviceIndex& index, const RangesOfBatch& batch, RowId* row_ids,
           const HostBatchPolicy& policy, QueryContext& context)
      : index_(index),
        batch_(batch),
        row_ids_(row_ids),
        context_(context),
        layout_{std::min(policy.piece_ranges, batch.begin.size()),
                std::min<uint64_t>(policy.piece_rows, batch.offsets.back())},
        pieces_(batch_, layout_) {}

  // On error, pieces may be in flight.
  absl::Status Run() {
    const size_t stride = (layout_.bytes() + 255) / 256 * 256;
    ASSIGN_OR_RETURN(auto* pinned, context_.Pinned(kStreams * stride));
    for (size_t i = 0; i < kStreams; ++i) slots_[i].pinned = pinned + i * stride;
    size_t next = 0;
    for (bool more = true; more; next = (next + 1) % kStreams) {
      RETURN_IF_ERROR(Finish(next));
      ASSIGN_OR_RETURN(more, Start(next));
    }
    for (size_t i = 0; i < kStreams; ++i) {
      RETURN_IF_ERROR(Finish((next + i) % kStreams));
    }
    return absl::OkStatus();
  }

 private:
  struct Slot {
    char* pinned = nullptr;
    DeviceBuffer<char> memory;
    RowPieces::Piece piece;  // the piece in flight
  };

  // Enqueues the next piece; returns false if there is none.
  absl::StatusOr<bool> Start(size_t i) {
    Slot& slot = slots_[i];
    slot.piece = pieces_.Next(slot.pinned);
    const RowPieces::Piece& piece = slot.piece;
    if (piece.rows == 0) return false;
    RETURN_IF_ERROR(MayCallDevice());
    const cudaStream_t stream = context_.stream(static_cast<int>(i));
    if (slot.memory.size() == 0) {
      ASSIGN_OR_RETURN(DeviceBuffer<char> memory,
                       DeviceBuffer<char>::Allocate(layout_.bytes(), stream));
      slot.memory = std::move(memory);
    }
    char* const memory = slot.memory.data();
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaMemcpyAsync(layout_.offsets(memory), layout_.offsets(slot.pinned),
                        (piece.ranges + 1) * sizeof(uint64_t), cudaMemcpyHostToDevice, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(layout_.begin(memory), layout_.begin(slot.pinned),
                                               piece.ranges * sizeof(Position),
                                               cudaMemcpyHostToDevice, stream));
    RETURN_IF_ERROR(index_.CopyRows(layout_.begin(memory), layout_.offsets(memory), piece.ranges,
                                    piece.rows, batch_.order, layout_.row_ids(memory), stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(layout_.row_ids(slot.pinned),
                                               layout_.row_ids(memory), piece.rows * sizeof(RowId),
                                               cudaMemcpyDeviceToHost, stream));
    return true;
  }

  // Waits for the slot's piece in flight, if any, and copies its row ids to the caller.
  absl::Status Finish(size_t i) {
    Slot& slot = slots_[i];
    if (slot.piece.rows == 0) return absl::OkStatus();
    RETURN_IF_ERROR(context_.Wait(static_cast<int>(i)));
    CopyOnHost(row_ids_ + slot.piece.first, layout_.row_ids(slot.pinned),
               slot.piece.rows * sizeof(RowId));
    slot.piece.rows = 0;
    return absl::OkStatus();
  }

  const DeviceIndex& index_;
  const RangesOfBatch& batch_;
  RowId* const row_ids_;
  QueryContext& context_;
  const PieceLayout layout_;
  RowPieces pieces_;
  std::array<Slot, kStreams> slots_;
};

}  // namespace

absl::Status CopyRowsToHost(const DeviceIndex& index, absl::Span<const Position> begin,
                            absl::Span<const Position> end, absl::Span<const uint64_t> offsets,
                            Order order, RowId* row_ids, const HostBatchPolicy& policy,
                            QueryContext& context) {
  if (offsets.empty() || offsets.back() == 0) return absl::OkStatus();
  const OnDevice on_device(context.device());
  const WaitsForItsUses waits;
  const RangesOfBatch batch{begin, end, offsets, order};
  absl::Status status = PieceRun(index, batch, row_ids, policy, context).Run();
  if (!status.ok()) (void)context.WaitForAll();
  return status;
}

}  // namespace cairn::gpu
