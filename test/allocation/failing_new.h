#pragma once

#include <cstdint>

namespace cairn {

// In an executable with failing_new.cc, operator new can throw std::bad_alloc on demand. Only
// allocations by this executable's code count, including those that it makes through the C++
// library or TBB. RocksDB and absl::StrFormat do not survive a failed allocation.
class FailingNew {
 public:
  enum class How : uint8_t {
    kOnce,    // one allocation fails
    kOnward,  // that one and all later ones fail
  };

  // Makes the first counted allocation fail, in any thread, after `spared` further allocations of
  // any code.
  static void Arm(uint64_t spared, How how);

  struct Result {
    bool failed = false;     // whether an allocation failed
    uint64_t allocated = 0;  // allocations before the first failed one, or all
  };
  static Result Disarm();
};

inline constexpr FailingNew::How kBoth[] = {FailingNew::How::kOnce, FailingNew::How::kOnward};

}  // namespace cairn
