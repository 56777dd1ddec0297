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

// The directory of an index in shards: SHARDS, which names the live shards' directories, LOCK,
// which one writer holds, and the shards. docs/internals/formats.md tells the protocol: a process
// killed at any instant, or a machine that loses power, leaves the generation before or the one
// after, whole.
namespace cairn {

// What a shard's manifest is known by.
uint64_t ManifestChecksum(const Manifest& manifest);

// What a SHARDS file says of an index in `path`, of which this is the manifest: but its bounds.
ShardRecord RecordOf(std::string directory, const Manifest& manifest);

// The generation that a directory holds now. NotFound where it holds none; DataLoss;
// FailedPrecondition for another major version. Needs no lock.
absl::StatusOr<ShardManifest> ReadShardManifest(const std::string& directory, FileSystem* files);

// The right to change an index in shards, held as long as the object lives. Readers need none. Used
// by one thread at a time.
class ShardDirectory {
 public:
  // Takes the writer's place in `path`, making the directory (not its parents) where it is missing.
  // Unavailable while another writer has it; FailedPrecondition where the directory holds anything
  // but an index in shards, or a newer version of the format; DataLoss where SHARDS is damaged.
  static absl::StatusOr<std::unique_ptr<ShardDirectory>> OpenForWrite(const std::string& path,
                                                                      FileSystem* files);
  ShardDirectory(const ShardDirectory&) = delete;
  ShardDirectory& operator=(const ShardDirectory&) = delete;
  // Where nothing was ever published and nothing is in it, the directory goes if this made it.
  ~ShardDirectory();

  FileSystem* files() const { return files_; }
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const;
  // The generation that is published, or null before the first.
  const ShardManifest* manifest() const { return manifest_.get(); }

  // A directory's name that no attempt before had, and none will have: "shard-3.1f00c0ffee15900d",
  // of "shard" and 3.
  static std::string NewName(std::string_view prefix, size_t number);

  // Makes `next` the index's generation; its number is set here. The shards' files must be durable.
  // On an error the generation before stays; only where the very last sync failed is `next` in
  // force without being durable. Throws std::bad_alloc, before anything is published.
  absl::Status Publish(ShardManifest next);

  // Removes directories whose names NewName makes and that the published generation does not name.
  // Whoever builds others in here must have ended.
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

// Removes a directory with what is in it, two levels deep at most; what cannot be removed stays.
void RemoveTree(FileSystem* files, const std::string& path);

// Gives the file `path` these bytes at one instant, durably: writes and syncs `temporary`, which is
// in the same directory, syncs that so that names made before are durable, renames, and syncs it
// again.
absl::Status ReplaceFile(FileSystem* files, const std::string& path, const std::string& temporary,
                         std::string_view bytes);

}  // namespace cairn
