// IndexGroup::Create: finds the versions of a group, and checks that they belong together.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "engine/shards/open_index.h"
#include "engine/version/distinct_rows.h"
#include "engine/where/group_member.h"
#include "engine/where/index_group.h"
#include "engine/where/row_space.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

absl::StatusOr<IndexVersions> OpenMemberOf(const IndexGroup::Member& member) {
  std::optional<IndexVersions> open = VersionsOf(*member.index);
  if (!open.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("index '%s' is live; use IndexedDB::PinGroup to pin its "
                        "state",
                        member.name));
  }
  open->by_source &= open->versions.size() > 1;
  return *std::move(open);
}

absl::Status CheckTogether(const IndexGroup::Member& a, const IndexVersion& x,
                           const IndexGroup::Member& b, const IndexVersion& y) {
  const auto differ = [&](const char* what, const std::string& of_a, const std::string& of_b) {
    return absl::FailedPreconditionError(
        absl::StrFormat("indexes '%s' and '%s' belong to different %s: %s and %s", a.name, b.name,
                        what, of_a.empty() ? "none" : of_a, of_b.empty() ? "none" : of_b));
  };
  const Manifest& m = x.base->manifest;
  const Manifest& n = y.base->manifest;
  if (m.column_family != n.column_family) {
    return differ("column families", Quoted(m.column_family), Quoted(n.column_family));
  }
  if (!m.database_id.empty() && !n.database_id.empty() && m.database_id != n.database_id) {
    return differ("databases", m.database_id, n.database_id);
  }
  if (x.sequence != y.sequence) {
    return differ("states of the database", absl::StrCat("sequence number ", x.sequence),
                  absl::StrCat(y.sequence, "; catch them up to one state"));
  }
  return absl::OkStatus();
}

// Makes a group of members whose versions belong to one database.
absl::StatusOr<std::shared_ptr<const WholeGroup>> MakeGroup(
    std::vector<IndexGroup::Member> members, const std::vector<IndexVersions>& open,
    const std::shared_ptr<const IndexGroup>& after) {
  std::vector<std::shared_ptr<const IndexVersion>> versions;
  for (size_t i = 0; i < members.size(); ++i) {
    for (const auto& version : open[i].versions) {
      RETURN_IF_ERROR(CheckTogether(members[0], *open[0].versions[0], members[i], *version));
      RETURN_IF_ERROR(version->base->Prove(Topology::Get().Threads(0)));
      versions.push_back(version);
    }
  }
  const auto* const before = dynamic_cast<const WholeGroup*>(after.get());
  ASSIGN_OR_RETURN(std::shared_ptr<const RowSpace> space,
                   RowSpace::Create(versions, before == nullptr ? nullptr : before->space()));
  GroupMembers group;
  for (size_t i = 0; i < members.size(); ++i) {
    const size_t first = group.size(), shards = open[i].versions.size();
    const bool shares_rows = shards > 1 && MayHaveSeveralKeys(members[i].index->spec()) &&
                             !space->HaveDisjointBases(first, first + shards);
    for (size_t s = 0; s < shards; ++s) {
      group.push_back(std::make_unique<GroupMember>(members[i].name, open[i].versions[s], s, shards,
                                                    shares_rows));
    }
  }
  return MakeWholeGroup(std::move(members), std::move(group), std::move(space));
}

// Makes a group of indexes, at least one of them sharded by source: one group per shard.
absl::StatusOr<std::shared_ptr<const IndexGroup>> MakeGroupBySource(
    std::vector<IndexGroup::Member> members, const std::vector<IndexVersions>& open) {
  size_t of_sources = 0;
  while (!open[of_sources].by_source) ++of_sources;
  const size_t shards = open[of_sources].versions.size();
  for (size_t i = 0; i < members.size(); ++i) {
    const size_t sources = open[i].by_source ? open[i].versions.size() : 1;
    if (sources == shards) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("index '%s' has %d sources and '%s' has %d; build both from the same "
                        "sources in the same order",
                        members[of_sources].name, shards, members[i].name, sources));
  }
  std::vector<std::shared_ptr<const WholeGroup>> groups;
  for (size_t s = 0; s < shards; ++s) {
    std::vector<IndexVersions> of_shard;
    for (const IndexVersions& member : open)
      of_shard.push_back({false, false, {member.versions[s]}});
    absl::StatusOr<std::shared_ptr<const WholeGroup>> group = MakeGroup(members, of_shard, nullptr);
    if (!group.ok()) {
      return absl::Status(
          group.status().code(),
          absl::StrFormat("shard %d: %s", s, std::string(group.status().message())));
    }
    groups.push_back(*std::move(group));
  }
  return OverShards(std::move(members), std::move(groups));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const IndexGroup>> CreateIndexGroup(
    std::vector<IndexGroup::Member> members, const std::shared_ptr<const IndexGroup>& after) {
  if (members.empty()) {
    return absl::InvalidArgumentError("IndexGroup::Create: expected at least one index, got none");
  }
  std::vector<IndexVersions> open;
  for (IndexGroup::Member& member : members) {
    if (member.index == nullptr)
      return absl::InvalidArgumentError("IndexGroup::Create: expected an index, got null");
    if (member.name.empty()) member.name = member.index->spec().name;
    if (member.name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a member of a group has no name, and its index's spec has none: %s",
                          member.index->spec().ToString()));
    }
    for (size_t i = 0; i < open.size(); ++i) {
      if (members[i].name == member.name) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "expected distinct names of the indexes in a group, got '%s' twice", member.name));
      }
    }
    ASSIGN_OR_RETURN(IndexVersions opened, OpenMemberOf(member));
    open.push_back(std::move(opened));
  }
  const bool by_source = std::any_of(open.begin(), open.end(),
                                     [](const IndexVersions& member) { return member.by_source; });
  if (by_source) return MakeGroupBySource(std::move(members), open);
  return MakeGroup(std::move(members), open, after);
}

absl::StatusOr<std::shared_ptr<const IndexGroup>> IndexGroup::Create(std::vector<Member> members) {
  return Guarded("making a group of indexes",
                 [&] { return CreateIndexGroup(std::move(members), nullptr); });
}

}  // namespace cairn
