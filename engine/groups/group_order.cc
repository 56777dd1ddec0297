#include "engine/groups/group_order.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/index_group.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_encoding.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// What a cursor of groups begins with.
constexpr char kOfGroup = 'g';

}  // namespace

absl::Status GroupSorter::Then(const ColumnValues& column, Order order) {
  // Encodings of parts that are not the last have ends of their own.
  const PartLayout layout = {column.type(), NullPolicy::kFirst, /*last=*/false};
  for (size_t i = 0; i < keys_.size(); ++i) {
    std::string& key = keys_[i];
    const size_t begin = key.size();
    RETURN_IF_ERROR(AppendPart(layout, column.value(i), &key));
    if (order == Order::kAscending) continue;
    for (size_t b = begin; b < key.size(); ++b) key[b] = static_cast<char>(~key[b]);
  }
  return absl::OkStatus();
}

absl::Status GroupSorter::Page(uint64_t limit, std::string_view after, std::vector<size_t>* groups,
                               std::string* cursor) const {
  cursor->clear();
  groups->clear();
  if (!after.empty() && after[0] != kOfGroup) {
    return absl::InvalidArgumentError("GroupByOptions::after: not a cursor of groups");
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (after.empty() || keys_[i] > after.substr(1)) groups->push_back(i);
  }
  const auto less = [&](size_t a, size_t b) { return keys_[a] < keys_[b]; };
  const bool more = groups->size() > limit && limit > 0;
  if (limit == 0) groups->clear();
  if (more) {
    const auto end = groups->begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(groups->begin(), end, groups->end(), less);
    groups->erase(end, groups->end());
  }
  std::sort(groups->begin(), groups->end(), less);
  if (more) *cursor = std::string(1, kOfGroup).append(keys_[groups->back()]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GroupOrder>> ParseGroupOrder(absl::Span<const std::string> texts,
                                                        absl::Span<const std::string> columns) {
  return Guarded("reading an order", [&]() -> absl::StatusOr<std::vector<GroupOrder>> {
    std::vector<GroupOrder> order;
    for (const std::string& text : texts) {
      std::string name = text;
      absl::StripAsciiWhitespace(&name);
      GroupOrder by;
      if (absl::EndsWithIgnoreCase(name, " desc")) {
        by.order = Order::kDescending;
        name.resize(name.size() - 5);
      } else if (absl::EndsWithIgnoreCase(name, " asc")) {
        name.resize(name.size() - 4);
      }
      absl::StripAsciiWhitespace(&name);
      const auto found = std::find(columns.begin(), columns.end(), name);
      if (found == columns.end()) {
        return absl::InvalidArgumentError(
            absl::StrFormat("there is no column %s to order by, only %s", Quoted(name),
                            absl::StrJoin(columns, ", ")));
      }
      by.column = static_cast<size_t>(found - columns.begin());
      order.push_back(by);
    }
    return order;
  });
}

}  // namespace cairn
