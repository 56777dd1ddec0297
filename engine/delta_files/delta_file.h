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

// Delta files: what came to an index after its base was built, or after the delta file before, as
// RowUpdates. A section file (section_file.h) of columns; docs/internals/formats.md describes the
// bytes.
//
// A delta file says what became of rows by primary key, not by row id or position. So it does not
// depend on the base that it was written over, and may be applied to any later one that has seen
// less: a merge that runs while delta files are written leaves those after it as they are.
namespace cairn {

// What a delta file's properties section says; 48 bytes, as they stand there.
struct DeltaProperties {
  uint32_t key_kind;  // a PhysicalType
  uint32_t reserved;  // 0
  uint64_t rows;
  uint64_t keys;  // of all rows together
  uint64_t deleted_ranges;
  // The database's sequence numbers: updates that came after the one, up to and with the other.
  uint64_t after;
  uint64_t sequence;

  PhysicalType kind() const { return static_cast<PhysicalType>(key_kind); }
};
static_assert(sizeof(DeltaProperties) == 48);

// The sections of a delta file. Lengths and counts cut the section that they are of: they sum up to
// its size.
enum class DeltaSection : uint32_t {
  kProperties = 1,
  kPrimaryKeys = 2,  // bytes, by row; strictly ascending
  kPrimaryKeyLengths = 3,
  kKeyCounts = 4,  // how many of the keys are each row's
  kKeys = 5,       // u32 or u64, or bytes; by row
  kKeyLengths = 6,
  kRangeEnds = 7,  // bytes: of each deleted range its first primary key and the one behind its last
  kRangeEndLengths = 8,
  kTuples =
      9,  // bytes, by row, in an index that includes columns; an empty one of rows without keys
  kTupleLengths = 10,
};

extern const FileFormat kDeltaFileFormat;

// Writes the updates that came after the state `after` and led to the state `sequence` into a new
// file of `directory`, and waits for the disk. Returns what the manifest is to name behind the
// delta files that are there.
//
// InvalidArgument where the updates' columns do not fit together or a primary key comes twice;
// ResourceExhausted where the disk is full. After an error there is no file.
absl::StatusOr<ManifestFile> WriteDelta(IndexDirectory* directory, const RowUpdates& updates,
                                        SequenceNumber after, SequenceNumber sequence);

// Strings that lie one behind the other.
struct PackedStrings {
  std::string_view bytes;
  absl::Span<const uint32_t> lengths;  // their sum is bytes.size()
};

// An open delta file, and views of its columns, which `file` keeps alive.
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

// Maps a delta file. NotFound where there is no such file; DataLoss, naming file, section and
// offset, where it is damaged; FailedPrecondition where its major version is another.
//
// Every length is checked at both levels, so that no file leads out of its mapping, and that
// primary keys ascend. kFull checks the checksums, too. `threads`: 0 is one a hardware thread.
absl::StatusOr<DeltaFile> OpenDelta(const std::string& path, VerifyLevel level, int threads = 0,
                                    FileSystem* files = FileSystem::Posix());

// The same for a section file that is open, as far as its own level went.
absl::StatusOr<DeltaFile> OpenDelta(SectionFile file);

// Reads a delta file from its beginning to its end, some rows at a time. Applied in that order the
// slices come to what the whole does. The file must outlive it; one thread at a time.
class DeltaReader {
 public:
  explicit DeltaReader(const DeltaFile& file) : file_(file) {}

  // Sets `updates` to the next `rows` rows, or as many as are left. False, and nothing set, where
  // there are none. The first slice, which may have no rows, has the deleted ranges.
  bool Next(size_t rows, RowUpdates* updates);

 private:
  template <typename Key>
  void ReadKeys(uint64_t count, EncodedKeys* keys);

  const DeltaFile& file_;
  bool started_ = false;
  uint64_t row_ = 0;           // the next one
  uint64_t key_ = 0;           // likewise
  uint64_t primary_byte_ = 0;  // where its primary key starts
  uint64_t key_byte_ = 0;      // where keys of bytes go on
  uint64_t tuple_byte_ = 0;
};

}  // namespace cairn
