#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cpu_fast/packed/leaves_writer.h"
#include "cpu_fast/packed/stored_leaves.h"
#include "cpu_fast/packed/stored_packed_index.h"
#include "index/machine/status_macros.h"
#include "test/forged_file.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

// Run files with packed leaves in them, as bytes.
namespace cairn {

template <typename Key>
std::string LeafFile(const OracleData<Key>& data, const PackedIndexOptions& options = {},
                     int threads = 2) {
  const TemporaryDirectory directory;
  constexpr PhysicalType kKind = sizeof(Key) == 4 ? PhysicalType::kU32 : PhysicalType::kU64;
  auto writer = RequireOk(RunFileWriter::Create(directory / "run", kKind));
  RequireOk(writer->Begin(data.keys.size(), data.keys.size() * sizeof(Key)));
  RequireOk(writer->Append(absl::MakeConstSpan(data.keys), data.row_ids));
  RequireOk(WriteLeaves(writer.get(), threads, options));
  RequireOk(writer->Finish());
  return ReadFile(directory / "run");
}

// A run file that is open, and the leaves in it.
struct OpenLeafFile {
  RunFile file;
  std::optional<StoredLeaves> leaves;
};

inline absl::StatusOr<OpenLeafFile> OpenLeaves(std::string_view bytes,
                                               VerifyLevel level = VerifyLevel::kMetadata) {
  ASSIGN_OR_RETURN(SectionFile sections, OpenBytes(bytes, kRunFileFormat, level));
  ASSIGN_OR_RETURN(RunFile file, OpenRun(std::move(sections), 1));
  ASSIGN_OR_RETURN(auto leaves, FindStoredLeaves(file));
  return OpenLeafFile{std::move(file), std::move(leaves)};
}

// The offset and the size of a section in a file's bytes.
inline std::pair<size_t, size_t> PlaceOfSection(const std::string& bytes, RunSection id) {
  const auto file = RequireOk(OpenBytes(bytes, kRunFileFormat, VerifyLevel::kMetadata));
  const Section* const section = file.Find(static_cast<uint32_t>(id));
  return section == nullptr ? std::pair<size_t, size_t>()
                            : std::pair<size_t, size_t>(section->offset, section->size);
}

}  // namespace cairn
