#include "engine/where/where_node.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/index_spec.h"
#include "engine/where/key_ranges_of.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

// Maximum number of levels of a predicate, since each level takes a call.
constexpr int kMaxLevels = 500;
// Maximum number of comparisons that a plan lists if they are looked up together.
constexpr size_t kMaxTexts = 8;

uint64_t CountEntries(const Delta& delta) {
  return delta.base_run.size() - delta.removed.size() + delta.added_entries();
}

WhereNode MakeLeaf(const GroupMembers& members, size_t member, Mode mode, EntrySet set,
                   std::string text, uint64_t rows) {
  const Delta& delta = members[member]->delta();
  if (mode == Mode::kNoneOf && members[member]->is_single()) {
    set = set.Complement(delta);
    mode = Mode::kSome;
  }
  WhereNode node;
  node.kind = Kind::kLeaf;
  node.member = member;
  node.mode = mode;
  node.text = std::move(text);
  node.entries = set.Count(delta);
  const double entries = static_cast<double>(node.entries), all = static_cast<double>(rows);
  const auto total = static_cast<double>(CountEntries(delta));
  node.rows = mode == Mode::kSome     ? std::min(entries, all)
              : mode == Mode::kNoneOf ? std::clamp(total - entries, 0.0, all)
                                      : std::clamp(all - total, 0.0, all);
  node.set = std::move(set);
  if (mode == Mode::kSome && node.entries == 0) node.kind = Kind::kNothing;
  return node;
}

WhereNode Of(WhereNode::Kind kind, std::vector<WhereNode> nodes, const GroupMembers& members,
             uint64_t rows);

// Joins the texts of comparisons; only the first ones if there are many.
std::string Joined(absl::Span<const std::string> texts, const char* separator) {
  const size_t listed = std::min(texts.size(), kMaxTexts);
  std::string text = absl::StrJoin(texts.first(listed), separator);
  if (listed < texts.size()) {
    absl::StrAppend(&text, separator, "... (", texts.size() - listed, " more)");
  }
  return text;
}

// Combines leaves of one member into one leaf, which rows satisfy that satisfy all of them, or any.
WhereNode Combined(const GroupMembers& members, Kind kind, uint64_t rows,
                   absl::Span<WhereNode* const> leaves) {
  const bool all = kind == Kind::kAnd;
  std::vector<EntrySet> sets;
  std::vector<std::string> texts;
  for (WhereNode* const leaf : leaves) {
    sets.push_back(std::move(leaf->set));
    texts.push_back(std::move(leaf->text));
  }
  return MakeLeaf(members, leaves[0]->member, Mode::kSome,
                  all ? EntrySet::Intersection(std::move(sets)) : EntrySet::Union(std::move(sets)),
                  Joined(texts, all ? " AND " : " OR "), rows);
}

// Returns the member by which this node can be combined with other comparisons of the same index,
// if both are children of one node of this kind; nullopt if it cannot.
std::optional<size_t> CombinesBy(const GroupMembers& members, Kind kind, const WhereNode& node) {
  if (kind == Kind::kOr) {
    if (node.kind != Kind::kLeaf || node.mode != Mode::kSome) return std::nullopt;
    return node.member;
  }
  const WhereNode& leaf = node.kind == Kind::kOr ? node.children[0] : node;
  if (leaf.kind != Kind::kLeaf) return std::nullopt;
  const size_t first = leaf.member - members[leaf.member]->shard();
  const size_t end = first + members[first]->shards();
  if (EntriesOf(node, first, end) != &node || !IsSingle(members, first)) return std::nullopt;
  return first;
}

// Combines into one the nodes for which CombinesBy returns `member`.
WhereNode CombineAll(const GroupMembers& members, Kind kind, uint64_t rows, size_t member,
                     std::vector<WhereNode> nodes) {
  if (nodes.size() == 1) return std::move(nodes[0]);
  const size_t end = member + (kind == Kind::kOr ? 1 : members[member]->shards());
  std::vector<WhereNode> shards;
  for (size_t m = member; m < end; ++m) {
    std::vector<WhereNode*> leaves;
    for (WhereNode& node : nodes) {
      if (WhereNode* const leaf = LeafOf(node, m)) leaves.push_back(leaf);
    }
    if (leaves.size() == nodes.size()) shards.push_back(Combined(members, kind, rows, leaves));
  }
  return Of(Kind::kOr, std::move(shards), members, rows);
}

void Estimate(uint64_t rows, WhereNode* node) {
  const double all = std::max(1.0, static_cast<double>(rows));
  double share = 1;
  for (const WhereNode& child : node->children) {
    share *= node->kind == Kind::kAnd ? child.rows / all : 1 - child.rows / all;
  }
  node->rows = all * (node->kind == Kind::kAnd ? share : 1 - share);
}

WhereNode Of(Kind kind, std::vector<WhereNode> nodes, const GroupMembers& members, uint64_t rows) {
  WhereNode whole;
  whole.kind = kind;
  for (WhereNode& node : nodes) {
    if (node.kind == kind) {
      std::move(node.children.begin(), node.children.end(), std::back_inserter(whole.children));
    } else {
      whole.children.push_back(std::move(node));
    }
  }
  std::vector<WhereNode> kept;
  std::map<size_t, std::vector<WhereNode>> of_index;
  for (WhereNode& node : whole.children) {
    const std::optional<size_t> member = CombinesBy(members, kind, node);
    (member.has_value() ? of_index[*member] : kept).push_back(std::move(node));
  }
  for (auto& [member, of] : of_index) {
    kept.push_back(CombineAll(members, kind, rows, member, std::move(of)));
  }
  const auto is_nothing = [](const WhereNode& node) { return node.kind == Kind::kNothing; };
  if (kind == Kind::kAnd && std::any_of(kept.begin(), kept.end(), is_nothing)) return {};
  kept.erase(std::remove_if(kept.begin(), kept.end(), is_nothing), kept.end());
  if (kept.empty()) return {};
  if (kept.size() == 1) return std::move(kept[0]);
  whole.children = std::move(kept);
  std::sort(whole.children.begin(), whole.children.end(),
            [](const WhereNode& a, const WhereNode& b) { return a.rows < b.rows; });
  Estimate(rows, &whole);
  return whole;
}

// Returns the rows with entries in the index that begins at member `m`, but none in sets[s] of any
// shard s.
WhereNode NoneOf(const GroupMembers& members, size_t m, std::vector<EntrySet> sets,
                 const std::string& text, uint64_t rows) {
  const bool single = IsSingle(members, m);
  std::vector<WhereNode> none, any;
  for (size_t s = 0; s < sets.size(); ++s) {
    none.push_back(MakeLeaf(members, m + s, Mode::kNoneOf, std::move(sets[s]), text, rows));
  }
  // All entries of a row are in one shard.
  if (single || none.size() == 1) return Of(Kind::kOr, std::move(none), members, rows);
  std::vector<WhereNode> all;
  for (size_t s = 0; s < none.size(); ++s) {
    const GroupMember& member = *members[m + s];
    const EntrySet nothing(member.delta());
    all.push_back(
        Of(Kind::kOr,
           {std::move(none[s]), MakeLeaf(members, m + s, Mode::kAbsent, nothing, text, rows)},
           members, rows));
    any.push_back(MakeLeaf(members, m + s, Mode::kSome, nothing.Complement(member.delta()),
                           member.name() + ": all", rows));
  }
  all.push_back(Of(Kind::kOr, std::move(any), members, rows));
  return Of(Kind::kAnd, std::move(all), members, rows);
}

class Resolver {
 public:
  Resolver(const GroupMembers& members, uint64_t rows, const StopCondition& stop)
      : members_(members), rows_(rows), stop_(stop) {}

  absl::StatusOr<WhereNode> Resolve(const Predicate& where, bool negated, int level = 0) {
    if (level > kMaxLevels) {
      return absl::InvalidArgumentError(
          absl::StrFormat("expected a predicate of at most %d nested levels", kMaxLevels));
    }
    switch (where.kind()) {
      case Predicate::Kind::kNot:
        return Resolve(where.children()[0], !negated, level + 1);
      case Predicate::Kind::kAnd:
      case Predicate::Kind::kOr:
        break;
      case Predicate::Kind::kIsNull: {
        ASSIGN_OR_RETURN(const size_t m, MemberOf(where));
        return ResolveNull(where, m, negated);
      }
      case Predicate::Kind::kKeys: {
        ASSIGN_OR_RETURN(const size_t m, MemberOf(where));
        const Predicate* const comparison = &where;
        return ResolveComparisons(absl::MakeConstSpan(&comparison, 1), m, negated);
      }
    }
    const bool is_and = (where.kind() == Predicate::Kind::kAnd) != negated;
    if (where.children().empty()) {
      if (!is_and) return WhereNode();
      return AllRows();
    }
    std::vector<WhereNode> children;
    // Comparisons of one index are looked up together, if one of them must be true, or all must be
    // false.
    std::map<size_t, std::vector<const Predicate*>> together;
    for (const Predicate& child : where.children()) {
      RETURN_IF_ERROR(stop_.Check());
      const Predicate* comparison = &child;
      bool is_negated = negated;
      if (comparison->kind() == Predicate::Kind::kNot) {
        comparison = &comparison->children()[0];
        is_negated = !negated;
      }
      if (is_negated == is_and && comparison->kind() == Predicate::Kind::kKeys) {
        ASSIGN_OR_RETURN(const size_t m, MemberOf(*comparison));
        together[m].push_back(comparison);
        continue;
      }
      ASSIGN_OR_RETURN(WhereNode node, Resolve(child, negated, level + 1));
      children.push_back(std::move(node));
    }
    for (const auto& [m, comparisons] : together) {
      ASSIGN_OR_RETURN(WhereNode node, ResolveComparisons(comparisons, m, /*negated=*/is_and));
      children.push_back(std::move(node));
    }
    return Of(is_and ? Kind::kAnd : Kind::kOr, std::move(children), members_, rows_);
  }

 private:
  absl::StatusOr<size_t> MemberOf(const Predicate& where) const {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i]->name() == where.index()) return i;
    }
    std::string names;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i]->shard() != 0) continue;
      absl::StrAppend(&names, i == 0 ? "" : ", ", members_[i]->name());
    }
    return absl::InvalidArgumentError(absl::StrFormat(
        "the group has no index %s; expected one of %s", Quoted(where.index()), names));
  }

  // Returns all rows that have an entry in any index, by one index that has all rows if there is
  // one.
  absl::StatusOr<WhereNode> AllRows() const {
    std::vector<WhereNode> either;
    for (size_t first = 0; first < members_.size(); first += members_[first]->shards()) {
      const GroupMember& index = *members_[first];
      std::vector<WhereNode> entries;
      uint64_t count = 0;
      for (size_t m = first; m < first + index.shards(); ++m) {
        RETURN_IF_ERROR(members_[m]->Prepare());
        const Delta& delta = members_[m]->delta();
        entries.push_back(MakeLeaf(members_, m, Mode::kSome, EntrySet(delta).Complement(delta),
                                   index.name() + ": all", rows_));
        count += entries.back().entries;
      }
      const bool keeps_all =
          index.keeps_nulls() && index.version().spec().on_error == ErrorPolicy::kFail;
      if (IsSingle(members_, first) && (keeps_all || count == rows_)) {
        return Of(Kind::kOr, std::move(entries), members_, rows_);
      }
      std::move(entries.begin(), entries.end(), std::back_inserter(either));
    }
    return Of(Kind::kOr, std::move(either), members_, rows_);
  }

  // Returns the rows for which one of several comparisons of an index is true, or all of them are
  // false.
  absl::StatusOr<WhereNode> ResolveComparisons(absl::Span<const Predicate* const> comparisons,
                                               size_t m, bool negated) {
    const GroupMember& member = *members_[m];
    for (size_t s = 0; s < member.shards(); ++s) RETURN_IF_ERROR(members_[m + s]->Prepare());
    KeyRanges ranges(member.codec(),
                     negated ? KeyRanges::Which::kNotFalse : KeyRanges::Which::kTrue, stop_);
    std::vector<std::string> texts;
    for (const Predicate* const comparison : comparisons) {
      RETURN_IF_ERROR(stop_.Check());
      RETURN_IF_ERROR(ranges.Add(*comparison, member));
      texts.push_back(texts.size() < kMaxTexts ? comparison->ToString() : std::string());
    }
    std::vector<EntrySet> sets;
    for (size_t s = 0; s < member.shards(); ++s) {
      ASSIGN_OR_RETURN(EntrySet set, ranges.Of(members_[m + s]->version()));
      sets.push_back(std::move(set));
    }
    std::string text = Joined(texts, " OR ");
    if (!negated) return SomeOf(m, std::move(sets), text);
    text = texts.size() == 1 ? "NOT " + text : "NOT (" + text + ")";
    return NoneOf(members_, m, std::move(sets), text, rows_);
  }

  // Returns the rows with an entry in sets[s] of any shard s of the index that begins at member
  // `m`.
  WhereNode SomeOf(size_t m, std::vector<EntrySet> sets, const std::string& text) const {
    std::vector<WhereNode> nodes;
    for (size_t s = 0; s < sets.size(); ++s) {
      nodes.push_back(MakeLeaf(members_, m + s, Mode::kSome, std::move(sets[s]), text, rows_));
    }
    return Of(Kind::kOr, std::move(nodes), members_, rows_);
  }

  absl::StatusOr<WhereNode> ResolveNull(const Predicate& where, size_t m, bool negated) {
    const GroupMember& member = *members_[m];
    for (size_t s = 0; s < member.shards(); ++s) RETURN_IF_ERROR(members_[m + s]->Prepare());
    if (member.codec().parts().size() > 1 && member.keeps_nulls()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("index '%s', %s: expected keys of one part: for several parts it is "
                          "unknown which one is null",
                          member.name(), where.ToString()));
    }
    if (!member.keeps_nulls() && !negated) return AbsentRows(members_, m, rows_);
    std::vector<EntrySet> nulls;
    for (size_t s = 0; s < member.shards(); ++s) {
      const GroupMember& shard = *members_[m + s];
      nulls.emplace_back(shard.delta());
      if (!member.keeps_nulls()) continue;
      ASSIGN_OR_RETURN(nulls.back(), Nulls(shard));
    }
    if (negated) {
      return NoneOf(members_, m, std::move(nulls), member.name() + " IS NOT NULL", rows_);
    }
    return SomeOf(m, std::move(nulls), where.ToString());
  }

  // Returns the entries with a null key, of an index with keys of one part.
  static absl::StatusOr<EntrySet> Nulls(const GroupMember& member) {
    const DataValue null;
    EncodedKeys keys(member.codec().kind());
    RETURN_IF_ERROR(member.codec().Append(absl::MakeConstSpan(&null, 1), &keys));
    return EntrySet::Of(member.version(), RangeBatch::Equal(keys.Batch()));
  }

  const GroupMembers& members_;
  const uint64_t rows_;
  const StopCondition stop_;
};

// Returns a node that may be true for rows without an entry in any index, which cannot be
// enumerated; null if there is none.
const WhereNode* FindUnbounded(const WhereNode& node) {
  const WhereNode* unbounded = nullptr;
  switch (node.kind) {
    case Kind::kNothing:
      return nullptr;
    case Kind::kLeaf:
      return node.mode == Mode::kAbsent ? &node : nullptr;
    case Kind::kAnd:
      for (const WhereNode& child : node.children) {
        unbounded = FindUnbounded(child);
        if (unbounded == nullptr) return nullptr;
      }
      return unbounded;
    case Kind::kOr:
      for (const WhereNode& child : node.children) {
        unbounded = FindUnbounded(child);
        if (unbounded != nullptr) return unbounded;
      }
  }
  return unbounded;
}

}  // namespace

WhereNode AbsentRows(const GroupMembers& members, size_t member, uint64_t rows) {
  std::vector<WhereNode> nodes;
  for (size_t m = member; m < member + members[member]->shards(); ++m) {
    nodes.push_back(MakeLeaf(members, m, Mode::kAbsent, EntrySet(members[m]->delta()),
                             members[m]->name() + " IS NULL", rows));
  }
  return Of(Kind::kAnd, std::move(nodes), members, rows);
}

WhereNode AllOf(std::vector<WhereNode> nodes, const GroupMembers& members, uint64_t rows) {
  return Of(Kind::kAnd, std::move(nodes), members, rows);
}

absl::StatusOr<WhereNode> ResolvePredicate(const Predicate& where, const GroupMembers& members,
                                           uint64_t rows, const StopCondition& stop) {
  RETURN_IF_ERROR(stop.Check());
  ASSIGN_OR_RETURN(WhereNode node, Resolver(members, rows, stop).Resolve(where, /*negated=*/false));
  if (const WhereNode* const unbounded = FindUnbounded(node); unbounded != nullptr) {
    const std::string& name = members[unbounded->member]->name();
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: index '%s' does not keep rows without a key (nulls=skip), so they are found only "
        "by AND with a condition on another index; build the index with nulls=first",
        unbounded->text, name));
  }
  return node;
}

}  // namespace cairn
