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

// Section files: the container of every immutable file of an index. There is a header with a table
// of sections, followed by the sections. A section is a checksummed column of little-endian numbers
// or bytes, which is used directly from the mapping. docs/internals/formats.md describes every
// byte; section_file_writer.h writes them.
namespace cairn {

static_assert(std::endian::native == std::endian::little, "files are mapped, not converted");

// Every section starts at a multiple of this many bytes, as does the end of the file, and the bytes
// between are zero. So a section is readable up to the next such multiple after its end.
inline constexpr uint64_t kSectionAlignment = kCacheLineBytes;

// The max size of the header with its table, in bytes.
inline constexpr uint32_t kMaxHeaderBytes = 1 << 16;

// When the contents of a file's sections are read and checked for consistency.
enum class ContentCheck : uint8_t {
  kNow,    // when the file is opened
  kLater,  // by the caller, before the contents are used
};

// A type of file; the modules that read and write it have constants of it.
struct FileFormat {
  std::string_view name;   // in messages: "run file"
  std::string_view magic;  // its first 8 bytes
  // Files of another major version are refused. Files of a newer minor version are read, and their
  // unknown sections are ignored.
  uint16_t major_version;
  uint16_t minor_version;
  absl::Span<const std::string_view> section_names;  // of section ids 1, 2, ...
  // Names for section ids kFirstExtraSection, kFirstExtraSection + 1, ...
  absl::Span<const std::string_view> extra_section_names = {};
};

// Lower ids belong to the format; others may be added.
inline constexpr uint32_t kFirstExtraSection = 64;

// Bytes 0 to 63 of a file, the same in every version of every format.
struct FileHeader {
  char magic[8];
  uint16_t major_version;
  uint16_t minor_version;
  uint32_t header_bytes;   // of the header and the table: the offset of the first section
  uint32_t section_count;  // records in the table, which follows this header
  uint32_t reserved_a;     // 0
  uint64_t file_size;      // bytes
  uint64_t reserved_b[3];  // 0
  uint64_t checksum;       // XXH3-64 of all header_bytes bytes except these 8
};
static_assert(sizeof(FileHeader) == 64);

// One record of the table. Sections have the table's order. Each starts at the first multiple of
// kSectionAlignment after the one before it.
struct Section {
  uint32_t id;
  uint32_t reserved;  // 0
  uint64_t offset;    // bytes from the file's start
  uint64_t size;      // bytes
  uint64_t checksum;  // XXH3-64 of the section's bytes
};
static_assert(sizeof(Section) == 32);

// The checksum that a header must have; `header` has header_bytes bytes.
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
  // Maps a file (FileSystem::Map). `threads` check sections in parallel; 0 means one per hardware
  // thread. Errors: NotFound: there is no such file; DataLoss, with file, offset, expected and
  // found value: it is damaged; FailedPrecondition: another major version.
  static absl::StatusOr<SectionFile> Open(const std::string& path, const FileFormat& format,
                                          VerifyLevel level, int threads = 0,
                                          FileSystem* files = FileSystem::Posix());

  // As above, for a file's bytes, which must start at a multiple of 64 bytes. `owner` keeps them
  // alive, and `path` is for messages.
  static absl::StatusOr<SectionFile> FromMemory(absl::Span<const char> bytes,
                                                std::shared_ptr<const void> owner, std::string path,
                                                const FileFormat& format, VerifyLevel level,
                                                int threads = 0);

  // The number of threads for reading the whole file, of `wanted` (0: one per hardware thread). It
  // is one for a small file, which takes less time to read than waking another thread.
  int CheckThreads(int wanted) const;

  // Verifies every section's checksum. DataLoss for the first section that differs.
  absl::Status Verify(int threads = 0) const;
  absl::Status VerifySection(const Section& section) const;

  // The section with an id, or null. Ids are unique.
  const Section* Find(uint32_t id) const;
  // The bytes of an element of sections().
  absl::Span<const char> BytesOf(const Section& section) const {
    return bytes_.subspan(section.offset, section.size);
  }
  // Returns a section as `count` numbers of type T, aligned to and readable up to multiples of 64
  // bytes. DataLoss if it is missing or has another size.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> Array(uint32_t id, uint64_t count) const;

  const std::string& path() const { return path_; }
  uint64_t size() const { return bytes_.size(); }
  uint64_t header_checksum() const { return header_checksum_; }
  absl::Span<const Section> sections() const { return sections_; }
  // "keys", or "section 7" if the format has no name for an id.
  std::string SectionName(uint32_t id) const;
  // Keeps the bytes alive, for views that outlive this object.
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
