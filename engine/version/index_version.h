#pragma once

#include <memory>

#include "cairn/types.h"
#include "engine/delta/delta.h"
#include "engine/version/routed_base.h"

namespace cairn {

// The state of an index that one query sees: a base, what came to it since, and the state of the
// database that both together answer for. Immutable; what is in it lives as long as any version
// that has it.
struct IndexVersion {
  std::shared_ptr<const RoutedBase> base;
  std::shared_ptr<const Delta> delta;
  SequenceNumber sequence = 0;

  const IndexSpec& spec() const { return base->base().spec; }
};

}  // namespace cairn
