#include "engine/cost_model.h"

#include <algorithm>
#include <bit>

namespace cairn {

double CostModel::Predict(const BatchShape& shape) const {
  const size_t queries = std::max<size_t>(shape.queries, 1);
  const size_t k = std::bit_width(queries) - 1;
  const double share =
      static_cast<double>(queries - (size_t{1} << k)) / static_cast<double>(size_t{1} << k);
  const auto& knots = knots_[static_cast<size_t>(Curve::kPoint)];
  return knots[k] + share * (knots[k + 1] - knots[k]);
}

void CostModel::Observe(const BatchShape&, double) {}

}  // namespace cairn
