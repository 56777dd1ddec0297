#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn::gpu {

// The ranges of a batch, as positions [begin[i], end[i]), and the output offsets of their row ids
// (FindResult::offsets). With a limit, the offsets cover only that many rows of a range, from the
// end at which `order` starts.
struct RangesOfBatch {
  absl::Span<const Position> begin, end;
  absl::Span<const uint64_t> offsets;
  Order order;

  uint64_t rows(size_t range) const { return offsets[range + 1] - offsets[range]; }
  // The position of the lowest of the rows [first, first + count) that a range returns.
  Position PositionOf(size_t range, uint64_t first, uint64_t count) const {
    return order == Order::kAscending ? static_cast<Position>(begin[range] + first)
                                      : static_cast<Position>(end[range] - first - count);
  }
};

// The maximum number of ranges and rows per piece, and the offsets of its arrays in one block of
// memory, aligned to eight bytes.
struct PieceLayout {
  size_t ranges, rows;

  size_t begin_at() const { return (ranges + 1) * sizeof(uint64_t); }
  size_t rows_at() const { return (begin_at() + ranges * sizeof(Position) + 255) / 256 * 256; }
  size_t bytes() const { return rows_at() + rows * sizeof(RowId); }

  uint64_t* offsets(char* block) const { return reinterpret_cast<uint64_t*>(block); }
  Position* begin(char* block) const { return reinterpret_cast<Position*>(block + begin_at()); }
  RowId* row_ids(char* block) const { return reinterpret_cast<RowId*>(block + rows_at()); }
};

// Cuts the rows of a batch into pieces. A piece ends when it is full, also within a range. Ranges
// without rows are skipped. The batch and the layout must outlive this object. Not thread-safe.
class RowPieces {
 public:
  RowPieces(const RangesOfBatch& batch, const PieceLayout& layout)
      : batch_(batch), layout_(layout) {}

  struct Piece {
    size_t ranges = 0;
    uint64_t rows = 0;
    uint64_t first = 0;  // index of the piece's first row among the batch's rows
  };

  // Writes the offsets and beginnings of the next piece's ranges to a block, in the form that
  // DeviceIndex::CopyRows takes. If the returned piece has no rows, there are no more pieces.
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
  uint64_t next_ = 0;  // the next row
};

}  // namespace cairn::gpu
