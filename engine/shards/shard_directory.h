#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/shards/shard_manifest.h"
#include "index/files/file_system.h"
#include "index/files/manifest.h"

// The directory of a sharded index: SHARDS, which lists the live shards' directories, LOCK, which
// one writer holds, and the shards. docs/internals/formats.md describes the protocol: after a kill
// or a power loss at any instant, the index is the whole old or new generation.
namespace cairn {

// A checksum that identifies a shard's manifest.
uint64_t ManifestChecksum(const Manifest& manifest);

// The record of an index with this manifest in a SHARDS file, without bounds.
ShardRecord RecordOf(std::string directory, const Manifest& manifest);

// Reads the current generation of a directory; needs no lock. Errors: NotFound: there is none;
// DataLoss; FailedPrecondition: another major version.
absl::StatusOr<ShardManifest> ReadShardManifest(const std::string& directory, FileSystem* files);

// The right to change a sharded index, held for the lifetime of the object. Readers do not need it.
// Used by one thread at a time.
class ShardDirectory {
 public:
  // Takes the writer lock in `path`, and creates the directory (not its parents) if it is missing.
  // Errors: Unavailable: another writer has the lock; FailedPrecondition: the directory contains
  // anything but a sharded index, or a newer format version; DataLoss: SHARDS is damaged.
  static absl::StatusOr<std::unique_ptr<ShardDirectory>> OpenForWrite(const std::string& path,
                                                                      FileSystem* files);
  ShardDirectory(const ShardDirectory&) = delete;
  ShardDirectory& operator=(const ShardDirectory&) = delete;
  // If nothing was ever published and it is empty, removes the directory that this object created.
  ~ShardDirectory();

  FileSystem* files() const { return files_; }
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const;
  // The published generation, or null before the first.
  const ShardManifest* manifest() const { return manifest_.get(); }

  // Returns a new directory name, unique among all attempts: "shard-3.1f00c0ffee15900d" for "shard"
  // and 3.
  static std::string NewName(std::string_view prefix, size_t number);

  // Makes `next` the index's generation, and sets its number. The shards' files must be durable. On
  // an error the previous generation stays; if only the last sync failed, `next` is in force
  // without being durable. Throws std::bad_alloc, but only before anything is published.
  absl::Status Publish(ShardManifest next);

  // Removes directories with names from NewName that the published generation does not list. Builds
  // of other shards in this directory must have ended.
  void RemoveLeftovers();

 private:
  ShardDirectory(std::string path, FileSystem* files) : path_(std::move(path)), files_(files) {}

  absl::Status CheckContents() const;

  const std::string path_;
  FileSystem* const files_;
  std::unique_ptr<FileLock> lock_;
  bool made_directory_ = false;
  bool may_clean_ = true;
  std::unique_ptr<const ShardManifest> manifest_;
};

// Removes a directory with its contents, at most two levels deep. Files that cannot be removed
// remain.
void RemoveTree(FileSystem* files, const std::string& path);

// Replaces the contents of the file `path` atomically and durably. Writes and syncs `temporary`,
// which must be in the same directory, syncs the directory so that earlier names are durable,
// renames, and syncs it again.
absl::Status ReplaceFile(FileSystem* files, const std::string& path, const std::string& temporary,
                         std::string_view bytes);

}  // namespace cairn
