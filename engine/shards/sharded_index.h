#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/open_options.h"
#include "cairn/secondary_index.h"
#include "index/files/file_system.h"

namespace cairn {

// Whether a directory holds an index in shards; an error where that cannot be seen.
absl::StatusOr<bool> IsSharded(const std::string& directory, FileSystem* files);

// Opens one: what SecondaryIndex::Open does with such a directory. Errors as ShardSet::Open's.
absl::StatusOr<std::unique_ptr<SecondaryIndex>> OpenSharded(const std::string& directory,
                                                            const OpenOptions& options);

}  // namespace cairn
