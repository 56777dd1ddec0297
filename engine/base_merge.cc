#include "engine/base_merge.h"

#include <unistd.h>

#include <algorithm>
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
#include "index/parallel.h"
#include "index/run_file.h"
#include "index/topology.h"

namespace cairn {
namespace {

absl::Status NoMemory(const Delta& delta) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("no memory to merge %d entries into a base of %d", delta.added_entries(),
                      delta.base_run.size()));
}

// The two halves of a merge, entries and rows, and what they share.
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
    absl::Status halves[2];
    ParallelFor(threads_, 2, [&](size_t half) {
      halves[half] =
          half == 0 ? WriteEntries(std::max(1, threads_ / 2)) : WriteRows(threads_ - threads_ / 2);
      if (!halves[half].ok()) pace_.Stop();
    });
    // Where one half failed the other was cancelled.
    absl::Status status = halves[0].ok() || absl::IsCancelled(halves[0]) ? halves[1] : halves[0];
    if (status.ok()) status = halves[0];
    if (status.ok()) return merged_;
    for (const ManifestFile* file : {&merged_.run, &merged_.row_table}) {
      if (!file->name.empty()) unlink(directory_->PathOf(file->name).c_str());
    }
    return status;
  }

 private:
  absl::Status WriteEntries(int threads) try {
    const std::string name = directory_->NextFileName("base", "run");
    absl::StatusOr<std::unique_ptr<RunFileWriter>> file =
        RunFileWriter::Create(directory_->PathOf(name), delta_.base_run.kind());
    if (!file.ok()) return file.status();
    if (absl::Status s = MergeEntries(delta_, ids_, threads, &pace_, file->get()); !s.ok()) {
      return s;
    }
    if (absl::Status s = (*file)->Finish(); !s.ok()) return s;
    merged_.entries = (*file)->properties().entries;
    merged_.distinct_keys = (*file)->properties().distinct_keys;
    merged_.run = {name, (*file)->file().size(), (*file)->file().header_checksum()};
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory(delta_);
  }

  absl::Status WriteRows(int threads) try {
    const std::string name = directory_->NextFileName("rows", "tbl");
    const size_t parts = MergedRowParts(ids_.rows(), threads);
    absl::StatusOr<std::unique_ptr<RowTableFileWriter>> file =
        RowTableFileWriter::Create(directory_->PathOf(name), parts);
    if (!file.ok()) return file.status();
    absl::Status s = MergeRows(delta_, ids_, parts, threads, &pace_, &(*file)->table());
    if (s.ok()) s = (*file)->Finish();
    if (!s.ok()) return s;
    merged_.rows = ids_.rows();
    merged_.row_table = {name, (*file)->size(), (*file)->header_checksum()};
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory(delta_);
  }

  const Delta& delta_;
  IndexDirectory* const directory_;
  const int threads_;
  const MergedRowIds ids_;
  MergePace pace_;
  MergedBase merged_;
};

}  // namespace

absl::StatusOr<MergedBase> MergeBase(const Delta& delta, IndexDirectory* directory,
                                     const MergeOptions& options) {
  try {
    return BaseMerge(delta, directory, options).Run();
  } catch (const std::bad_alloc&) {
    return NoMemory(delta);
  }
}

Manifest MergedBase::Follow(const Manifest& current, size_t merged_deltas) const {
  Manifest next = current;
  next.rows = rows;
  next.entries = entries;
  next.counts["distinct_keys"] = distinct_keys;
  next.counts.erase("rows_skipped");
  next.counts.erase("rows_without_key");
  next.files = {run, row_table};
  for (const ManifestFile& file : current.files) {
    std::string_view prefix, extension;
    uint64_t number = 0;
    ParseIndexFileName(file.name, &prefix, &number, &extension);
    if (prefix == "base" || prefix == "rows") continue;
    if (prefix == "delta" && merged_deltas > 0) {
      --merged_deltas;
      continue;
    }
    next.files.push_back(file);
  }
  return next;
}

}  // namespace cairn
