#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/route.h"
#include "cairn/types.h"

namespace cairn {

// Bytes, counts and structure of an open index.
struct IndexStats {
  uint64_t rows = 0;
  uint64_t entries = 0;
  uint64_t distinct_keys = 0;  // of the base
  SequenceNumber sequence = 0;
  uint64_t version = 0;  // 1 for the first build into the directory, then counting
  std::string database_id;
  struct OrderedIndex {
    std::string description;
    uint64_t bytes;            // of memory, beyond the run
    uint64_t huge_page_bytes;  // of these
    uint64_t mapped_bytes;     // of the files, besides: stored leaves that are searched there
  };
  std::vector<OrderedIndex> ordered_indexes;
  std::string fallback;  // why no GPU searches where one was asked for (SearchDevice::kAuto)
  std::vector<RouteStats> routes;
  // What CatchUp has added to the base since it was built, and is not merged into it yet. `rows`
  // and `entries` above are of both together.
  struct Delta {
    uint64_t new_rows = 0;         // that the base lacks
    uint64_t added_entries = 0;    // that the base lacks
    uint64_t removed_entries = 0;  // of the base's
    uint64_t segments = 0;         // sorted runs
    uint64_t bytes = 0;            // of memory
  };
  Delta delta;
  // What aggregates (AggregateRanges) of each column that was asked for take in memory; under an
  // empty name, what counts of keys take and what changes since the base was built take for all.
  struct Aggregates {
    std::string column;
    uint64_t bytes = 0;
  };
  std::vector<Aggregates> aggregates;
  struct Section {
    std::string file, name;
    uint64_t bytes;
  };
  std::vector<Section> sections;  // of every live file
  // Of an index in shards (build.h), in their order; empty for any other. What stands above is of
  // all of them together, `version` its generation, and `sequence` the least of theirs. A row is
  // counted in each shard that has a key of it.
  struct Shard {
    std::string directory;  // within the index's own
    std::string bounds;     // for people: the key range, or which source it is of
    uint64_t rows = 0;
    uint64_t entries = 0;
    SequenceNumber sequence = 0;
    std::string database_id;
  };
  std::vector<Shard> shards;
};

}  // namespace cairn
