#pragma once

#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <string>

#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/tools/run_tool.h"
#include "test/tools/well_formed.h"
#include "tools/report/report.h"

namespace cairn {

// A database of some rows with an index over them, for reports.
class ReportIndex {
 public:
  ReportIndex(const std::map<std::string, std::string>& rows, const std::string& spec,
              const std::string& name = "index")
      : name_(name) {
    Write(rows);
    const auto source = RequireOk(SnapshotSource::FromDirectory(db()));
    RequireOk(SecondaryIndex::Build(*source, RequireOk(IndexSpec::Parse(spec)), index()));
  }

  std::string db() const { return directory_ / "db"; }
  std::string index() const { return directory_ / name_; }
  const TemporaryDirectory& directory() const { return directory_; }

  void Write(const std::map<std::string, std::string>& rows) const {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.WAL_ttl_seconds = 3600;  // the log is kept for indexes to catch up
    std::unique_ptr<rocksdb::DB> opened;
    RequireOk(rocksdb::DB::Open(options, db(), Into(&opened)));
    for (const auto& [key, value] : rows) RequireOk(opened->Put({}, key, value));
  }

  // Uses binary search over the files, like a report without trials.
  std::unique_ptr<SecondaryIndex> Open() const {
    OpenOptions options;
    options.ordered_indexes = {"cpu:sorted_array"};
    options.calibration = Calibration::kNone;
    return RequireOk(SecondaryIndex::Open(index(), options));
  }

  tools::Report Gather(const tools::ReportOptions& options) const {
    return RequireOk(tools::GatherReport(index(), options));
  }
  // Nothing is timed.
  tools::Report Gather() const {
    tools::ReportOptions options;
    options.trials = false;
    return Gather(options);
  }

 private:
  TemporaryDirectory directory_;
  std::string name_;
};

// The page, which must be well-formed.
inline std::string Page(const tools::Report& report) {
  std::string page = tools::RenderReport(report);
  BOOST_TEST(XmlCheck(page).Fault() == "");
  return page;
}

inline bool Holds(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

}  // namespace cairn
