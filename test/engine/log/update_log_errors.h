#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "engine/log/update_log.h"
#include "index/machine/status_macros.h"
#include "test/engine/logged_database.h"
#include "test/require_ok.h"

namespace cairn {

using Kind = LoggedDatabase::Kind;
using Point = LoggedDatabase::Point;

// Whether an error advises to rebuild the index, and contains all of these names.
inline bool IsMissing(const absl::Status& s, const std::vector<std::string>& names = {}) {
  BOOST_TEST_MESSAGE(s.ToString());
  bool all = absl::IsFailedPrecondition(s) && s.ToString().find("rebuild") != std::string::npos;
  for (const std::string& name : names) all &= s.ToString().find(name) != std::string::npos;
  return all;
}

inline rocksdb::Options WithoutArchive() {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.WAL_ttl_seconds = 0;
  return options;
}

}  // namespace cairn
