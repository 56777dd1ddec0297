#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"

// Parts of the stateful test that are switched on or off by name. A part that finds a defect is off
// until the defect is fixed; CAIRN_TEST_SWITCHES=name,other or =all switches more on.

namespace cairn::stateful {

struct Switch {
  const char* name;
  bool on;
};

inline constexpr Switch kSwitches[] = {
    {"unlogged_writes", true},
    {"empty_ranges", true},
    {"inverted_ranges", true},
    {"failing_writes", true},
    {"failing_writes_pipelined", true},
    {"failing_writes_not_paranoid", true},
    {"ingest_new_family", true},
    {"failing_ingest", true},
    {"import_family", true},
    {"remake_past_object", true},
    {"delete_file", true},
    {"filter_log", true},
    // A RocksDB with assertions aborts (MemTable::Add, first_seqno_) if it writes after a recovery
    // that ended in an earlier state.
    {"best_efforts", false},
    {"plain_best_efforts", false},
    {"removed_files", true},
    {"lost_logs", true},
    {"removing_filters", true},
    {"changing_filters", true},
    {"fifo", true},
    {"repair", true},
    {"full_disk", true},
    {"race_rows", true},
    {"unique_while_building", true},
    {"extractor_versions", true},
    {"operator_names", true},
    {"unordered", true},
    {"pages_of_many_keys", true},
    {"distinct_groups", true},
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
