#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "cairn/device/index_group.h"

namespace cairn {

struct DevicePredicate::Node {
  Kind kind;
  size_t column = 0;
  std::vector<DeviceKeyRange> ranges = {};
  std::vector<DevicePredicate> children = {};
  size_t depth = 1;
};

DevicePredicate DevicePredicate::Range(size_t column, uint64_t first, uint64_t last) {
  return InRanges(column, {{first, last}});
}

DevicePredicate DevicePredicate::In(size_t column, absl::Span<const uint64_t> keys) {
  std::vector<DeviceKeyRange> ranges;
  ranges.reserve(keys.size());
  for (const uint64_t key : keys) ranges.push_back({key, key});
  return InRanges(column, std::move(ranges));
}

DevicePredicate DevicePredicate::InRanges(size_t column, std::vector<DeviceKeyRange> ranges) {
  return DevicePredicate(
      std::make_shared<const Node>(Node{Kind::kKeys, column, std::move(ranges)}));
}

DevicePredicate DevicePredicate::IsNull(size_t column) {
  return DevicePredicate(std::make_shared<const Node>(Node{Kind::kIsNull, column}));
}

DevicePredicate DevicePredicate::All(std::vector<DevicePredicate> predicates) {
  Node node{Kind::kAnd};
  for (const DevicePredicate& child : predicates) {
    node.depth = std::max(node.depth, child.depth() + 1);
  }
  node.children = std::move(predicates);
  return DevicePredicate(std::make_shared<const Node>(std::move(node)));
}

DevicePredicate DevicePredicate::Any(std::vector<DevicePredicate> predicates) {
  Node node{Kind::kOr};
  for (const DevicePredicate& child : predicates) {
    node.depth = std::max(node.depth, child.depth() + 1);
  }
  node.children = std::move(predicates);
  return DevicePredicate(std::make_shared<const Node>(std::move(node)));
}

DevicePredicate DevicePredicate::operator!() const {
  return DevicePredicate(
      std::make_shared<const Node>(Node{Kind::kNot, 0, {}, {*this}, depth() + 1}));
}

DevicePredicate::Kind DevicePredicate::kind() const {
  return node_->kind;
}

size_t DevicePredicate::column() const {
  return node_->column;
}

const std::vector<DeviceKeyRange>& DevicePredicate::ranges() const {
  return node_->ranges;
}

const std::vector<DevicePredicate>& DevicePredicate::children() const {
  return node_->children;
}

size_t DevicePredicate::depth() const {
  return node_->depth;
}

}  // namespace cairn
