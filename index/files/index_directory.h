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

// An index is a directory: immutable files, MANIFEST, which names the live ones, and LOCK, which
// one writer holds. docs/internals/formats.md tells the protocol. A process killed at any instant,
// or a machine that loses power, leaves the version before or the version after, never a mixture.
namespace cairn {

// The right to change an index's directory, held as long as the object lives. Readers need none,
// and keep what they have mapped through every publish.
//
// Thread-safe: NextFileName and the const methods that say so; else one thread at a time.
class IndexDirectory {
 public:
  // Takes the writer's place in `path`, making the directory (not its parents) where it is missing,
  // and removes what an interrupted writer left: files of an index's names that the manifest does
  // not name, and *.tmp. Nothing else is touched.
  //
  // Unavailable, naming the holder's process, while another writer has it; NotFound where the
  // parent is missing; FailedPrecondition where the directory has files but is no index, or a newer
  // version of the format; DataLoss where its manifest is damaged. `files` must outlive it.
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
  // The version that is published, or null before the first.
  const std::shared_ptr<const Manifest>& manifest() const { return manifest_; }

  // A name that no file of this index has had: "base-000007.run" of "base" and "run", both of
  // lower-case letters. With the extension "tmp" for files that live no longer than this object.
  // Thread-safe.
  std::string NextFileName(std::string_view prefix, std::string_view extension);

  // Makes `next` the index's version: `files` names all live files, of which the new ones were
  // written by SectionFileWriter and finished. Its version and next_file_number are set here. Files
  // of the version before that are no longer named are removed.
  //
  // On an error the version before stays, and `next`'s new files with it until the destructor; only
  // where the renaming was done although it failed, or the very last sync failed, has `next` come
  // into force, as manifest() says, without being durable: a loss of power may bring the version
  // before back, and nothing is removed until the next Publish. FailedPrecondition where a file's
  // size or header is not what `next` says. Throws std::bad_alloc, before anything is published.
  absl::Status Publish(Manifest next);

 private:
  IndexDirectory(std::string path, FileSystem* files);

  // False where the directory was removed meanwhile, by the writer before.
  absl::StatusOr<bool> TakeLock();
  absl::Status CheckItIsAnIndex() const;
  absl::Status ReadCurrent();
  absl::Status CheckLiveFile(const ManifestFile& file) const;
  bool IsPublished(const Manifest& next);
  // Removes index files and temporary ones that the manifest does not name. Throws std::bad_alloc.
  void RemoveLeftovers() const;

  const std::string path_;
  FileSystem* const files_;
  std::unique_ptr<FileLock> lock_;
  bool made_directory_ = false;
  bool may_clean_ = false;  // the directory is an index, or new
  std::shared_ptr<const Manifest> manifest_;
  std::atomic<uint64_t> next_file_number_{1};
};

// The version that an index's directory holds now. NotFound where it holds none, saying whether an
// interrupted build left files; DataLoss; FailedPrecondition for another major version of the
// format. Needs no lock.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      FileSystem* files = FileSystem::Posix());

// Reads the manifest and calls `open` with it; again, a few times, where `open` finds no file
// (NotFound) because a writer has published the next version meanwhile.
absl::Status OpenCurrentVersion(const std::string& directory,
                                const std::function<absl::Status(const Manifest&)>& open,
                                FileSystem* files = FileSystem::Posix());

// DataLoss unless `opened` is the file that the manifest means.
absl::Status CheckIsManifestFile(const ManifestFile& file, const SectionFile& opened);

}  // namespace cairn
