#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/version/index_version.h"

namespace cairn {

// The entries of each row of a version, which must outlive this. Immutable.
class RowEntries {
 public:
  // An entry of a row: run 0 is the base's, others are those of the delta's parts.
  struct Place {
    uint32_t run = 0;
    Position position = 0;
  };
  using Places = absl::InlinedVector<Place, 4>;

  // The first call for a base takes time for all of its entries (Base::Positions). Errors:
  // DataLoss. Throws std::bad_alloc.
  static absl::StatusOr<RowEntries> Of(const IndexVersion& version);

  // The positions of rows' entries in the base, including removed entries.
  const RowPositions& positions() const { return *positions_; }
  // The positions of rows' entries in a part of the delta, including removed entries.
  absl::Span<const uint64_t> by_row(size_t part) const { return by_row_[part]; }
  // Appends the places of all entries of a row.
  void AppendPlaces(RowId row, Places* places) const;

 private:
  RowEntries() = default;

  const Delta* delta_ = nullptr;
  std::shared_ptr<const RowPositions> positions_;
  std::vector<absl::Span<const uint64_t>> by_row_;
};

}  // namespace cairn
