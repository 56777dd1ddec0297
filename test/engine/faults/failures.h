#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/secondary_index.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {

using Fault = FaultyFileSystem::Fault;
using Lasting = FaultyFileSystem::Lasting;
using Strings = std::vector<std::string>;

struct Failure {
  Fault fault;
  Lasting lasting;
};

inline constexpr Failure kWriteFailures[] = {{Fault::kWriteError, Lasting::kOnce},
                                             {Fault::kWriteError, Lasting::kUntilRepaired},
                                             {Fault::kNoSpace, Lasting::kOnce},
                                             {Fault::kNoSpace, Lasting::kUntilRepaired}};

// Calls `attempt` for k = 1, 1 + stride, … until nothing fails. `attempt` gets a function that
// makes the k-th operation from then on fail. It repairs the file system after its checks, and
// returns what failed.
template <typename Attempt>
void FailAtEachStep(FaultyFileSystem* files, Failure failure, uint64_t stride,
                    const Attempt& attempt) {
  if (kUnderTsan) stride *= 5;
  for (uint64_t k = 1;; k += stride) {
    BOOST_REQUIRE_MESSAGE(k < 10000, "nothing ends this");
    BOOST_TEST_CONTEXT("operation " << k) {
      const absl::Status status = attempt([&] { files->Break(failure.fault, k, failure.lasting); });
      files->Repair();
      if (files->failed() == 0) {
        BOOST_TEST(status.ok(), status);
        BOOST_TEST_MESSAGE(k - 1 << " operations failed");
        BOOST_TEST(k > stride);
        return;
      }
    }
  }
}

// Checks that an error in `directory` has the fault's code, and names the operation and the file.
inline void CheckSaysWhy(const absl::Status& status, Failure failure,
                         const std::string& directory) {
  BOOST_TEST(absl::StrContains(status.message(), directory), status);
  BOOST_TEST(absl::StrContains(status.message(), "cannot "), status);
  if (failure.fault == Fault::kNoSpace) {
    BOOST_TEST(absl::IsResourceExhausted(status), status);
  } else {
    BOOST_TEST((absl::IsInternal(status) || absl::IsUnavailable(status)), status);
  }
}

}  // namespace cairn
