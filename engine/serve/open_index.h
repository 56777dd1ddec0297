#pragma once

#include <memory>

#include "cairn/secondary_index.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"

namespace cairn {

// A SecondaryIndex over the versions that `writer` makes: what SecondaryIndex::Open returns.
std::unique_ptr<SecondaryIndex> OverWriter(std::shared_ptr<IndexWriter> writer);

// A SecondaryIndex over one version, which it stays. CatchUp and Merge are FailedPrecondition.
std::unique_ptr<SecondaryIndex> OverVersion(std::shared_ptr<const IndexVersion> version);

// The version that answers now, of an index of one of these; null of any other.
std::shared_ptr<const IndexVersion> VersionOf(const SecondaryIndex& index);
// OpenOptions::threads of such an index; 0 of any other.
int ThreadsOf(const SecondaryIndex& index);

// SecondaryIndex::Stats of one version. Throws std::bad_alloc.
IndexStats StatsOf(const IndexVersion& version);

}  // namespace cairn
