#include "engine/groups/row_groups.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/util/make_room.h"
#include "index/keys/key_number.h"

namespace cairn {

RowGrouper::RowGrouper(absl::Span<const DataType> types)
    : pairs_(types.size() < 2 ? 0 : types.size() - 1), groups_(types.empty() ? 1 : 0) {
  for (const DataType type : types) values_.emplace_back(type);
}

void RowGrouper::Add(absl::Span<const ColumnValues> columns, absl::Span<uint32_t> groups) {
  const size_t rows = groups.size();
  if (values_.empty()) {
    std::fill(groups.begin(), groups.end(), 0);
    return;
  }
  added_.resize(values_.size() * rows);
  for (size_t c = 0; c < values_.size(); ++c) {
    values_[c].Add(columns[c], absl::MakeSpan(added_).subspan(c * rows, rows));
  }
  std::copy_n(added_.begin(), rows, groups.begin());
  for (size_t c = 0; c < pairs_.size(); ++c) {
    absl::flat_hash_map<uint64_t, uint32_t>& pairs = pairs_[c];
    const uint32_t* const code = added_.data() + (c + 1) * rows;
    for (size_t i = 0; i < rows; ++i) {
      const uint64_t pair = uint64_t{groups[i]} << 32 | code[i];
      const auto found = pairs.find(pair);
      if (found != pairs.end()) {
        groups[i] = found->second;
      } else {
        groups[i] = static_cast<uint32_t>(pairs.size());
        MakeRoomForOne(&pairs);
        pairs.emplace(pair, groups[i]);
      }
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    if (groups[i] < groups_) continue;
    ++groups_;
    for (size_t c = 0; c < values_.size(); ++c) codes_.push_back(added_[c * rows + i]);
  }
}

ColumnValues RowGrouper::KeysOf(size_t column) const {
  const ColumnValues& values = values_[column].values();
  ColumnValues keys(values.type());
  for (size_t g = 0; g < groups_; ++g) keys.AppendFrom(values, CodeOf(g, column), 1);
  return keys;
}

std::string RowGrouper::Described(size_t group) const {
  if (values_.empty()) return "all rows";
  std::string text = "group ";
  for (size_t c = 0; c < values_.size(); ++c) {
    absl::StrAppend(&text, c == 0 ? "" : ",",
                    cairn::Described(values_[c].values().value(CodeOf(group, c))));
  }
  return text;
}

}  // namespace cairn
