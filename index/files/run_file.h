#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "index/files/file_system.h"
#include "index/files/section_file.h"
#include "index/files/section_file_writer.h"
#include "index/run/entry_sink.h"

// Run files: a SortedRun on disk. A run file is a section file (section_file.h) with the columns in
// the form that searches use. docs/internals/formats.md describes the bytes.
namespace cairn {

// The 40 bytes of a run file's properties section.
struct RunProperties {
  uint32_t key_kind;      // a PhysicalType
  uint32_t offset_bytes;  // bytes per offset into the key heap: 4 or 8; 0 for fixed-width keys
  uint64_t entries;       // at most kMaxEntries
  uint64_t distinct_keys;
  uint64_t rows_bound;  // the highest row id + 1; 0 if there are no entries
  uint64_t key_bytes;   // the sum of all keys' lengths

  PhysicalType kind() const { return static_cast<PhysicalType>(key_kind); }
};
static_assert(sizeof(RunProperties) == 40);

// The sections of a run file.
enum class RunSection : uint32_t {
  kProperties = 1,
  kKeys = 2,        // u32 or u64, one per entry; or
  kKeyHeap = 3,     // the bytes of all keys, concatenated, and
  kKeyOffsets = 4,  // entries + 1 offsets into the heap
  kRowIds = 5,
  // Lower ids belong to this module; RunFileWriter::file() may add sections from kFirstExtra on.
  kFirstExtra = kFirstExtraSection,
  // Packed leaves over the entries, and their directory; cpu_fast/packed/stored_leaves.h.
  kLeafProperties = 64,
  kLeaves = 65,
  kCells = 66,           // of a directory of cells, with
  kCellGroups = 67,      // the cell of each group of keys, and
  kGroupBounds = 68,     // u32 or u64 keys, one less than groups; or
  kLeafSeparators = 69,  // u32 or u64 keys, one less than leaves, and
  kLeafTree = 70,        // u32 or u64 numbers, nodes of a tree over these
};

extern const FileFormat kRunFileFormat;

struct RunFileOptions {
  // Writes 8-byte offsets even if 4 bytes are enough.
  bool wide_offsets = false;
};

// Writes a run in bounded memory, entry by entry, as the sink of a sort or a merge. Call Begin,
// Append and Finish; if Finish has not succeeded, the destructor removes the file. Used by one
// thread at a time.
//
// Errors: Internal, with the batch: the number, the kind or the strictly ascending order of the
// entries is not as promised to Begin; ResourceExhausted: the disk is full. After an error every
// further call returns it.
class RunFileWriter : public EntrySink {
 public:
  // AlreadyExists if `path` exists.
  static absl::StatusOr<std::unique_ptr<RunFileWriter>> Create(
      const std::string& path, PhysicalType kind, RunFileOptions options = {},
      FileSystem* files = FileSystem::Posix());

  absl::Status Begin(uint64_t entries, uint64_t key_bytes) override;
  absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const std::string_view> keys,
                      absl::Span<const RowId> row_ids) override;

  // Returns the entries after all are appended, mapped from the file; the run keeps the mapping. It
  // is for sections that are computed from the entries. If the file system does not map files, they
  // take memory. Errors: those of Finish.
  absl::StatusOr<SortedRun> ReadBack();

  // Writes the properties and the header, and syncs the file.
  absl::Status Finish();

  // The properties of the entries appended so far.
  const RunProperties& properties() const { return properties_; }
  // The file. Between Begin and Finish it takes sections of ids from RunSection::kFirstExtra on;
  // after Finish it has its size and checksum.
  SectionFileWriter& file() { return *file_; }

 private:
  RunFileWriter(std::unique_ptr<SectionFileWriter> file, PhysicalType kind, RunFileOptions options);

  absl::Status CloseColumns();
  absl::Status AddColumns(uint64_t entries, uint64_t key_bytes);
  absl::Status CheckBatch(PhysicalType kind, size_t keys, size_t row_ids);
  template <typename Key>
  absl::Status AppendFixedWidth(absl::Span<const Key> keys, absl::Span<const RowId> row_ids);
  absl::Status AppendStrings(absl::Span<const std::string_view> keys,
                             absl::Span<const RowId> row_ids);
  template <typename Offset>
  absl::Status AppendOffsets(absl::Span<const std::string_view> keys);
  template <typename Key>
  absl::Status CountAndCheckOrder(absl::Span<const Key> keys, absl::Span<const RowId> row_ids,
                                  Key last_key);
  absl::Status Fail(absl::Status status);

  std::unique_ptr<SectionFileWriter> file_;
  RunFileOptions options_;
  RunProperties properties_ = {};
  uint64_t promised_entries_ = 0;
  SectionWriter* keys_ = nullptr;  // or of the heap
  SectionWriter* offsets_ = nullptr;
  SectionWriter* row_ids_ = nullptr;
  // The last entry appended, if any.
  uint64_t last_key_ = 0;
  std::string last_bytes_;
  RowId last_row_id_ = 0;
  bool begun_ = false;
  absl::Status status_;
};

// An open run file. The run keeps the mapping alive; copies share it.
struct RunFile {
  SectionFile file;
  RunProperties properties;
  SortedRun run;

  // Whether the file also has packed leaves.
  bool has_leaves() const {
    return file.Find(static_cast<uint32_t>(RunSection::kLeafProperties)) != nullptr;
  }
};

// Maps a run. Errors: NotFound: there is no such file; DataLoss, with file, offset, expected and
// found value: it is damaged; FailedPrecondition: another major version. Throws std::bad_alloc.
//
// Both levels read every entry. They check that offsets ascend within the heap, that entries
// ascend, and that the properties agree with the entries. So no file, whatever its bytes are, makes
// the run read outside of its mapping or a search structure over it malfunction. kFull also
// verifies the sections' checksums; without them, damage that keeps all this consistent leads to
// other answers. `threads` read in parallel; 0 means one per hardware thread.
//
// ContentCheck::kLater does not read the entries of u32 and u64 keys. Until CheckEntries has
// succeeded, they may be in any order and have any row ids.
// order, and have any row ids, until CheckEntries has said otherwise.
absl::StatusOr<RunFile> OpenRun(const std::string& path, VerifyLevel level, int threads = 0,
                                FileSystem* files = FileSystem::Posix());

// As above, for an open section file.
absl::StatusOr<RunFile> OpenRun(SectionFile file, int threads = 0,
                                ContentCheck check = ContentCheck::kNow);

// Checks all entries, which OpenRun with ContentCheck::kLater left unread. Errors: DataLoss.
absl::Status CheckEntries(const RunFile& file, int threads = 0);

}  // namespace cairn
