#include "engine/where/where_node.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "engine/where/key_ranges_of.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using Kind = WhereNode::Kind;
using Mode = WhereNode::Mode;

// A predicate of more levels is refused: each takes a call.
constexpr int kMostLevels = 500;

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

// Two leaves of one member as one.
WhereNode Combined(const GroupMembers& members, Kind kind, uint64_t rows, const WhereNode& a,
                   const WhereNode& b) {
  const bool all = kind == Kind::kAnd;
  return MakeLeaf(members, a.member, Mode::kSome,
                  all ? a.set.Intersection(b.set) : a.set.Union(b.set),
                  absl::StrCat(a.text, all ? " AND " : " OR ", b.text), rows);
}

// What two nodes ask of one index as one, where that asks the same.
bool Combine(const GroupMembers& members, Kind kind, uint64_t rows, WhereNode* a,
             const WhereNode& b) {
  if (kind == Kind::kOr) {
    if (a->kind != Kind::kLeaf || b.kind != Kind::kLeaf || a->member != b.member ||
        a->mode != Mode::kSome || b.mode != Mode::kSome) {
      return false;
    }
    *a = Combined(members, kind, rows, *a, b);
    return true;
  }
  const WhereNode& leaf = a->kind == Kind::kOr ? a->children[0] : *a;
  if (leaf.kind != Kind::kLeaf) return false;
  const size_t first = leaf.member - members[leaf.member]->shard();
  const size_t end = first + members[first]->shards();
  if (EntriesOf(*a, first, end) != a || EntriesOf(b, first, end) != &b ||
      !IsSingle(members, first)) {
    return false;
  }
  std::vector<WhereNode> both;
  for (size_t m = first; m < end; ++m) {
    const WhereNode* const x = LeafOf(*a, m);
    const WhereNode* const y = LeafOf(b, m);
    if (x != nullptr && y != nullptr) both.push_back(Combined(members, kind, rows, *x, *y));
  }
  *a = Of(Kind::kOr, std::move(both), members, rows);
  return true;
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
  for (WhereNode& node : whole.children) {
    const bool combined = std::any_of(kept.begin(), kept.end(), [&](WhereNode& other) {
      return Combine(members, kind, rows, &other, node);
    });
    if (!combined) kept.push_back(std::move(node));
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

// Rows with entries of which none is in sets[s], of shard s of the index that begins at member `m`.
WhereNode NoneOf(const GroupMembers& members, size_t m, std::vector<EntrySet> sets,
                 const std::string& text, uint64_t rows) {
  const bool single = IsSingle(members, m);
  std::vector<WhereNode> none, any;
  for (size_t s = 0; s < sets.size(); ++s) {
    none.push_back(MakeLeaf(members, m + s, Mode::kNoneOf, std::move(sets[s]), text, rows));
  }
  // A row that has all its entries in one shard.
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
  Resolver(const GroupMembers& members, uint64_t rows) : members_(members), rows_(rows) {}

  absl::StatusOr<WhereNode> Resolve(const Predicate& where, bool negated, int level = 0) {
    if (level > kMostLevels) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a predicate nested deeper than %d levels", kMostLevels));
    }
    switch (where.kind()) {
      case Predicate::Kind::kNot:
        return Resolve(where.children()[0], !negated, level + 1);
      case Predicate::Kind::kAnd:
      case Predicate::Kind::kOr:
        break;
      case Predicate::Kind::kIsNull:
      case Predicate::Kind::kKeys:
      case Predicate::Kind::kCompare:
        return ResolveComparison(where, negated);
    }
    const bool is_and = (where.kind() == Predicate::Kind::kAnd) != negated;
    if (where.children().empty()) {
      if (!is_and) return WhereNode();
      return AllRows();
    }
    std::vector<WhereNode> children;
    for (const Predicate& child : where.children()) {
      ASSIGN_OR_RETURN(WhereNode node, Resolve(child, negated, level + 1));
      children.push_back(std::move(node));
    }
    return Of(is_and ? Kind::kAnd : Kind::kOr, std::move(children), members_, rows_);
  }

 private:
  absl::StatusOr<size_t> MemberOf(const Predicate& where) const {
    std::string names;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i]->name() == where.index()) return i;
      if (members_[i]->shard() != 0) continue;
      absl::StrAppend(&names, i == 0 ? "" : ", ", members_[i]->name());
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("the group has no index %s, only %s", Quoted(where.index()), names));
  }

  // Every row that has an entry in any index: in one that has all rows, if there is such a one.
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

  absl::StatusOr<WhereNode> ResolveComparison(const Predicate& where, bool negated) {
    ASSIGN_OR_RETURN(const size_t m, MemberOf(where));
    const GroupMember& member = *members_[m];
    for (size_t s = 0; s < member.shards(); ++s) RETURN_IF_ERROR(members_[m + s]->Prepare());
    const bool composite = member.codec().parts().size() > 1;
    if (where.kind() == Predicate::Kind::kIsNull) return ResolveNull(where, m, negated);
    // What a part that is null makes of an order or of a negation is not in the order of keys.
    const bool is_range =
        where.kind() == Predicate::Kind::kCompare || where.keys().kind() == KeyQuery::Kind::kRange;
    if (composite && member.keeps_nulls() && (negated || is_range)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "index '%s', %s: %s over keys of several parts that may be null; build the index with "
          "nulls=skip",
          member.name(), where.ToString(), negated ? "a negation" : "an order"));
    }
    KeyRanges ranges(member.codec().kind());
    RETURN_IF_ERROR(ranges.Add(where, member));
    if (negated && ranges.has_null()) {
      // Where one of the keys is NULL, nothing is known to be none of them.
      if (!is_range) return WhereNode();
      return NegatedRangeWithNull(where, m);
    }
    const bool drop_nulls = member.keeps_nulls() && !composite && (is_range || negated);
    std::vector<EntrySet> sets;
    for (size_t s = 0; s < member.shards(); ++s) {
      const GroupMember& shard = *members_[m + s];
      ASSIGN_OR_RETURN(EntrySet set, EntrySet::Of(shard.version(), ranges.batch()));
      if (drop_nulls) {
        ASSIGN_OR_RETURN(const EntrySet nulls, Nulls(shard));
        set = negated ? set.Union(nulls) : set.Intersection(nulls.Complement(shard.delta()));
      }
      sets.push_back(std::move(set));
    }
    if (negated) {
      return NoneOf(members_, m, std::move(sets), "NOT " + where.ToString(), rows_);
    }
    return SomeOf(m, std::move(sets), where.ToString());
  }

  // Rows with an entry in one of sets[s], of shard s of the index that begins at member `m`.
  WhereNode SomeOf(size_t m, std::vector<EntrySet> sets, const std::string& text) const {
    std::vector<WhereNode> nodes;
    for (size_t s = 0; s < sets.size(); ++s) {
      nodes.push_back(MakeLeaf(members_, m + s, Mode::kSome, std::move(sets[s]), text, rows_));
    }
    return Of(Kind::kOr, std::move(nodes), members_, rows_);
  }

  // NOT x BETWEEN 5 AND NULL is true of what is less than 5.
  absl::StatusOr<WhereNode> NegatedRangeWithNull(const Predicate& where, size_t m) {
    using Comparison = Predicate::Comparison;
    if (where.kind() == Predicate::Kind::kCompare || members_[m]->codec().parts().size() > 1) {
      return WhereNode();
    }
    std::vector<WhereNode> either;
    const KeyQuery& keys = where.keys();
    const Comparison upper = where.upper_inclusive() ? Comparison::kAtMost : Comparison::kLess;
    if (!keys.lower_open()) {
      ASSIGN_OR_RETURN(
          WhereNode node,
          ResolveComparison(Predicate::Compare(where.index(), Comparison::kAtLeast, keys.keys()[0]),
                            /*negated=*/true));
      either.push_back(std::move(node));
    }
    if (!keys.upper_open()) {
      ASSIGN_OR_RETURN(
          WhereNode node,
          ResolveComparison(Predicate::Compare(where.index(), upper, keys.keys()[1]), true));
      either.push_back(std::move(node));
    }
    return Of(Kind::kOr, std::move(either), members_, rows_);
  }

  absl::StatusOr<WhereNode> ResolveNull(const Predicate& where, size_t m, bool negated) {
    const GroupMember& member = *members_[m];
    const bool composite = member.codec().parts().size() > 1;
    if (composite && (member.keeps_nulls() || !negated)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "index '%s', %s: of keys of several parts it is not known which one is null",
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

  // The entries of an index of one part whose key is null.
  static absl::StatusOr<EntrySet> Nulls(const GroupMember& member) {
    const KeyValue null;
    KeyColumn keys(member.codec().kind());
    RETURN_IF_ERROR(member.codec().Append(absl::MakeConstSpan(&null, 1), &keys));
    return EntrySet::Of(member.version(), RangeBatch::Equal(keys.Batch()));
  }

  const GroupMembers& members_;
  const uint64_t rows_;
};

// Whether each row that it is true of has an entry in some index, so that it is known to be there.
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
                                           uint64_t rows) {
  ASSIGN_OR_RETURN(WhereNode node, Resolver(members, rows).Resolve(where, /*negated=*/false));
  if (const WhereNode* const unbounded = FindUnbounded(node); unbounded != nullptr) {
    const std::string& name = members[unbounded->member]->name();
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: index '%s' does not keep rows without a key (nulls=skip), so that they are found only "
        "AND what another index says of them; build it with nulls=first",
        unbounded->text, name));
  }
  return node;
}

}  // namespace cairn
