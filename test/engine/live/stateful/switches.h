#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"

// What the stateful test may do is switched on here, by name. A part that finds a defect of today
// is off until the defect is fixed; CAIRN_TEST_SWITCHES=name,other or =all switches more on.

namespace cairn::stateful {

struct Switch {
  const char* name;
  bool on;
};

inline constexpr Switch kSwitches[] = {
    {"unlogged_writes", true},
    {"empty_ranges", false},
    {"inverted_ranges", false},
    {"failing_writes", true},
    {"failing_writes_pipelined", false},
    {"failing_writes_not_paranoid", false},
    {"ingest_new_family", true},
    {"failing_ingest", true},
    {"import_family", true},
    {"remake_past_object", false},
    {"delete_file", false},
    {"filter_log", false},
    {"filter_log_plain", false},
    {"best_efforts", false},
    {"removed_files", false},
    {"removing_filters", false},
    {"changing_filters", false},
    {"fifo", false},
    {"race_rows", false},
    {"unique_while_building", false},
    {"extractor_versions", false},
    {"operator_names", false},
    {"unordered", false},
    {"pages_of_many_keys", false},
    {"distinct_groups", false},
};

inline bool IsOn(std::string_view name) {
  static const std::vector<std::string> more = [] {
    const char* given = std::getenv("CAIRN_TEST_SWITCHES");
    return given == nullptr ? std::vector<std::string>()
                            : std::vector<std::string>(absl::StrSplit(given, ','));
  }();
  for (const std::string& one : more) {
    if (one == name || one == "all") return true;
    if (one[0] == '-' && std::string_view(one).substr(1) == name) return false;
  }
  for (const Switch& one : kSwitches) {
    if (name == one.name) return one.on;
  }
  std::abort();  // a switch that is not listed
}

}  // namespace cairn::stateful
