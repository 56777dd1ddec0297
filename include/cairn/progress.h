#pragma once

#include <cstdint>

namespace cairn {

// How far a build or a merge has come.
struct Progress {
  enum class Phase : uint8_t { kScan, kSort, kWrite };
  Phase phase;
  uint64_t done;   // kScan: rows; else entries, over all indexes of the build
  uint64_t total;  // likewise; an estimate during kScan
};

}  // namespace cairn
