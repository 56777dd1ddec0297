#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/delta/row_updates.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "index/files/section_file.h"

// Delta files store changes of an index as RowUpdates: those since its base was built, or since the
// previous delta file. A delta file is a section file (section_file.h) of columns;
// docs/internals/formats.md describes the bytes.
//
// A delta file identifies rows by primary key, not by row id or position. So it does not depend on
// the base that it was written over. It can be applied to any later base that lacks its changes. A
// merge that runs while delta files are written leaves those after it as they are.
namespace cairn {

// The properties section of a delta file: 48 bytes, in this layout.
struct DeltaProperties {
  uint32_t key_kind;  // a PhysicalType
  uint32_t reserved;  // 0
  uint64_t rows;
  uint64_t keys;  // of all rows together
  uint64_t deleted_ranges;
  // Sequence numbers of the database: the updates are those after `after`, up to and including
  // `sequence`.
  uint64_t after;
  uint64_t sequence;

  PhysicalType kind() const { return static_cast<PhysicalType>(key_kind); }
};
static_assert(sizeof(DeltaProperties) == 48);

// The sections of a delta file. Sections of lengths or counts divide another section into parts,
// and add up to its size.
enum class DeltaSection : uint32_t {
  kProperties = 1,
  kPrimaryKeys = 2,  // bytes, by row; strictly ascending
  kPrimaryKeyLengths = 3,
  kKeyCounts = 4,  // number of keys of each row
  kKeys = 5,       // u32 or u64, or bytes; by row
  kKeyLengths = 6,
  kRangeEnds = 7,  // bytes: for each deleted range, its first primary key and its end
  kRangeEndLengths = 8,
  kTuples = 9,  // bytes, by row; only if the index includes columns; empty for a row without keys
  kTupleLengths = 10,
};

extern const FileFormat kDeltaFileFormat;

// Writes the updates that lead from the state `after` to the state `sequence` to a new file of
// `directory`, and waits for the disk. Returns the entry that the manifest must append after its
// other delta files.
//
// Errors: InvalidArgument if the lengths of the updates' columns are inconsistent or a primary key
// occurs twice; ResourceExhausted if the disk is full. After an error the file does not exist.
absl::StatusOr<ManifestFile> WriteDelta(IndexDirectory* directory, const RowUpdates& updates,
                                        SequenceNumber after, SequenceNumber sequence);

// Strings that are stored one after the other.
struct PackedStrings {
  std::string_view bytes;
  absl::Span<const uint32_t> lengths;  // their sum is bytes.size()
};

// An open delta file with views of its columns. `file` keeps them alive.
struct DeltaFile {
  SectionFile file;
  DeltaProperties properties;
  PackedStrings primary_keys;
  absl::Span<const uint32_t> key_counts;
  PackedStrings keys;  // numbers have no lengths
  PackedStrings range_ends;
  bool has_tuples = false;
  PackedStrings tuples;
};

// Maps a delta file. Errors: NotFound if the file does not exist; DataLoss, which names file,
// section and offset, if it is damaged; FailedPrecondition if it has another major version.
//
// Both levels check every length, so that no offset points outside the mapping, and the order of
// the primary keys. kFull also checks the checksums. `threads`: 0 means one per hardware thread.
absl::StatusOr<DeltaFile> OpenDelta(const std::string& path, VerifyLevel level, int threads = 0,
                                    FileSystem* files = FileSystem::Posix());

// The same for an open section file. Only the checks of its own level are made.
absl::StatusOr<DeltaFile> OpenDelta(SectionFile file);

// Reads a delta file from its beginning to its end, in slices of rows. Applying the slices in order
// has the same effect as applying the whole. The file must outlive the reader. Only one thread at a
// time.
class DeltaReader {
 public:
  explicit DeltaReader(const DeltaFile& file) : file_(file) {}

  // Sets `updates` to the next `rows` rows, or to all that are left if there are fewer. Returns
  // false and sets nothing if there are none. The first slice has the deleted ranges, and may have
  // no rows.
  bool Next(size_t rows, RowUpdates* updates);

 private:
  template <typename Key>
  void ReadKeys(uint64_t count, EncodedKeys* keys);

  const DeltaFile& file_;
  bool started_ = false;
  uint64_t row_ = 0;           // the next row
  uint64_t key_ = 0;           // the next key
  uint64_t primary_byte_ = 0;  // start of the next row's primary key
  uint64_t key_byte_ = 0;      // start of the next byte-string key
  uint64_t tuple_byte_ = 0;
};

}  // namespace cairn
