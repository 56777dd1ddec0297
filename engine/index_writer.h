#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/secondary_index.h"
#include "engine/delta_writer.h"
#include "engine/index_version.h"
#include "engine/row_updates.h"
#include "engine/update_log.h"

namespace cairn {

// Makes an open index's versions: from its files, by updates, and by merging both into a new base.
// Readers take the version of the moment and keep it as long as they need it.
//
// Thread-safe. Updates come one after the other; a merge works beside them, and makes them wait only
// while its base takes the old one's place.
class IndexWriter {
 public:
  // Maps the live files in `directory`, and applies what is stored of updates. Errors as
  // SecondaryIndex::Open's.
  static absl::StatusOr<std::unique_ptr<IndexWriter>> Open(const std::string& directory,
                                                           const OpenOptions& options);

  std::shared_ptr<const IndexVersion> version() const;

  // The next version: the latest one after `updates`, which take it to the database's state at
  // `sequence`. `position` is where in the log to go on from there. AlreadyExists, naming key and
  // rows, where a unique index would get a key twice; other errors as DeltaWriter::Apply's. After an
  // error the version is what it was.
  absl::Status Apply(const RowUpdates& updates, SequenceNumber sequence, LogPosition position);

  // Where the log goes on behind the latest version's sequence number.
  LogPosition position() const;

  // Writes what came since the last call, so that the next Open begins with the latest version.
  // Errors as CatchUp's.
  absl::Status Store();

  // SecondaryIndex's methods of these names.
  absl::Status Merge(const MergeOptions& options);
  bool MergePays() const;

 private:
  IndexWriter() = default;

  OpenOptions options_;
  std::mutex apply_mutex_;  // held by Apply, and by Merge at its end
  std::unique_ptr<DeltaWriter> deltas_;  // over the latest version's base

  mutable std::mutex version_mutex_;  // guards what follows
  std::shared_ptr<const IndexVersion> version_;
  LogPosition position_;
};

}  // namespace cairn
