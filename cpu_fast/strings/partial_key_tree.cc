#include "cpu_fast/strings/partial_key_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/guard.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/match_rows.h"
#include "index/run/gallop.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

constexpr size_t kGroup = PartialKeyGroup::kMax;
// Each group is at a different stage of its search, so that one computes while others wait for
// memory. Point queries of Strings/dig16 and /url with 20,000 keys on a Xeon with AVX-512: 27 and
// 49 ns with 4 groups of 32, 28 and 52 with 6 of 32, 29 and 53 with 4 of 64. With more keys than
// the caches hold, the differences are below the noise.
constexpr size_t kGroupsInFlight = 4;

bool HasBit(std::string_view key, uint64_t bit) {
  const uint64_t byte = bit / 8;
  return byte < key.size() && (static_cast<uint8_t>(key[byte]) >> (7 - bit % 8) & 1) != 0;
}

}  // namespace

struct PartialKeyTree::Group {
  // A query whose key differs from the entry that the tree led it to.
  struct Missing {
    uint8_t query;
    Ties ties;
  };

  // The next stage of the group.
  enum class Stage : uint8_t { kIdle, kEnter, kDescend, kReadKeys, kVerify };

  void Start(size_t first_query, absl::Span<const std::string_view> group_queries) {
    first = first_query;
    queries = group_queries;
    missing_count = 0;
    for (size_t j = 0; j < queries.size(); ++j) {
      const std::string_view query = queries[j];
      const char* data = query.data();
      if (query.size() < sizeof(short_keys[j])) {
        std::memset(short_keys[j], 0, sizeof(short_keys[j]));
        if (!query.empty()) std::memcpy(short_keys[j], query.data(), query.size());
        data = short_keys[j];
      }
      descent.keys[j] = {data, std::max(query.size(), sizeof(short_keys[j])) - 8};
    }
    descent.size = queries.size();
  }

  Stage stage = Stage::kIdle;
  size_t first;  // batch position of the first query
  absl::Span<const std::string_view> queries;
  PartialKeyGroup descent;
  bool found[kGroup];
  Missing missing[kGroup];
  size_t missing_count = 0;
  char short_keys[kGroup][8];  // queries of less than eight bytes, padded
};

absl::StatusOr<std::unique_ptr<OrderedIndex>> PartialKeyTree::Build(SortedRun run,
                                                                    Options options) {
  if (run.kind() != PhysicalType::kBytes) {
    return absl::UnimplementedError(
        absl::StrFormat("cpu:partial_key: expected byte-string keys, got %s; use cpu:fast",
                        PhysicalTypeName(run.kind())));
  }
  ASSIGN_OR_RETURN(const SimdLevel chosen, ChooseSimdLevel(options.simd));
  return std::unique_ptr<OrderedIndex>(new PartialKeyTree(std::move(run), chosen, options.hash));
}

PartialKeyTree::PartialKeyTree(SortedRun run, SimdLevel level, bool hash)
    : HostIndex(std::move(run)), level_(level), keys_(this->run().bytes()) {
  if (this->run().empty()) return;
  const int threads = Topology::Get().Threads(0);
  nodes_ = BuildPartialKeyNodes(this->run().bytes(), threads);
  if (hash) hash_ = KeyHash::Build(this->run(), keys_, threads);
}

std::string PartialKeyTree::description() const {
  return absl::StrFormat("cpu:partial_key,%ssimd=%s", hash_.has_value() ? "hash," : "",
                         SimdLevelName(level_));
}

uint64_t PartialKeyTree::memory_bytes() const {
  return nodes_.root.size() * sizeof(uint32_t) + nodes_.nodes.size() * sizeof(PartialKeyNode) +
         (hash_.has_value() ? hash_->memory_bytes() : 0);
}

uint64_t PartialKeyTree::huge_page_bytes() const {
  return nodes_.root.huge_page_bytes() + nodes_.nodes.huge_page_bytes() +
         (hash_.has_value() ? hash_->huge_page_bytes() : 0);
}

PartialKeyTree::Ties PartialKeyTree::TiesAt(uint32_t leaf, Position position) const {
  const PartialKeyNode& node = nodes_.nodes[leaf];
  const size_t behind = position - node.base + 1;
  if (behind == node.entries || node.slots[behind] < kTied) {
    return {position, position + 1, true};
  }
  const uint32_t value = node.slots[behind];
  const uint32_t ties = value & (kMixedTies - 1);
  return {position, node.ties_all() ? node.base + node.entries : position + 1 + ties,
          (value & kMixedTies) == 0};
}

PartialKeyTreeView PartialKeyTree::View(bool rows) const {
  PartialKeyTreeView view;
  view.root_bits = nodes_.root_bits;
  view.root = nodes_.root.data();
  view.nodes = nodes_.nodes.data();
  const BytesColumn& keys = run().bytes();
  if (keys_.length().has_value()) {
    view.wanted[0] = {keys.heap(), *keys_.length()};
  } else if (keys.offsets32() != nullptr) {
    view.wanted[0] = {reinterpret_cast<const char*>(keys.offsets32()), sizeof(uint32_t)};
  } else {
    view.wanted[0] = {reinterpret_cast<const char*>(keys.offsets64()), sizeof(uint64_t)};
  }
  view.wanted[1] =
      rows ? EntryColumn{reinterpret_cast<const char*>(run().row_ids().data()), sizeof(RowId)}
           : EntryColumn{view.wanted[0].data + view.wanted[0].stride, view.wanted[0].stride};
  return view;
}

template <typename Finish>
void PartialKeyTree::ForEachGroup(absl::Span<const std::string_view> queries, bool rows,
                                  Finish finish) const {
  const PartialKeySearch& search = PartialKeySearchFor(level_);
  const PartialKeyTreeView view = View(rows);
  Group groups[kGroupsInFlight];
  size_t next = 0, in_flight = 0;
  do {
    for (Group& group : groups) {
      switch (group.stage) {
        case Group::Stage::kIdle:
          if (next == queries.size()) break;
          group.Start(next, queries.subspan(next, kGroup));
          next += group.queries.size();
          ++in_flight;
          search.look(view, &group.descent);
          group.stage = Group::Stage::kEnter;
          break;
        case Group::Stage::kEnter:
          search.enter(view, &group.descent);
          group.stage = Group::Stage::kDescend;
          break;
        case Group::Stage::kDescend:
          search.step(view, &group.descent);
          if (group.descent.active_size == 0) group.stage = Group::Stage::kReadKeys;
          break;
        case Group::Stage::kReadKeys:
          for (size_t j = 0; j < group.queries.size(); ++j) {
            keys_.PrefetchKey(group.descent.positions[j], group.queries[j].size());
          }
          group.stage = Group::Stage::kVerify;
          break;
        case Group::Stage::kVerify:
          Verify(&group);
          finish(&group);
          group.stage = Group::Stage::kIdle;
          --in_flight;
          break;
      }
    }
  } while (next < queries.size() || in_flight > 0);
}

void PartialKeyTree::Verify(Group* group) const {
  TieSearch searches[kGroup];
  size_t count = 0;
  for (size_t j = 0; j < group->queries.size(); ++j) {
    const Position position = group->descent.positions[j];
    group->found[j] = Equal(keys_[position], group->queries[j]);
    if (group->found[j]) continue;
    const Ties ties = TiesAt(group->descent.nodes[j], position);
    const auto query = static_cast<uint8_t>(j);
    group->missing[group->missing_count++] = {query, ties};
    if (ties.last - ties.first == 1) continue;
    // The query may belong between the ties.
    if (!ties.same_bits || FirstDifferentBit(group->queries[j], keys_[position]) == kNoBit) {
      searches[count++] = {query, ties};
    }
  }
  SearchTies(absl::MakeConstSpan(searches, count), group);
}

void PartialKeyTree::SearchTies(absl::Span<const TieSearch> wanted, Group* group) const {
  struct Search {
    uint8_t query;
    Position low, high;              // the lower bound is in [low, high]
    size_t low_shared, high_shared;  // bytes shared with the keys before `low` and at `high`
    int probes;

    // The next key to compare. The ends come first, because most missing queries are outside them.
    Position Next() const { return probes == 0 ? low : probes == 1 ? high - 1 : Middle(); }
    Position Middle() const { return low + (high - low) / 2; }
  };
  Search searches[kGroup];
  size_t count = 0;
  for (const TieSearch& one : wanted) {
    searches[count++] = {one.query, one.ties.first, one.ties.last, 0, 0, 0};
  }
  while (count > 0) {
    for (size_t s = 0; s < count; ++s) keys_.PrefetchOffset(searches[s].Next());
    for (size_t s = 0; s < count; ++s) {
      const Search& search = searches[s];
      Prefetch(run().bytes().heap() + keys_.Offset(search.Next()) +
               std::min(search.low_shared, search.high_shared));
    }
    size_t still_searching = 0;
    for (size_t s = 0; s < count; ++s) {
      Search search = searches[s];
      const std::string_view query = group->queries[search.query], key = keys_[search.Next()];
      const size_t shared =
          CommonPrefix(query, key, std::min(search.low_shared, search.high_shared));
      const int order = CompareBehind(key, query, shared);
      if (order < 0) {
        search.low = search.Next() + 1;
        search.low_shared = shared;
      } else {
        search.high = search.Next();
        search.high_shared = shared;
        group->found[search.query] |= order == 0;
      }
      ++search.probes;
      if (search.low < search.high) {
        searches[still_searching++] = search;
      } else {
        group->descent.positions[search.query] = search.low;
      }
    }
    count = still_searching;
  }
}

void PartialKeyTree::PlaceMissing(Group* group) const {
  const PartialKeySearch& search = PartialKeySearchFor(level_);
  const PartialKeyTreeView view = View(false);
  PartialKeyGroup& descent = group->descent;
  // Searches for prefixes, first within the leaf. If a result is at an end of the leaf's range, the
  // leaf may not have all keys with the prefix. The search is then repeated from the root.
  PartialKeyGroup prefixes;
  uint8_t queries[kGroup];
  const auto add = [&](size_t j, uint32_t leaf, const KeyPrefix& prefix) {
    const size_t p = prefixes.size++;
    queries[p] = static_cast<uint8_t>(j);
    prefixes.keys[p] = descent.keys[j];
    prefixes.prefixes[p] = prefix;
    prefixes.nodes[p] = leaf;
  };
  for (size_t m = 0; m < group->missing_count; ++m) {
    const Group::Missing& missing = group->missing[m];
    const size_t j = missing.query;
    const Position at = descent.positions[j];
    if (group->found[j] || (at != missing.ties.first && at != missing.ties.last)) continue;
    // The query is before or after all the ties. The nearest tie shares the most bits with
    // it.
    const Position neighbour = at == missing.ties.first ? at : at - 1;
    const std::string_view query = group->queries[j], key = keys_[neighbour];
    const uint64_t bit = FirstDifferentBit(query, key);
    if (bit == kNoBit) {
      descent.positions[j] = query.size() < key.size() ? neighbour : neighbour + 1;
    } else {
      add(j, descent.nodes[j], {bit, HasBit(query, bit)});
    }
  }
  search.find_prefix_below(view, &prefixes);
  PlaceAtPrefixes(prefixes, queries, group);
  const size_t searched = std::exchange(prefixes.size, 0);
  for (size_t p = 0; p < searched; ++p) {
    const uint32_t leaf = prefixes.nodes[p];
    const PartialKeyNode& node = nodes_.nodes[leaf];
    const KeyPrefix prefix = prefixes.prefixes[p];
    if (descent.positions[queries[p]] == (prefix.ones ? node.base + node.entries : node.base)) {
      add(queries[p], leaf, prefix);
    }
  }
  search.find_prefix(view, &prefixes);
  PlaceAtPrefixes(prefixes, queries, group);
}

void PartialKeyTree::PlaceAtPrefixes(const PartialKeyGroup& prefixes,
                                     absl::Span<const uint8_t> queries, Group* group) const {
  TieSearch searches[kGroup];
  size_t count = 0;
  for (size_t p = 0; p < prefixes.size; ++p) {
    const Ties ties = TiesAt(prefixes.nodes[p], prefixes.positions[p]);
    group->descent.positions[queries[p]] = prefixes.prefixes[p].ones ? ties.last : ties.first;
    // Only some of the ties may have the prefix.
    if (!ties.same_bits) searches[count++] = {queries[p], ties};
  }
  SearchTies(absl::MakeConstSpan(searches, count), group);
}

void PartialKeyTree::LowerBound(KeyBatch keys, Position* positions) const {
  ForEachGroup(keys.bytes(), false, [&](Group* group) {
    if (group->missing_count > 0) PlaceMissing(group);
    std::copy_n(group->descent.positions, group->queries.size(), positions + group->first);
  });
}

void PartialKeyTree::FindFirst(KeyBatch keys, RowId* row_ids) const {
  if (hash_.has_value()) return hash_->FindFirst(keys.bytes(), row_ids);
  const RowId* const rows = run().row_ids().data();
  ForEachGroup(keys.bytes(), true, [&](Group* group) {
    for (size_t j = 0; j < group->queries.size(); ++j) {
      row_ids[group->first + j] = group->found[j] ? rows[group->descent.positions[j]] : kNoRow;
    }
  });
}

void PartialKeyTree::Contains(KeyBatch keys, bool* found) const {
  if (hash_.has_value()) return hash_->Contains(keys.bytes(), found);
  ForEachGroup(keys.bytes(), false, [&](Group* group) {
    std::copy_n(group->found, group->queries.size(), found + group->first);
  });
}

absl::Status PartialKeyTree::Find(const Batch& batch) const {
  if (!hash_.has_value()) return HostIndex::Find(batch);
  FindResult* const matches = batch.matches;
  RETURN_IF_ERROR(BeginMatches(run().kind(), batch.size(), matches));
  return Guarded("growing a result", [&] {
    KeyHash::Entry entries[kQueryChunk];
    for (size_t first = 0; first < batch.size(); first += kQueryChunk) {
      const auto queries = batch.keys.bytes().subspan(first, kQueryChunk);
      hash_->Find(queries, entries);
      for (size_t i = 0; i < queries.size(); ++i) {
        const KeyHash::Entry& entry = entries[i];
        if (entry.first != kNoRow) {
          const size_t end =
              Gallop(entry.first, run().size(), [&](size_t p) { return keys_[p] == queries[i]; });
          const RowId* const rows = run().row_ids().data();
          matches->row_ids.insert(matches->row_ids.end(), rows + entry.first, rows + end);
        } else if (entry.row != kNoRow) {
          matches->row_ids.push_back(entry.row);
        }
        matches->offsets[first + i + 1] = matches->row_ids.size();
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace cairn
