// The conditions of a resolved predicate on one index.
#include <algorithm>

#include "engine/where/where_node.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

}  // namespace

const WhereNode* EntriesOf(const WhereNode& node, size_t first, size_t end) {
  const auto is_leaf = [&](const WhereNode& of) {
    return of.kind == Kind::kLeaf && of.mode == Mode::kSome && of.member >= first &&
           of.member < end;
  };
  if (is_leaf(node)) return &node;
  const auto& children = node.children;
  if (node.kind == Kind::kOr) {
    return std::all_of(children.begin(), children.end(), is_leaf) ? &node : nullptr;
  }
  for (const WhereNode& child : children) {
    if (const WhereNode* const of_child = EntriesOf(child, first, end)) return of_child;
  }
  return nullptr;
}

const WhereNode* LeafOf(const WhereNode& entries, size_t member) {
  if (entries.kind == Kind::kLeaf) return entries.member == member ? &entries : nullptr;
  for (const WhereNode& child : entries.children) {
    if (child.member == member) return &child;
  }
  return nullptr;
}

bool IsSingle(const GroupMembers& members, size_t member) {
  if (members[member]->shares_rows()) return false;
  for (size_t m = member; m < member + members[member]->shards(); ++m) {
    if (!members[m]->is_single()) return false;
  }
  return true;
}

}  // namespace cairn
