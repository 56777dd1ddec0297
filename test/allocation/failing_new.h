#pragma once

#include <cstdint>

namespace cairn {

// In an executable that has failing_new.cc, operator new can be made to throw std::bad_alloc. Only
// allocations of this executable's code count, with what it calls in the C++ library or TBB:
// RocksDB and absl::StrFormat are not built to survive one.
class FailingNew {
 public:
  enum class How : uint8_t {
    kOnce,    // one allocation fails
    kOnward,  // it and all after it fail
  };

  // From here on the first counted allocation after `spared` allocations of any code fails, in
  // whatever thread.
  static void Arm(uint64_t spared, How how);

  struct Result {
    bool failed = false;     // whether one did
    uint64_t allocated = 0;  // allocations before the first that failed, or all
  };
  static Result Disarm();
};

inline constexpr FailingNew::How kBoth[] = {FailingNew::How::kOnce, FailingNew::How::kOnward};

}  // namespace cairn
