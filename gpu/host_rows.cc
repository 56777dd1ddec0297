#include "gpu/host_rows.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "gpu/cuda_status.h"
#include "gpu/device_memory.h"

namespace cairn::gpu {
namespace {

constexpr size_t kSlots = QueryContext::kStreams;

// The ranges of a batch with the rows that they give.
struct RangesOfBatch {
  absl::Span<const Position> begin, end;
  absl::Span<const uint64_t> offsets;
  Order order;

  uint64_t rows(size_t range) const { return offsets[range + 1] - offsets[range]; }
  // The positions of rows [first, first + count) of a range's start here.
  Position PositionOf(size_t range, uint64_t first, uint64_t count) const {
    return order == Order::kAscending ? static_cast<Position>(begin[range] + first)
                                      : static_cast<Position>(end[range] - first - count);
  }
};

// How many ranges and rows a piece may have, and where they lie in one block of memory.
struct PieceLayout {
  size_t ranges, rows;

  size_t begin_at() const { return (ranges + 1) * sizeof(uint64_t); }
  size_t ranges_bytes() const { return begin_at() + ranges * sizeof(Position); }
  size_t rows_at() const { return (ranges_bytes() + 255) / 256 * 256; }
  size_t bytes() const { return rows_at() + rows * sizeof(RowId); }

  uint64_t* offsets(char* block) const { return reinterpret_cast<uint64_t*>(block); }
  Position* begin(char* block) const { return reinterpret_cast<Position*>(block + begin_at()); }
  RowId* row_ids(char* block) const { return reinterpret_cast<RowId*>(block + rows_at()); }
};

// Goes through the rows of a batch and writes down one piece after the other.
class PieceCutter {
 public:
  PieceCutter(const RangesOfBatch& batch, const PieceLayout& layout)
      : batch_(batch), layout_(layout) {}

  struct Piece {
    size_t ranges = 0;
    uint64_t rows = 0;
    uint64_t first = 0;  // where the batch's rows hold the piece's first one
  };

  // No rows are left if the piece has none.
  Piece Next(char* block) {
    uint64_t* const offsets = layout_.offsets(block);
    Position* const begin = layout_.begin(block);
    Piece piece{0, 0, next_};
    offsets[0] = 0;
    while (range_ < batch_.begin.size() && piece.ranges < layout_.ranges &&
           piece.rows < layout_.rows) {
      const uint64_t taken = next_ - batch_.offsets[range_];
      const uint64_t count =
          std::min<uint64_t>(batch_.rows(range_) - taken, layout_.rows - piece.rows);
      if (count > 0) {
        begin[piece.ranges] = batch_.PositionOf(range_, taken, count);
        piece.rows += count;
        offsets[++piece.ranges] = piece.rows;
        next_ += count;
      }
      if (next_ == batch_.offsets[range_ + 1]) ++range_;
    }
    return piece;
  }

 private:
  const RangesOfBatch& batch_;
  const PieceLayout& layout_;
  size_t range_ = 0;
  uint64_t next_ = 0;  // the row to go on with
};

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
        cutter_(batch_, layout_) {}

  absl::Status Run() {
    absl::Status status = Enqueue();
    // What the streams still do uses memory that ends with this.
    if (!status.ok()) (void)context_.WaitForAll();
    return status;
  }

 private:
  struct Slot {
    char* pinned = nullptr;
    DeviceBuffer<char> memory;
    PieceCutter::Piece piece;  // under way
  };

  absl::Status Enqueue() {
    const size_t stride = (layout_.bytes() + 255) / 256 * 256;
    absl::StatusOr<char*> pinned = context_.Pinned(kSlots * stride);
    if (!pinned.ok()) return pinned.status();
    for (size_t i = 0; i < kSlots; ++i) slots_[i].pinned = *pinned + i * stride;
    size_t next = 0;
    for (bool more = true; more; next = (next + 1) % kSlots) {
      if (absl::Status s = Finish(next); !s.ok()) return s;
      absl::StatusOr<bool> started = Start(next);
      if (!started.ok()) return started.status();
      more = *started;
    }
    for (size_t i = 0; i < kSlots; ++i) {
      if (absl::Status s = Finish((next + i) % kSlots); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Enqueues the next piece; false if there is none.
  absl::StatusOr<bool> Start(size_t i) {
    Slot& slot = slots_[i];
    slot.piece = cutter_.Next(slot.pinned);
    const PieceCutter::Piece& piece = slot.piece;
    if (piece.rows == 0) return false;
    const cudaStream_t stream = context_.stream(static_cast<int>(i));
    if (slot.memory.size() == 0) {
      absl::StatusOr<DeviceBuffer<char>> memory =
          DeviceBuffer<char>::Allocate(layout_.bytes(), stream);
      if (!memory.ok()) return memory.status();
      slot.memory = *std::move(memory);
    }
    char* const memory = slot.memory.data();
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(memory, slot.pinned, layout_.ranges_bytes(),
                                               cudaMemcpyHostToDevice, stream));
    absl::Status s = index_.CopyRows(layout_.begin(memory), layout_.offsets(memory), piece.ranges,
                                     piece.rows, batch_.order, layout_.row_ids(memory), stream);
    if (!s.ok()) return s;
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(layout_.row_ids(slot.pinned),
                                               layout_.row_ids(memory), piece.rows * sizeof(RowId),
                                               cudaMemcpyDeviceToHost, stream));
    return true;
  }

  // Waits for what is under way in a slot, if anything, and brings the rows to the caller.
  absl::Status Finish(size_t i) {
    Slot& slot = slots_[i];
    if (slot.piece.rows == 0) return absl::OkStatus();
    if (absl::Status s = context_.Wait(static_cast<int>(i)); !s.ok()) return s;
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
  PieceCutter cutter_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace

absl::Status CopyRowsToHost(const DeviceIndex& index, absl::Span<const Position> begin,
                            absl::Span<const Position> end, absl::Span<const uint64_t> offsets,
                            Order order, RowId* row_ids, const HostBatchPolicy& policy,
                            QueryContext& context) {
  if (offsets.empty() || offsets.back() == 0) return absl::OkStatus();
  const OnDevice on_device(context.device());
  const RangesOfBatch batch{begin, end, offsets, order};
  return PieceRun(index, batch, row_ids, policy, context).Run();
}

}  // namespace cairn::gpu
