#include "engine/base_merge.h"

#include <algorithm>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/entry_merge.h"
#include "engine/merge_pace.h"
#include "engine/merged_row_ids.h"
#include "engine/row_merge.h"
#include "engine/row_table_file.h"
#include "index/run_file.h"
#include "index/topology.h"

namespace cairn {
namespace {

// The two halves of a merge; what they share.
class BaseMerge {
 public:
  BaseMerge(const Delta& delta, IndexDirectory* directory, const MergeOptions& options)
      : delta_(delta),
        directory_(directory),
        threads_(Topology::Get().Threads(options.threads)),
        ids_(delta, threads_),
        pace_(options.max_bytes_per_second, options.on_progress, options.cancelled) {}

  absl::StatusOr<MergedBase> Run() {
    pace_.Start(ids_.rows() + delta_.Stats().entries);
    absl::Status entries, rows;
    if (threads_ == 1) {
      entries = WriteEntries(1);
      if (entries.ok()) rows = WriteRows(1);
    } else {
      std::future<absl::Status> rows_written =
          std::async(std::launch::async, [this] { return WriteRows(threads_ - threads_ / 2); });
      entries = WriteEntries(threads_ / 2);
      rows = rows_written.get();
    }
    // Where one half failed the other was cancelled.
    for (const absl::Status& s : {entries, rows}) {
      if (!s.ok() && !absl::IsCancelled(s)) return s;
    }
    if (!entries.ok()) return entries;
    if (!rows.ok()) return rows;
    return merged_;
  }

 private:
  ...
};

}  // namespace
}  // namespace cairn
