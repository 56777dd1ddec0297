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
  std::string name;              // in the directory; from IndexDirectory::NextFileName
  uint64_t size = 0;             // bytes
  uint64_t header_checksum = 0;  // SectionFile::header_checksum(), which covers all other checksums

  bool operator==(const ManifestFile&) const = default;
};

// One version of an index: the contents of its directory. Plain data.
struct Manifest {
  uint64_t version = 0;           // the number of publishes: 1 for the first
  uint64_t next_file_number = 1;  // above the number of every published file
  std::string spec;               // IndexSpec::ToString()
  std::string database_id;
  std::string column_family;
  std::string anchor;   // identifies the database's history (engine/log/anchor.h)
  std::string tables;   // identifies its table files (engine/log/table_files.h), or empty
  std::string logs;     // identifies older log files (engine/log/older_logs.h), or empty
  std::string reading;  // identifies how rows are read (engine/log/row_reading.h); empty if unknown
  SequenceNumber sequence = 0;  // the state of the database that the index represents
  uint64_t rows = 0;
  uint64_t entries = 0;
  // Other counts by name, e.g. "distinct_keys"; names have letters, digits and '_'.
  std::map<std::string, uint64_t> counts;
  std::vector<ManifestFile> files;

  // The first file with that prefix ("base"), or null.
  const ManifestFile* FindFile(std::string_view prefix) const;

  bool operator==(const Manifest&) const = default;
};

// The max size of a manifest's text.
inline constexpr uint64_t kMaxManifestBytes = 16 << 20;

// "base-000007.run" for "base", 7, "run". Prefix and extension must be lower-case letters.
std::string IndexFileName(std::string_view prefix, uint64_t number, std::string_view extension);
// Splits such a name; false for any other name.
bool ParseIndexFileName(std::string_view name, std::string_view* prefix, uint64_t* number,
                        std::string_view* extension);

// Formats the manifest as text: lines "key value", and a last line with a checksum of all lines
// before it. InvalidArgument for a name that does not fit in a line, or for more than
// kMaxManifestBytes.
absl::StatusOr<std::string> FormatManifest(const Manifest& manifest);

// Reads exactly the output of FormatManifest. DataLoss, with `path` and the line, for anything
// else. FailedPrecondition for another major version; for an older one, the message requires a
// rebuild. Unknown keys are ignored if a newer minor version wrote the manifest.
absl::StatusOr<Manifest> ParseManifest(std::string_view text, std::string_view path);

}  // namespace cairn
