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

// Run files: a SortedRun on disk, a section file (section_file.h) of the columns as a search uses
// them. docs/internals/formats.md describes the bytes.
namespace cairn {

// What a run file's properties section says; 40 bytes, as they stand there.
struct RunProperties {
  uint32_t key_kind;      // a PhysicalType
  uint32_t offset_bytes;  // of one offset into the key heap: 4 or 8; 0 for fixed-width keys
  uint64_t entries;       // at most kMaxEntries
  uint64_t distinct_keys;
  uint64_t rows_bound;  // the highest row id + 1; 0 without entries
  uint64_t key_bytes;   // of all keys together

  PhysicalType kind() const { return static_cast<PhysicalType>(key_kind); }
};
static_assert(sizeof(RunProperties) == 40);

// The sections of a run file.
enum class RunSection : uint32_t {
  kProperties = 1,
  kKeys = 2,        // u32 or u64, one an entry; or
  kKeyHeap = 3,     // the bytes of all keys, one behind the other, and
  kKeyOffsets = 4,  // entries + 1 offsets into the heap
  kRowIds = 5,
  // Ids below kFirstExtra are this module's; others may be added through RunFileWriter::file().
  kFirstExtra = kFirstExtraSection,
  // Packed leaves over the entries and their directory; cpu_fast/packed/stored_leaves.h.
  kLeafProperties = 64,
  kLeaves = 65,
  kCells = 66,           // of a directory of cells, with
  kCellGroups = 67,      // where keys fall among them, and
  kGroupBounds = 68,     // u32 or u64 keys, one less than groups; or
  kLeafSeparators = 69,  // u32 or u64 keys, one less than leaves, and
  kLeafTree = 70,        // u32 or u64 numbers, nodes of a tree over these
};

extern const FileFormat kRunFileFormat;

struct RunFileOptions {
  // Writes 8-byte offsets even where 4 bytes suffice.
  bool wide_offsets = false;
};

// Writes a run as it comes, in bounded memory: what a sort or a merge yields into. Begin, Append,
// Finish; unless Finish has succeeded the file is removed. Used by one thread at a time.
//
// Internal where the entries are not those promised to Begin, are not of the one kind or do not
// ascend strictly, naming the batch; ResourceExhausted where the disk is full. After an error
// every further call returns it.
class RunFileWriter : public EntrySink {
 public:
  // AlreadyExists where the name is taken.
  static absl::StatusOr<std::unique_ptr<RunFileWriter>> Create(
      const std::string& path, PhysicalType kind, RunFileOptions options = {},
      FileSystem* files = FileSystem::Posix());

  absl::Status Begin(uint64_t entries, uint64_t key_bytes) override;
  absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const std::string_view> keys,
                      absl::Span<const RowId> row_ids) override;

  // The entries once all are appended, as they stand in the file, which the run keeps mapped: for
  // sections that are made of them. In a file system that does not map files, they take memory.
  // Errors as Finish's.
  absl::StatusOr<SortedRun> ReadBack();

  // Writes the properties and the header and waits for the disk.
  absl::Status Finish();

  // What was appended so far.
  const RunProperties& properties() const { return properties_; }
  // The file, for sections of ids from RunSection::kFirstExtra on between Begin and Finish, and for
  // its size and checksum after Finish.
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
  SectionWriter* keys_ = nullptr;  // or the heap
  SectionWriter* offsets_ = nullptr;
  SectionWriter* row_ids_ = nullptr;
  // The last entry appended, if there is one.
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

  // Whether packed leaves are stored beside the entries.
  bool has_leaves() const {
    return file.Find(static_cast<uint32_t>(RunSection::kLeafProperties)) != nullptr;
  }
};

// Maps a run. NotFound where there is no such file; DataLoss, naming file, offset, expected and
// found, where it is damaged; FailedPrecondition where its major version is another. Throws
// std::bad_alloc.
//
// Both levels read every entry: that offsets ascend within the heap, that entries ascend, and that
// the properties are those of the entries. So no file, whatever it holds, makes the run reach out
// of its mapping or a search structure over it go wrong. kFull also checks the sections' checksums;
// without them damage that leaves all this in order gives other answers. `threads` read side by
// side; 0: one a hardware thread.
//
// ContentCheck::kLater leaves the entries of u32 and u64 keys unread: these may then be in any
// order, and have any row ids, until CheckEntries has said otherwise.
absl::StatusOr<RunFile> OpenRun(const std::string& path, VerifyLevel level, int threads = 0,
                                FileSystem* files = FileSystem::Posix());

// The same for a section file that is open.
absl::StatusOr<RunFile> OpenRun(SectionFile file, int threads = 0,
                                ContentCheck check = ContentCheck::kNow);

// The pass over all entries that OpenRun left for later. DataLoss.
absl::Status CheckEntries(const RunFile& file, int threads = 0);

}  // namespace cairn
