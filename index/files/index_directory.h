#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "index/files/file_system.h"
#include "index/files/manifest.h"
#include "index/files/section_file.h"

// An index is a directory. It has immutable files, MANIFEST, which lists the live ones, and LOCK,
// which one writer holds. docs/internals/formats.md describes the protocol. After a kill or a power
// loss at any instant, the index is the old or the new version, never a mixture.
namespace cairn {

// The right to change an index's directory, held for the lifetime of the object. Readers do not
// need it, and keep their mapped files through every publish.
//
// Thread-safe: NextFileName and const methods that are documented so. Other methods are called by
// one thread at a time.
class IndexDirectory {
 public:
  // Takes the writer lock in `path`, and creates the directory (not its parents) if it is missing.
  // Removes files of an interrupted writer: *.tmp, and files with names of index files that the
  // manifest does not list. Changes nothing else.
  //
  // Errors: Unavailable, with the holder's process: another writer has the lock; NotFound: the
  // parent is missing; FailedPrecondition: the directory has other files and is no index, or it has
  // a newer format version; DataLoss: the manifest is damaged. `files` must outlive the object.
  static absl::StatusOr<std::unique_ptr<IndexDirectory>> OpenForWrite(
      const std::string& path, FileSystem* files = FileSystem::Posix());

  IndexDirectory(const IndexDirectory&) = delete;
  IndexDirectory& operator=(const IndexDirectory&) = delete;
  // Removes files that were created and not published. If nothing was ever published, removes
  // everything that this object created, including the directory. Writers of files in it must be
  // destroyed before.
  ~IndexDirectory();

  FileSystem* files() const { return files_; }
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const;
  // The published version, or null before the first.
  const std::shared_ptr<const Manifest>& manifest() const { return manifest_; }

  // Returns a name that no file of this index has had: "base-000007.run" for "base" and "run",
  // which must be lower-case letters. The extension "tmp" is for files that live at most as long as
  // this object. Thread-safe.
  std::string NextFileName(std::string_view prefix, std::string_view extension);

  // Makes `next` the index's version, and sets its version and next_file_number. `files` lists all
  // live files; SectionFileWriter has written and finished the new ones. Removes files of the
  // previous version that are no longer listed.
  //
  // On an error the previous version usually stays, and the new files of `next` stay until the
  // destructor. There are two exceptions: the rename took effect although it failed, or the last
  // sync failed. Then `next` is in force, as manifest() reports, but not durable: a power loss may
  // restore the previous version, and nothing is removed until the next Publish. FailedPrecondition
  // if a file's size or header differs from `next`. Throws std::bad_alloc, but only before anything
  // is published.
  absl::Status Publish(Manifest next);

 private:
  IndexDirectory(std::string path, FileSystem* files);

  // Returns false if the previous writer removed the directory concurrently.
  absl::StatusOr<bool> TakeLock();
  absl::Status CheckItIsAnIndex() const;
  absl::Status ReadCurrent();
  absl::Status CheckLiveFile(const ManifestFile& file) const;
  bool IsPublished(const Manifest& next);
  // Removes index files and temporary files that the manifest does not list. Throws std::bad_alloc.
  void RemoveLeftovers() const;

  const std::string path_;
  FileSystem* const files_;
  std::unique_ptr<FileLock> lock_;
  bool made_directory_ = false;
  bool may_clean_ = false;  // the directory is an index or new
  std::shared_ptr<const Manifest> manifest_;
  std::atomic<uint64_t> next_file_number_{1};
};

// Returns the current version of an index's directory; needs no lock. Errors: NotFound if there is
// none, with a note if an interrupted build left files; DataLoss; FailedPrecondition for another
// major format version.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      FileSystem* files = FileSystem::Posix());

// Reads the manifest and calls `open` with it. Tries again, a few times, if `open` returns NotFound
// because a writer has published the next version concurrently.
absl::Status OpenCurrentVersion(const std::string& directory,
                                const std::function<absl::Status(const Manifest&)>& open,
                                FileSystem* files = FileSystem::Posix());

// DataLoss unless `opened` is the file that the manifest lists.
absl::Status CheckIsManifestFile(const ManifestFile& file, const SectionFile& opened);

}  // namespace cairn
