// Arbitrary bytes as a delta file: either they are rejected, or their updates can be read
// completely, in slices or at once, and applied to a delta. The bytes are used unchanged, and with
// all checksums corrected.
#include "engine/delta_files/delta_file.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "engine/delta/delta_writer.h"
#include "test/forged_file.h"

namespace cairn {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

SortedRun EmptyRun(PhysicalType kind) {
  switch (kind) {
    case PhysicalType::kU32:
      return *SortedRun::FromSorted(absl::Span<const uint32_t>(), {});
    case PhysicalType::kU64:
      return *SortedRun::FromSorted(absl::Span<const uint64_t>(), {});
    case PhysicalType::kBytes:
      break;
  }
  return *SortedRun::FromSorted(absl::Span<const std::string_view>(), {});
}

// Reads the whole file, `rows_at_a_time` rows at a time, and applies it to an index without rows.
std::shared_ptr<const Delta> Apply(const DeltaFile& file, size_t rows_at_a_time) {
  const auto writer = DeltaWriter::Create(EmptyRun(file.properties.kind()), RowTable());
  Require(writer.ok());
  DeltaReader reader(file);
  RowUpdates updates;
  uint64_t rows = 0, keys = 0, deleted_ranges = 0;
  while (reader.Next(rows_at_a_time, &updates)) {
    rows += updates.rows();
    keys += updates.keys.size();
    deleted_ranges += updates.deleted_from.size();
    Require((*writer)->Apply(updates).ok());
  }
  Require(rows == file.properties.rows && keys == file.properties.keys &&
          deleted_ranges == file.properties.deleted_ranges);
  return (*writer)->delta();
}

void OpenAndRead(std::string_view bytes) {
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    const auto file = OpenBytes(bytes, kDeltaFileFormat, level);
    if (!file.ok()) continue;
    const auto delta = OpenDelta(*file);
    if (!delta.ok()) {
      Require(absl::IsDataLoss(delta.status()));
      continue;
    }
    const DeltaStats whole = Apply(*delta, SIZE_MAX)->Stats();
    const DeltaStats sliced = Apply(*delta, 3)->Stats();
    Require(whole.entries == sliced.entries && whole.rows == sliced.rows);
  }
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  cairn::OpenAndRead(bytes);
  cairn::RepairChecksums(&bytes);
  cairn::OpenAndRead(bytes);
  return 0;
}
