#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>

namespace cairn {

// The sanitizer of this build. AddressSanitizer slows code down two to five times, ThreadSanitizer
// ten to fifty times. So single-threaded tests with many repetitions run fewer of them there; the
// other builds run all.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderAsan = false, kUnderTsan = true;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kUnderAsan = true, kUnderTsan = false;
#elif defined(__has_feature)
inline constexpr bool kUnderAsan = __has_feature(address_sanitizer);
inline constexpr bool kUnderTsan = __has_feature(thread_sanitizer);
#else
inline constexpr bool kUnderAsan = false, kUnderTsan = false;
#endif

// `count`, and under ThreadSanitizer one `part` of it, at least 1.
constexpr size_t FewerUnderTsan(size_t count, size_t part = 10) {
  return kUnderTsan ? std::max<size_t>(1, count / part) : count;
}

// The same, and a part under AddressSanitizer as well.
constexpr size_t FewerSanitized(size_t count, size_t part_under_asan, size_t part_under_tsan) {
  return FewerUnderTsan(kUnderAsan ? std::max<size_t>(1, count / part_under_asan) : count,
                        part_under_tsan);
}

// Decorates a suite or a case in which ThreadSanitizer cannot find anything, so it is skipped
// there: with the sizes that it would have there, neither it nor Cairn starts a thread. RocksDB
// may start its own; it is not built with ThreadSanitizer.
//   BOOST_AUTO_TEST_CASE(round_trips, *StartsNoThread())
struct StartsNoThread : boost::unit_test::decorator::base {
  void apply(boost::unit_test::test_unit& unit) override {
    if (kUnderTsan) unit.add_precondition(&Never);
  }
  boost::unit_test::decorator::base_ptr clone() const override {
    return boost::unit_test::decorator::base_ptr(new StartsNoThread);
  }

 private:
  static boost::test_tools::assertion_result Never(boost::unit_test::test_unit_id) { return false; }
};

}  // namespace cairn
