#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/files/file_system.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/status_macros.h"

// Section files: the container of every immutable file of an index. A header with a table of
// sections, then the sections, each a checksummed column of little-endian numbers or bytes that is
// used as it lies in the mapping. docs/internals/formats.md describes every byte;
// section_file_writer.h writes them.
namespace cairn {

static_assert(std::endian::native == std::endian::little, "files are mapped, not converted");

// Every section starts at a multiple of this many bytes, as does the end of the file; the bytes
// between are zero. So a section is readable up to the next such multiple behind its end.
inline constexpr uint64_t kSectionAlignment = kCacheLineBytes;

// The longest header with its table, in bytes.
inline constexpr uint32_t kMaxHeaderBytes = 1 << 16;

// When what a file's sections hold is read through, to see that they agree.
enum class ContentCheck : uint8_t {
  kNow,    // while it is opened
  kLater,  // by the caller, before anything relies on it
};

// One type of file. Constants of the modules that read and write them.
struct FileFormat {
  std::string_view name;   // in messages: "run file"
  std::string_view magic;  // its first 8 bytes
  // A file of another major version is refused; one of a newer minor version is read, its unknown
  // sections left alone.
  uint16_t major_version;
  uint16_t minor_version;
  absl::Span<const std::string_view> section_names;  // of section ids 1, 2, ...
  // Of ids kFirstExtraSection and so on.
  absl::Span<const std::string_view> extra_section_names = {};
};

// Sections of ids below it are a format's own; others may be added.
inline constexpr uint32_t kFirstExtraSection = 64;

// Bytes 0 to 63 of a file, the same in every version of every format.
struct FileHeader {
  char magic[8];
  uint16_t major_version;
  uint16_t minor_version;
  uint32_t header_bytes;   // of the header with the table: where the first section starts
  uint32_t section_count;  // records in the table, which follows this header
  uint32_t reserved_a;     // 0
  uint64_t file_size;      // bytes
  uint64_t reserved_b[3];  // 0
  uint64_t checksum;       // XXH3-64 of all header_bytes bytes but these 8
};
static_assert(sizeof(FileHeader) == 64);

// One record of the table. Sections stand in the table's order, each at the first multiple of
// kSectionAlignment behind the one before it.
struct Section {
  uint32_t id;
  uint32_t reserved;  // 0
  uint64_t offset;    // bytes from the file's start
  uint64_t size;      // bytes
  uint64_t checksum;  // XXH3-64 of the section's bytes
};
static_assert(sizeof(Section) == 32);

// The checksum that a header should carry; `header` holds header_bytes bytes.
uint64_t HeaderChecksum(absl::Span<const char> header);

// The next multiple of kSectionAlignment; requires size <= UINT64_MAX - 63.
constexpr uint64_t AlignSection(uint64_t size) {
  return (size + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

// A section file that is mapped or in memory. Immutable and thread-safe; copies share the memory.
//
// Whatever a file contains, opening it ends in an error or in disjoint sections inside of the file.
// kMetadata checks the header, the table and the padding, and trusts the sections' bytes. kFull
// also verifies these against their checksums, and so reads the whole file.
class SectionFile {
 public:
  // Maps a file (FileSystem::Map). NotFound where there is none; DataLoss, naming file, offset,
  // expected and found, where it is damaged; FailedPrecondition where its major version is another.
  // `threads` check sections side by side; 0: one a hardware thread.
  static absl::StatusOr<SectionFile> Open(const std::string& path, const FileFormat& format,
                                          VerifyLevel level, int threads = 0,
                                          FileSystem* files = FileSystem::Posix());

  // The same for a file's bytes, which start at a multiple of 64 bytes; `owner` keeps them alive,
  // and `path` is for messages.
  static absl::StatusOr<SectionFile> FromMemory(absl::Span<const char> bytes,
                                                std::shared_ptr<const void> owner, std::string path,
                                                const FileFormat& format, VerifyLevel level,
                                                int threads = 0);

  // Threads that what reads the whole file should take, of `wanted` (0: one a hardware thread): one
  // for a small file, which it takes less time to read than to wake another.
  int CheckThreads(int wanted) const;

  // Checks every section against its checksum. DataLoss names the first that differs.
  absl::Status Verify(int threads = 0) const;
  absl::Status VerifySection(const Section& section) const;

  // The section of an id, or null. Ids are unique.
  const Section* Find(uint32_t id) const;
  // The bytes of one of sections().
  absl::Span<const char> BytesOf(const Section& section) const {
    return bytes_.subspan(section.offset, section.size);
  }
  // A section as `count` numbers of type T, aligned to and readable up to multiples of 64 bytes.
  // DataLoss where it is missing or of another size.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> Array(uint32_t id, uint64_t count) const;

  const std::string& path() const { return path_; }
  uint64_t size() const { return bytes_.size(); }
  uint64_t header_checksum() const { return header_checksum_; }
  absl::Span<const Section> sections() const { return sections_; }
  // "keys", or "section 7" where the format has no name for an id.
  std::string SectionName(uint32_t id) const;
  // What keeps the bytes alive, for views that outlive this object.
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  SectionFile() = default;

  absl::Status ReadHeader();
  absl::Status ReadTable(const FileHeader& header);
  absl::StatusOr<absl::Span<const char>> Exactly(uint32_t id, uint64_t count, size_t width) const;
  absl::Status Damaged(uint64_t offset, std::string_view what) const;

  std::string path_;
  FileFormat format_;
  absl::Span<const char> bytes_;
  std::vector<Section> sections_;
  uint64_t header_checksum_ = 0;
  std::shared_ptr<const void> owner_;
};

template <typename T>
absl::StatusOr<absl::Span<const T>> SectionFile::Array(uint32_t id, uint64_t count) const {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kSectionAlignment);
  ASSIGN_OR_RETURN(absl::Span<const char> bytes, Exactly(id, count, sizeof(T)));
  return absl::Span<const T>(reinterpret_cast<const T*>(bytes.data()), count);
}

}  // namespace cairn
