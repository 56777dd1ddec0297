#pragma once

#include <boost/test/unit_test.hpp>
#include <string>

#include "absl/strings/match.h"
#include "cairn/indexed_db.h"
#include "test/engine/indexed_database.h"
#include "test/require_ok.h"

namespace cairn {

// The first field of values such as "red,heavy".
inline constexpr char kByColour[] = "by_colour = value.field(',', 0):text";

inline void CheckFails(const absl::Status& status, absl::StatusCode code, const std::string& part) {
  BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(code), status);
  BOOST_TEST(absl::StrContains(std::string(status.message()), part), status);
}

}  // namespace cairn
