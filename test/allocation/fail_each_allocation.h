#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "test/allocation/failing_new.h"
#include "test/sanitizer.h"

namespace cairn {

// Calls `operation` repeatedly until none of its allocations fails. First its first allocation
// fails, then a later one, and so on: about `times` of them over its whole length, fewer under a
// sanitizer. `prepare` is called before each call, and `check` after it. Allocations in these, and
// in `meaning`, do not fail. `meaning` returns the status that an operation's status represents.
inline void FailEachAllocation(
    FailingNew::How how, uint64_t times, const std::function<void()>& prepare,
    const std::function<absl::Status()>& operation, const std::function<void()>& check,
    const std::function<absl::Status(const absl::Status&)>& meaning =
        [](const absl::Status& status) { return status; }) {
  prepare();
  FailingNew::Arm(UINT64_MAX, how);
  absl::Status status = operation();
  const uint64_t length = FailingNew::Disarm().allocated;
  const absl::Status undisturbed = meaning(status);
  BOOST_REQUIRE_MESSAGE(undisturbed.ok(), undisturbed);
  check();
  const uint64_t step = std::max<uint64_t>(1, length / FewerSanitized(times, 3, 10));
  uint64_t failures = 0, errors = 0;
  for (uint64_t spared = 0;;) {
    BOOST_TEST_CONTEXT("after " << spared << " of " << length << " allocations") {
      prepare();
      FailingNew::Arm(spared, how);
      status = operation();
      const FailingNew::Result result = FailingNew::Disarm();
      status = meaning(status);
      BOOST_TEST((status.ok() || absl::IsResourceExhausted(status)), status);
      check();
      if (!result.failed) {
        BOOST_TEST(status.ok(), status);
        break;
      }
      ++failures;
      errors += status.ok() ? 0 : 1;
      spared = result.allocated + step;
    }
  }
  BOOST_TEST_MESSAGE(failures << " failures, " << errors << " of them errors");
  BOOST_TEST(failures > 0u);
  // `operation` may work although one allocation fails, because it is repeated or not needed. Under
  // a sanitizer few allocations fail, and it may work without each of them.
  const bool may_work = how == FailingNew::How::kOnce || kUnderAsan || kUnderTsan;
  BOOST_TEST((errors > 0u || may_work));
}

}  // namespace cairn
