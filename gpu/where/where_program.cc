#include "gpu/where/where_program.h"

#include <algorithm>
#include <utility>

namespace cairn::gpu {
namespace {

using Kind = WhereTree::Kind;

size_t CountSets(const WhereTree& tree) {
  if (tree.kind == Kind::kSet) return 1;
  size_t sets = 0;
  for (const WhereTree& child : tree.children) sets += CountSets(child);
  return sets;
}

void AppendSets(const WhereTree& tree, std::vector<const WhereSet*>* sets) {
  if (tree.kind == Kind::kSet) sets->push_back(&tree.set);
  for (const WhereTree& child : tree.children) AppendSets(child, sets);
}

// The program of a tree whose sets are numbered from `first` on.
WhereProgram Compile(const WhereTree& tree, size_t first) {
  if (tree.kind == Kind::kSet) return {{{WhereStep::kLoad, static_cast<uint8_t>(first)}}, 0};
  std::vector<WhereProgram> parts;
  for (const WhereTree& child : tree.children) {
    parts.push_back(Compile(child, first));
    first += CountSets(child);
  }
  // Programs of sets have one step.
  std::stable_sort(parts.begin(), parts.end(), [](const WhereProgram& a, const WhereProgram& b) {
    return a.stack != b.stack ? a.stack > b.stack : a.ops.size() > 1 && b.ops.size() == 1;
  });
  const bool all = tree.kind == Kind::kAnd;
  WhereProgram program = std::move(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    const WhereProgram& part = parts[i];
    if (part.ops.size() == 1) {
      program.ops.push_back({all ? WhereStep::kAnd : WhereStep::kOr, part.ops[0].set});
      continue;
    }
    program.ops.push_back({WhereStep::kPush, 0});
    program.ops.insert(program.ops.end(), part.ops.begin(), part.ops.end());
    program.ops.push_back({all ? WhereStep::kPopAnd : WhereStep::kPopOr, 0});
    program.stack = std::max(program.stack, part.stack + 1);
  }
  return program;
}

}  // namespace

std::vector<const WhereSet*> SetsOf(const WhereTree& tree) {
  std::vector<const WhereSet*> sets;
  AppendSets(tree, &sets);
  return sets;
}

WhereProgram CompileWhere(const WhereTree& tree) {
  return Compile(tree, 0);
}

WhereProgram CompileRest(const WhereTree& tree, size_t driver, absl::Span<const double> rows) {
  std::vector<WhereProgram> parts;
  size_t first = 0;
  for (const WhereTree& child : tree.children) {
    if (child.kind != Kind::kSet || first != driver) parts.push_back(Compile(child, first));
    first += CountSets(child);
  }
  std::stable_sort(parts.begin(), parts.end(), [&](const WhereProgram& a, const WhereProgram& b) {
    if (a.ops.size() != 1 || b.ops.size() != 1) return a.ops.size() < b.ops.size();
    return rows[a.ops[0].set] < rows[b.ops[0].set];
  });
  WhereProgram rest;
  for (const WhereProgram& part : parts) {
    rest.ops.insert(rest.ops.end(), part.ops.begin(), part.ops.end());
    rest.ops.push_back({WhereStep::kRequire, 0});
    rest.stack = std::max(rest.stack, part.stack);
  }
  return rest;
}

}  // namespace cairn::gpu
