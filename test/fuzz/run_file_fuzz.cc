// A run file of any bytes either is refused or gives a run that can be read from end to end, and
// over which every ordered index answers as a binary search does. Bytes are tried as they are and,
// since hardly any mutation survives a checksum, with every checksum made right.
#include "index/files/run_file.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "test/forged_file.h"
#include "test/fuzz/every_ordered_index.h"

namespace cairn {
namespace {

void OpenAndRead(std::string_view bytes) {
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    auto opened = OpenBytes(bytes, kRunFileFormat, level);
    if (!opened.ok()) continue;
    const SectionFile file = *opened;
    for (const Section& section : file.sections()) {
      const absl::Span<const char> content = file.BytesOf(section);
      if (content.size() > bytes.size()) std::abort();
      file.VerifySection(section).IgnoreError();  // reads it
    }
    const auto run = OpenRun(*std::move(opened), 1);
    if (!run.ok()) {
      if (!absl::IsDataLoss(run.status())) std::abort();
      continue;
    }
    if (!run->run.CheckOrder().ok()) std::abort();
    EveryOrderedIndex::Check(run->run);
    for (const RowId row_id : run->run.row_ids()) {
      if (row_id >= run->properties.rows_bound) std::abort();
    }
    if (run->run.kind() != PhysicalType::kBytes) continue;
    uint64_t heap_bytes = 0;
    for (size_t i = 0; i < run->run.size(); ++i) heap_bytes += run->run.bytes()[i].size();
    if (heap_bytes != run->properties.key_bytes) std::abort();
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
