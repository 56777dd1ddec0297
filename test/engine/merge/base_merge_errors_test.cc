#include "engine/merge/base_merge.h"

#include <sys/resource.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <vector>

#include "cairn/secondary_index.h"
#include "engine/delta_files/delta_file.h"
#include "engine/rows/row_table_file.h"
#include "engine/version/base.h"
#include "index/files/run_file.h"
#include "test/engine/delta/delta_history.h"
#include "test/engine/merge/merge_directory.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(base_merge_errors_test)
namespace {

// 60,000 rows with one key each, and a few later ones.
struct Medium {
  History<uint64_t> history{{.salt = 13, .primary_keys = 200'000, .percent_without = 0}};
  ModelRows<uint64_t> rows = history.Rows(60'000);
  std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  Directory directory;

  Medium() { Apply(writer.get(), history.Updates(1000, &rows)); }
};

BOOST_AUTO_TEST_CASE(a_cancelled_merge_leaves_no_files) {
  Medium medium;
  for (int threads : {1, 2, 4}) {
    for (int rate : {0, 500'000}) {
      std::atomic<bool> cancelled{rate == 0};  // from the start, or in the middle
      CompactOptions options;
      options.threads = threads;
      options.max_bytes_per_second = static_cast<uint64_t>(rate);
      options.cancelled = &cancelled;
      uint64_t most = 0;
      options.on_progress = [&](const Progress& progress) {
        most = std::max(most, progress.done);
        if (progress.done > 0) cancelled = true;
      };
      const absl::Status status =
          MergeBase(*medium.writer->delta(), medium.directory.index.get(), options).status();
      BOOST_CHECK_MESSAGE(absl::IsCancelled(status), status);
      BOOST_CHECK(medium.directory.Files().empty());
      if (rate != 0) BOOST_TEST(most > 0u);
      BOOST_TEST(most < medium.rows.size() * 2);
    }
  }
}

BOOST_AUTO_TEST_CASE(progress_ends_with_all_rows_and_entries) {
  Medium medium;
  Progress last{};
  CompactOptions options;
  options.on_progress = [&](const Progress& progress) { last = progress; };
  const auto merged =
      RequireOk(MergeBase(*medium.writer->delta(), medium.directory.index.get(), options));
  BOOST_CHECK(last.phase == Progress::Phase::kWrite);
  BOOST_TEST(last.done == merged.rows + merged.entries);
  BOOST_TEST(last.total == merged.rows + merged.entries);
}

BOOST_AUTO_TEST_CASE(errors_of_the_file_system_surface_and_leave_no_files) {
  Medium medium;
  rlimit before;
  BOOST_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const WrittenBase merged = Merge(*medium.writer->delta(), medium.directory.index.get(), 1);
  medium.directory.index = nullptr;  // removes the files
  medium.directory.index = *IndexDirectory::OpenForWrite(medium.directory.parent / "index");
  // Either nothing fits, or one of the files does not, or only its end does not.
  for (rlim_t bytes :
       {uint64_t{1}, uint64_t{100'000}, std::min(merged.run.size, merged.row_table.size) - 1,
        std::max(merged.run.size, merged.row_table.size) - 1}) {
    for (int threads : {1, 4}) {
      CompactOptions options;
      options.threads = threads;
      rlimit limit = before;
      limit.rlim_cur = bytes;
      BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
      const absl::Status status =
          MergeBase(*medium.writer->delta(), medium.directory.index.get(), options).status();
      BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
      BOOST_CHECK_MESSAGE(absl::IsResourceExhausted(status), status);
      BOOST_CHECK(medium.directory.Files().empty());
    }
  }
  std::signal(SIGXFSZ, handler);
  CheckIsFreshBuild(Merge(*medium.writer->delta(), medium.directory.index.get(), 1),
                    medium.directory, medium.rows);

  std::filesystem::remove_all(medium.directory.index->path());
  const absl::Status gone =
      MergeBase(*medium.writer->delta(), medium.directory.index.get(), {}).status();
  BOOST_CHECK_MESSAGE(absl::IsNotFound(gone), gone);
}

BOOST_AUTO_TEST_CASE(a_base_that_names_rows_it_does_not_have_is_data_loss) {
  const auto writer = *DeltaWriter::Create(
      *SortedRun::FromSorted(std::vector<uint32_t>{1, 2}, {0, 7}), MakeRowTable({"a", "b"}));
  Directory directory;
  const absl::Status status = MergeBase(*writer->delta(), directory.index.get(), {}).status();
  BOOST_CHECK_MESSAGE(absl::IsDataLoss(status), status);
  BOOST_CHECK(directory.Files().empty());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
