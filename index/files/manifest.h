#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"

namespace cairn {

// One live file of an index.
struct ManifestFile {
  std::string name;              // within the directory, as IndexDirectory::NextFileName makes it
  uint64_t size = 0;             // bytes
  uint64_t header_checksum = 0;  // SectionFile::header_checksum(), which covers all other checksums

  bool operator==(const ManifestFile&) const = default;
};

// What an index's directory holds: one version of it. Plain data.
struct Manifest {
  uint64_t version = 0;           // counts publishes: 1 for the first
  uint64_t next_file_number = 1;  // above every number that a published file has had
  std::string spec;               // IndexSpec::ToString()
  std::string database_id;
  std::string column_family;
  std::string anchor;           // which history of the database that is (engine/log/anchor.h)
  std::string tables;           // which table files that has (engine/log/table_files.h); or empty
  std::string reading;          // what reads rows (engine/log/row_reading.h); empty if unknown
  SequenceNumber sequence = 0;  // the state of the database that the index answers for
  uint64_t rows = 0;
  uint64_t entries = 0;
  // Whatever else is counted, by name: letters, digits and '_', e.g. "distinct_keys".
  std::map<std::string, uint64_t> counts;
  std::vector<ManifestFile> files;

  // The file of that prefix ("base"), or null; the first if there are several.
  const ManifestFile* FindFile(std::string_view prefix) const;

  bool operator==(const Manifest&) const = default;
};

// A manifest's text may have so many bytes.
inline constexpr uint64_t kMaxManifestBytes = 16 << 20;

// "base-000007.run" of "base", 7, "run". A prefix and an extension are lower-case letters.
std::string IndexFileName(std::string_view prefix, uint64_t number, std::string_view extension);
// Takes such a name apart; false for any other name.
bool ParseIndexFileName(std::string_view name, std::string_view* prefix, uint64_t* number,
                        std::string_view* extension);

// The manifest as text: lines "key value", the last of them a checksum of all before it.
// InvalidArgument for a name that cannot stand in a line, or beyond kMaxManifestBytes.
absl::StatusOr<std::string> FormatManifest(const Manifest& manifest);

// Reads exactly what FormatManifest writes: DataLoss, naming `path` and the line, for anything
// else; FailedPrecondition for another major version, of which an older one says that the index is
// to be built anew. Lines with unknown keys are passed over where a newer minor version wrote them.
absl::StatusOr<Manifest> ParseManifest(std::string_view text, std::string_view path);

}  // namespace cairn
