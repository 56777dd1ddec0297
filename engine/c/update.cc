// Brings indexes up to date, and verifies them.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "cairn/options.h"
#include "engine/c/error.h"
#include "engine/c/handles.h"
#include "engine/c/progress.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status DoCatchUp(cairn_index* index, const cairn_source* source,
                       const cairn_catch_up_options* given, cairn_catch_up_report* report) {
  RETURN_IF_ERROR(CheckOfDatabase(index));
  RETURN_IF_ERROR(CheckNotNull(source, "source"));
  // Check this before the work: afterwards an error would lose the report.
  ASSIGN_OR_RETURN(cairn_catch_up_report shown, ReadOptions(report, "report"));
  ASSIGN_OR_RETURN(const cairn_catch_up_options read, ReadOptions(given, "options"));
  CatchUpOptions options;
  options.max_bytes_per_second = read.max_bytes_per_second;
  options.durable = read.not_durable == 0;
  options.skip_identity_check = read.skip_identity_check != 0;
  if (read.cancel != nullptr) options.cancelled = &read.cancel->set;
  ASSIGN_OR_RETURN(const CatchUpReport done, index->secondary->CatchUp(*source->source, options));
  if (report == nullptr) return absl::OkStatus();
  shown = {report->size, done.changes, done.rows, done.log_bytes, done.sequence};
  std::memcpy(report, &shown, std::min(report->size, sizeof shown));
  return absl::OkStatus();
}

absl::Status DoMerge(cairn_index* index, const cairn_compact_options* given) {
  RETURN_IF_ERROR(CheckOfDatabase(index));
  ASSIGN_OR_RETURN(const cairn_compact_options read, ReadOptions(given, "options"));
  CompactOptions options;
  RETURN_IF_ERROR(ReadThreads(read.threads, &options.threads));
  options.max_bytes_per_second = read.max_bytes_per_second;
  options.on_progress = OnProgress(read.on_progress, read.context);
  if (read.cancel != nullptr) options.cancelled = &read.cancel->set;
  return index->secondary->Compact(options);
}

absl::Status DoVerifyAgainst(const cairn_index* index, const cairn_source* source,
                             size_t max_differences, char** differences) {
  RETURN_IF_ERROR(CheckOfDatabase(index));
  RETURN_IF_ERROR(CheckNotNull(source, "source", differences, "differences"));
  std::vector<std::string> lines;
  RETURN_IF_ERROR(index->secondary->VerifyAgainst(*source->source, max_differences, &lines));
  *differences = lines.empty() ? nullptr : NewText(absl::StrJoin(lines, "\n"));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cairn

cairn_error* cairn_catch_up(cairn_index* index, const cairn_source* source,
                            const cairn_catch_up_options* options, cairn_catch_up_report* report) {
  return cairn::CFunction("catching up",
                          [&] { return cairn::DoCatchUp(index, source, options, report); });
}

cairn_error* cairn_index_compact(cairn_index* index, const cairn_compact_options* options) {
  return cairn::CFunction("merging", [&] { return cairn::DoMerge(index, options); });
}

bool cairn_index_should_compact(const cairn_index* index) try {
  return index != nullptr && index->secondary != nullptr && index->secondary->ShouldCompact();
} catch (...) {
  return false;
}

cairn_error* cairn_verify(const cairn_index* index) {
  return cairn::CFunction("verifying an index", [&] {
    RETURN_IF_ERROR(cairn::CheckOfDatabase(index));
    return index->secondary->Verify();
  });
}

cairn_error* cairn_verify_against(const cairn_index* index, const cairn_source* source,
                                  size_t max_differences, char** differences) {
  return cairn::CFunction("comparing an index with its database", [&] {
    return cairn::DoVerifyAgainst(index, source, max_differences, differences);
  });
}
