#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cairn/secondary_index.h"
#include "engine/route/index_router.h"
#include "engine/route/router.h"
#include "engine/version/base.h"
#include "engine/version/versioned_search.h"

namespace cairn {

// A base that answers each batch on the route that suits it. Thread-safe.
class RoutedBase final : public BaseSearch {
 public:
  // Makes trials, or reads what is stored of them, as the options say.
  RoutedBase(std::shared_ptr<const Base> base, const OpenOptions& options);

  const Base& base() const { return *base_; }
  const Router& router() const { return *router_; }

  // SecondaryIndex's methods, over the base's entries; Scan without a limit and cursors.
  absl::Status FindFirst(KeyBatch keys, const QueryOptions& options,
                         absl::Span<RowId> row_ids) const override;
  absl::Status Contains(KeyBatch keys, const QueryOptions& options, absl::Span<bool> found) const;
  absl::Status Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const override;
  absl::Status Count(const RangeBatch& ranges, const QueryOptions& options,
                     absl::Span<uint64_t> counts) const;
  absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options, Matches* matches) const;
  // Routed as Count is.
  absl::Status Positions(const RangeBatch& ranges, const QueryOptions& options,
                         absl::Span<Position> begin, absl::Span<Position> end) const override;

 private:
  // Has the router answer a batch, and makes new trials behind it where they are due.
  absl::Status Answer(const BatchShape& shape, const QueryOptions& options,
                      absl::FunctionRef<absl::StatusOr<uint64_t>(const Route&)> answer) const;
  // Rows that `keys` keys are expected to find, all of them.
  double ExpectedRows(size_t keys) const;

  const std::shared_ptr<const Base> base_;
  const std::unique_ptr<Router> router_;
  const CostCalibration calibration_;
  mutable std::atomic_flag calibrating_ = ATOMIC_FLAG_INIT;
  mutable std::atomic<double> rows_per_range_{1};  // of scans so far, the last ones weighing most
};

}  // namespace cairn
