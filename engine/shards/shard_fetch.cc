#include "engine/shards/shard_fetch.h"

#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/shards/shard_rows.h"
#include "engine/version/fetch.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// The rows of `matches` that were not returned for their ranges, each once for a range, however
// many shards have it.
absl::Status CountStale(const ShardVersions& versions, const FindResult& matches,
                        FetchResult* rows) {
  StringList primary_keys;
  RETURN_IF_ERROR(ShardedPrimaryKeys(versions, matches.shards, matches.row_ids, &primary_keys));
  std::unordered_set<std::string_view> distinct;  // of the range at hand
  rows->stale = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    distinct.clear();
    for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
      distinct.insert(primary_keys[j]);
    }
    rows->stale += distinct.size() - (rows->offsets[i + 1] - rows->offsets[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FetchShardedRows(const ShardVersions& versions, const SnapshotSource& source,
                              const RangeBatch& ranges, const FindResult& matches,
                              FetchResult* rows) {
  std::vector<FetchResult> of_shard(versions.size());
  rows->stale = 0;
  for (uint32_t s = 0; s < versions.size(); ++s) {
    FindResult part;
    part.offsets.assign(1, 0);
    for (size_t i = 0; i < matches.size(); ++i) {
      for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
        if (matches.shards[j] == s) part.row_ids.push_back(matches.row_ids[j]);
      }
      part.offsets.push_back(part.row_ids.size());
    }
    RETURN_IF_ERROR(FetchRows(*versions[s], source, ranges, part, &of_shard[s]));
    rows->stale += of_shard[s].stale;
  }

  rows->offsets.assign(1, 0);
  rows->row_ids.clear();
  rows->shards.clear();
  rows->primary_keys.Clear();
  rows->values.Clear();
  std::vector<uint64_t> next(versions.size());
  std::unordered_set<std::string_view> returned;  // for the range at hand
  for (size_t i = 0; i < matches.size(); ++i) {
    returned.clear();
    for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
      const uint32_t s = matches.shards[j];
      const FetchResult& from = of_shard[s];
      uint64_t& at = next[s];
      // Those that did not come are stale, or came for the range before.
      if (at == from.offsets[i + 1] || from.row_ids[at] != matches.row_ids[j]) continue;
      const uint64_t row = at++;
      // A row with several keys may be in several shards.
      if (!returned.insert(from.primary_keys[row]).second) continue;
      rows->row_ids.push_back(from.row_ids[row]);
      rows->shards.push_back(s);
      rows->primary_keys.Append(from.primary_keys[row]);
      rows->values.Append(from.values[row]);
    }
    rows->offsets.push_back(rows->row_ids.size());
  }
  return rows->stale == 0 ? absl::OkStatus() : CountStale(versions, matches, rows);
}

}  // namespace cairn
