#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/extractor.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(extractor_registry_test)
namespace {

class Nothing : public KeyExtractor {
 public:
  absl::Status Extract(const RowView&, KeySink*) const override { return absl::OkStatus(); }
};

BOOST_AUTO_TEST_CASE(finds_what_was_registered) {
  const auto extractor = std::make_shared<Nothing>();
  RequireOk(RegisterExtractor("registry_test.found", extractor));
  const auto found = RequireOk(FindExtractor("registry_test.found"));
  BOOST_TEST(found.get() == extractor.get());
}

BOOST_AUTO_TEST_CASE(names_what_is_known_where_a_name_is_not) {
  RequireOk(RegisterExtractor("registry_test.known", std::make_shared<Nothing>()));
  const absl::Status status = FindExtractor("registry_test.unknown").status();
  BOOST_CHECK(absl::IsNotFound(status));
  const std::string message(status.message());
  BOOST_CHECK(message.find("'registry_test.unknown'") != std::string::npos);
  BOOST_CHECK(message.find("'registry_test.known'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(refuses_a_taken_name_an_empty_one_and_no_extractor) {
  const auto first = std::make_shared<Nothing>();
  RequireOk(RegisterExtractor("registry_test.taken", first));
  const absl::Status taken = RegisterExtractor("registry_test.taken", std::make_shared<Nothing>());
  BOOST_CHECK(absl::IsAlreadyExists(taken));
  BOOST_CHECK(std::string(taken.message()).find("registry_test.taken") != std::string::npos);
  BOOST_TEST(FindExtractor("registry_test.taken")->get() == first.get());
  BOOST_CHECK(absl::IsInvalidArgument(RegisterExtractor("", first)));
  BOOST_CHECK(absl::IsInvalidArgument(RegisterExtractor("registry_test.null", nullptr)));
}

BOOST_AUTO_TEST_CASE(of_threads_that_register_one_name_one_succeeds) {
  std::atomic<int> registered = 0;
  std::atomic<int> found = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registered, &found] {
      for (int i = 0; i < 50; ++i) {
        const std::string name = absl::StrFormat("registry_test.race%d", i);
        registered += RegisterExtractor(name, std::make_shared<Nothing>()).ok();
        found += FindExtractor(name).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(registered == 50);
  BOOST_TEST(found == 200);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
