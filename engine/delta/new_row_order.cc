#include "engine/delta/new_row_order.h"

namespace cairn {

void NewRowOrder::Take(std::string_view from, std::string_view to, std::vector<RowId>* taken) {
  for (const RowId end = ordered_.key_comp().rows->end(); end_ < end; ++end_) {
    ordered_.insert(ordered_.end(), end_);  // mostly in primary-key order
  }
  const auto first = ordered_.lower_bound(from);
  const auto last = ordered_.lower_bound(to);
  taken->insert(taken->end(), first, last);
  ordered_.erase(first, last);
}

void NewRowOrder::Clear() {
  ordered_.clear();
  end_ = ordered_.key_comp().rows->base_rows();
}

}  // namespace cairn
