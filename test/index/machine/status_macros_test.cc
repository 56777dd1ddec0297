#include "index/machine/status_macros.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(status_macros_test)
namespace {

const absl::Status kLost = absl::DataLossError("lost");

BOOST_AUTO_TEST_CASE(an_error_is_returned_and_ok_goes_on) {
  int evaluated = 0, reached = 0;
  const auto run = [&](const absl::Status& status) -> absl::Status {
    RETURN_IF_ERROR((++evaluated, status));
    ++reached;
    return absl::CancelledError("at the end");
  };
  BOOST_TEST(run(kLost) == kLost);
  BOOST_TEST(reached == 0);
  BOOST_TEST(absl::IsCancelled(run(absl::OkStatus())));
  BOOST_TEST(reached == 1);
  BOOST_TEST(evaluated == 2);
}

BOOST_AUTO_TEST_CASE(an_error_is_returned_as_a_status_or) {
  const auto run = [](const absl::Status& status) -> absl::StatusOr<int> {
    RETURN_IF_ERROR(status);
    return 7;
  };
  BOOST_TEST(run(kLost).status() == kLost);
  BOOST_TEST(run(absl::OkStatus()).value() == 7);
}

BOOST_AUTO_TEST_CASE(an_early_return_is_one_statement) {
  const auto run = [](bool first, const absl::Status& status) -> absl::Status {
    if (first)
      RETURN_IF_ERROR(status);
    else
      return absl::CancelledError("the other branch");
    return absl::OkStatus();
  };
  BOOST_TEST(run(true, kLost) == kLost);
  BOOST_TEST(run(true, absl::OkStatus()).ok());
  BOOST_TEST(absl::IsCancelled(run(false, kLost)));
}

BOOST_AUTO_TEST_CASE(a_value_is_declared_or_assigned) {
  int evaluated = 0;
  const auto value = [&](int n) -> absl::StatusOr<int> {
    ++evaluated;
    if (n < 0) return kLost;
    return n;
  };
  const auto sum = [&](int a, int b, int* assigned) -> absl::StatusOr<int> {
    ASSIGN_OR_RETURN(const int first, value(a));
    ASSIGN_OR_RETURN(*assigned, value(b));
    return first + *assigned;
  };
  int assigned = 100;
  BOOST_TEST(sum(1, 2, &assigned).value() == 3);
  BOOST_TEST(evaluated == 2);
  BOOST_TEST(assigned == 2);
  BOOST_TEST(sum(1, -1, &assigned).status() == kLost);
  BOOST_TEST(assigned == 2);  // an error leaves it as it is
  BOOST_TEST(evaluated == 4);
  BOOST_TEST(sum(-1, 1, &assigned).status() == kLost);
  BOOST_TEST(evaluated == 5);
}

BOOST_AUTO_TEST_CASE(a_value_that_cannot_be_copied_is_moved) {
  const auto run = []() -> absl::StatusOr<std::unique_ptr<std::string>> {
    ASSIGN_OR_RETURN(
        std::unique_ptr<std::string> text,
        absl::StatusOr<std::unique_ptr<std::string>>(std::make_unique<std::string>("moved")));
    return text;
  };
  BOOST_TEST(**run() == "moved");
}

BOOST_AUTO_TEST_CASE(commas_and_macros_within_macros) {
  using Sizes = std::map<int, size_t>;
  const auto run = [](int n) -> absl::StatusOr<size_t> {
    RETURN_IF_ERROR([](int first, size_t second) -> absl::Status {
      RETURN_IF_ERROR(first < 0 ? kLost : absl::OkStatus());
      ASSIGN_OR_RETURN(const Sizes sizes, absl::StatusOr<Sizes>(Sizes{{first, second}}));
      return sizes.at(first) == second ? absl::OkStatus() : absl::InternalError("not there");
    }(n, 1));
    ASSIGN_OR_RETURN(const Sizes two, absl::StatusOr<Sizes>(Sizes{{n, 1}, {n + 1, 2}}));
    return two.size();
  };
  BOOST_TEST(run(-1).status() == kLost);
  BOOST_TEST(run(1).value() == 2u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
