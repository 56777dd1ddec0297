#include "engine/shards/shard_stats.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"

namespace cairn {
namespace {

// Whether the last key of one base is the first key of another.
bool ShareKey(const Base& before, const Base& after) {
  if (before.run().empty() || after.run().empty()) return false;
  EncodedKeys keys(before.run().kind());
  AppendKey(before.run(), before.run().size() - 1, &keys);
  AppendKey(after.run(), 0, &keys);
  return OrderedKeyBytes(keys, 0) == OrderedKeyBytes(keys, 1);
}

void AddOrderedIndexes(const IndexStats& of_one, IndexStats* all) {
  for (const IndexStats::OrderedIndex& index : of_one.ordered_indexes) {
    const auto at =
        std::find_if(all->ordered_indexes.begin(), all->ordered_indexes.end(),
                     [&](const auto& other) { return other.description == index.description; });
    if (at == all->ordered_indexes.end()) {
      all->ordered_indexes.push_back(index);
    } else {
      at->bytes += index.bytes;
      at->huge_page_bytes += index.huge_page_bytes;
      at->mapped_bytes += index.mapped_bytes;
    }
  }
}

void AddRoutes(const IndexStats& of_one, IndexStats* all) {
  for (const RouteStats& route : of_one.routes) {
    const auto at = std::find_if(all->routes.begin(), all->routes.end(),
                                 [&](const auto& other) { return other.route == route.route; });
    if (at == all->routes.end()) {
      all->routes.push_back(route);
      continue;
    }
    at->batches += route.batches;
    at->queries += route.queries;
    at->bytes += route.bytes;
    at->failures += route.failures;
    at->busy += route.busy;
    for (size_t b = 0; b < RouteStats::kBuckets; ++b) {
      at->response_times[b] += route.response_times[b];
    }
  }
}

void AddDelta(const IndexStats::Delta& of_one, IndexStats::Delta* all) {
  all->new_rows += of_one.new_rows;
  all->added_entries += of_one.added_entries;
  all->removed_entries += of_one.removed_entries;
  all->segments += of_one.segments;
  all->bytes += of_one.bytes;
}

// Adds to the entry of the same column.
void AddAggregates(const IndexStats::Aggregates& more, IndexStats* stats) {
  const auto at = std::find_if(stats->aggregates.begin(), stats->aggregates.end(),
                               [&](const auto& other) { return other.column == more.column; });
  if (at == stats->aggregates.end()) {
    stats->aggregates.push_back(more);
  } else {
    at->bytes += more.bytes;
  }
}

}  // namespace

IndexStats StatsOf(const IndexVersion& version) {
  const Base& base = *version.base;
  const DeltaStats delta = version.delta->Stats();
  IndexStats stats;
  stats.rows = delta.rows;
  stats.entries = delta.entries;
  stats.distinct_keys = base.run_file.properties.distinct_keys;
  stats.sequence = version.sequence;
  stats.version = base.manifest.version;
  stats.database_id = base.manifest.database_id;
  for (const ResidentIndex& resident : base.resident.indexes) {
    const OrderedIndex& index = *resident.index;
    stats.ordered_indexes.push_back(
        {index.description(), index.memory_bytes(), index.huge_page_bytes(), index.mapped_bytes()});
  }
  stats.fallback = base.resident.fallback;
  stats.routes = base.router->router().Stats();
  stats.delta = {delta.new_rows, delta.added_entries, delta.removed_entries, delta.segments,
                 delta.bytes};
  stats.aggregates = base.aggregates->Stats();
  for (const auto& [file, prefix] :
       {std::pair{&base.run_file.file, "base"}, std::pair{&base.rows_file.file, "rows"}}) {
    for (const Section& section : file->sections()) {
      stats.sections.push_back(
          {base.manifest.FindFile(prefix)->name, file->SectionName(section.id), section.size});
    }
  }
  if (base.columns_file.has_value()) {
    const SectionFile& file = base.columns_file->file;
    for (const Section& section : file.sections()) {
      stats.sections.push_back(
          {base.manifest.FindFile("columns")->name, file.SectionName(section.id), section.size});
    }
  }
  for (const ManifestFile& file : base.manifest.files) {
    if (absl::StartsWith(file.name, "delta-")) {
      stats.sections.push_back({file.name, "changes", file.size});
    }
  }
  return stats;
}

std::string ShardBoundsText(const KeyCodec& codec, const ShardManifest& manifest, size_t shard) {
  const ShardRecord& record = manifest.shards[shard];
  if (manifest.mode == ShardMode::kSource) return absl::StrFormat("source %d", shard);
  return absl::StrFormat("[%s, %s)", record.lower ? BoundText(codec, *record.lower) : "",
                         record.upper ? BoundText(codec, *record.upper) : "");
}

IndexStats ShardedStats(const ShardSet& shards, const ShardVersions& versions) {
  const ShardManifest& manifest = shards.manifest();
  IndexStats all;
  all.version = manifest.generation;
  for (size_t s = 0; s < versions.size(); ++s) {
    IndexStats one = StatsOf(*versions[s]);
    all.rows += one.rows;
    all.entries += one.entries;
    all.distinct_keys += one.distinct_keys;
    if (manifest.mode == ShardMode::kKeyRange && s > 0 &&
        ShareKey(*versions[s - 1]->base, *versions[s]->base)) {
      --all.distinct_keys;
    }
    all.sequence = s == 0 ? one.sequence : std::min(all.sequence, one.sequence);
    if (s == 0) all.database_id = one.database_id;
    if (all.database_id != one.database_id) all.database_id.clear();
    if (all.fallback.empty()) all.fallback = one.fallback;
    AddOrderedIndexes(one, &all);
    AddRoutes(one, &all);
    AddDelta(one.delta, &all.delta);
    for (const IndexStats::Aggregates& more : one.aggregates) AddAggregates(more, &all);
    for (IndexStats::Section& section : one.sections) {
      section.file = manifest.shards[s].directory + "/" + section.file;
      all.sections.push_back(std::move(section));
    }
    all.shards.push_back({manifest.shards[s].directory,
                          ShardBoundsText(shards.codec(), manifest, s), one.rows, one.entries,
                          one.sequence, one.database_id});
  }
  if (const uint64_t bytes = shards.aggregates().memory_bytes(); bytes != 0) {
    AddAggregates({"", bytes}, &all);
  }
  return all;
}

}  // namespace cairn
