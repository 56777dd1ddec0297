#pragma once

#include <memory>

#include "cairn/secondary_index.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"

namespace cairn {

// A SecondaryIndex over the versions of `writer`, for SecondaryIndex::Open.
std::unique_ptr<SecondaryIndex> OverWriter(std::shared_ptr<IndexWriter> writer);

// A SecondaryIndex over one version, which never changes. CatchUp and Compact are
// FailedPrecondition.
std::unique_ptr<SecondaryIndex> OverVersion(std::shared_ptr<const IndexVersion> version);

// The current version of an index from one of these functions; null for any other.
std::shared_ptr<const IndexVersion> VersionOf(const SecondaryIndex& index);
// OpenOptions::threads of such an index; 0 for any other.
int ThreadsOf(const SecondaryIndex& index);

// SecondaryIndex::Stats of one version. Throws std::bad_alloc.
IndexStats StatsOf(const IndexVersion& version);

}  // namespace cairn
