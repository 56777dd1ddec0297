#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/c.h"
#include "cairn/key_codec.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"

// The structures that the C API's handles point to.

struct cairn_cancel {
  std::atomic<bool> set{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
};

struct cairn_source {
  std::unique_ptr<cairn::SnapshotSource> source;
};

// An index of a database or over columns: one of `secondary` and `ordered` is null.
struct cairn_index {
  cairn_index(std::shared_ptr<cairn::SecondaryIndex> opened, cairn::KeyCodec key_codec)
      : secondary(std::move(opened)), codec(std::move(key_codec)) {}
  cairn_index(std::unique_ptr<cairn::OrderedIndex> made, cairn::KeyCodec key_codec)
      : ordered(std::move(made)), codec(std::move(key_codec)) {}

  const std::shared_ptr<cairn::SecondaryIndex> secondary;
  const std::unique_ptr<cairn::OrderedIndex> ordered;
  const cairn::KeyCodec codec;

  // Returns whether rows are GlobalRowIds.
  bool in_shards() const { return secondary != nullptr && secondary->in_shards(); }
};

struct cairn_matches {
  cairn::FindResult matches;
  std::optional<cairn::KeyCodec> codec;  // of matches.keys, if there are any
  std::vector<std::string> columns;      // the names of matches.columns
  bool in_shards = false;                // copied from the index
};

struct cairn_rows {
  cairn::FetchResult rows;
  bool in_shards = false;
};

namespace cairn {

// Checks that an index is of a database. InvalidArgument: `index` is null. FailedPrecondition: it
// is an index over columns.
absl::Status CheckOfDatabase(const cairn_index* index);

}  // namespace cairn
