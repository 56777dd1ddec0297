// The findings of a report, for databases with known contents.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include "cairn/options.h"
#include "test/tools/report_index.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(report_facts_test)
namespace {

using tools::FreshnessFacts;
using tools::Report;
using tools::ReportOptions;

// Rows 0 … size - 1; every tenth is "ten".
std::map<std::string, std::string> Rows(int size) {
  std::map<std::string, std::string> rows;
  for (int i = 0; i < size; ++i) {
    rows["row" + std::to_string(i)] = i % 10 == 0 ? "ten" : std::to_string(i % 97);
  }
  return rows;
}

FreshnessFacts Freshness(const ReportIndex& index, const std::string& db) {
  ReportOptions options;
  options.trials = false;
  options.database = db;
  const Report report = index.Gather(options);
  Page(report);
  return report.freshness;
}

BOOST_AUTO_TEST_CASE(counts_are_those_of_the_database) {
  const ReportIndex index(Rows(1000), "digits = value:text");
  const Report report = index.Gather();
  BOOST_TEST(report.title == "digits");
  BOOST_TEST(report.stats.entries == 1000u);
  BOOST_TEST(report.stats.rows == 1000u);
  BOOST_TEST(report.keys.exact);
  BOOST_TEST(report.keys.looked_at == 1000u);
  BOOST_TEST(report.keys.first == "0");
  BOOST_TEST(report.keys.last == "ten");
  // The oracle.
  std::map<std::string, uint64_t> keys;
  std::map<uint64_t, uint64_t> lengths;
  for (const auto& [key, value] : Rows(1000)) {
    ++keys[value];
    ++lengths[value.size()];
  }
  BOOST_TEST(report.stats.distinct_keys == keys.size());
  BOOST_REQUIRE(report.keys.top.size() == 10u);
  BOOST_TEST(report.keys.top[0].key == "ten");
  for (size_t i = 0; i < 10; ++i) {
    BOOST_TEST(report.keys.top[i].entries == keys[report.keys.top[i].key]);
    BOOST_TEST((i == 0 || report.keys.top[i].entries <= report.keys.top[i - 1].entries));
  }
  uint64_t sum = 0, entries = 0;
  for (const tools::SizeCount& size : report.keys.keys_by_entries) {
    BOOST_TEST(size.least == size.most);
    sum += size.count;
    entries += size.count * size.least;
  }
  BOOST_TEST(sum == keys.size());
  BOOST_TEST(entries == 1000u);
  for (const tools::SizeCount& size : report.keys.parts[0].lengths) {
    BOOST_TEST(size.count == lengths[size.least]);
  }
  const tools::PrefixShare& last = report.keys.parts[0].prefixes.back();
  BOOST_TEST(last.prefix == "ten");
  BOOST_TEST(last.values == keys["ten"]);
  uint64_t bytes = 0;
  for (const tools::FileSize& file : report.files) {
    BOOST_TEST(file.bytes == std::filesystem::file_size(index.index() + "/" + file.name));
    bytes += file.bytes;
  }
  BOOST_TEST(bytes > 0u);
  BOOST_REQUIRE(report.built.has_value());
  BOOST_TEST(absl::Now() - *report.built < absl::Hours(1));
  BOOST_TEST(!report.speed.measured);
  BOOST_TEST(Holds(Page(report), "Nothing was timed."));
}

BOOST_AUTO_TEST_CASE(small_whole_numbers_have_an_interval_each) {
  std::map<std::string, std::string> rows;
  for (int i = 0; i < 500; ++i) rows["k" + std::to_string(i)] = std::to_string(i % 25);
  const Report report = ReportIndex(rows, "value.field('|',0):u8, key:text").Gather();
  const tools::Histogram& histogram = report.keys.parts[0].histogram.value();
  BOOST_TEST(histogram.counts == std::vector<uint64_t>(25, 20), boost::test_tools::per_element());
  BOOST_TEST(histogram.median == 12);
  BOOST_TEST(report.keys.parts[1].looked_at == 500u);
  BOOST_TEST(Holds(Page(report), "<tr><th scope=\"row\">24</th><td>20</td><td>4%</td></tr>"));
}

BOOST_AUTO_TEST_CASE(numbers_far_away_do_not_hide_the_others) {
  std::map<std::string, std::string> rows;
  for (int i = 0; i < 1000; ++i) rows["k" + std::to_string(i)] = std::to_string(i);
  rows["far"] = "18446744073709551615";
  const Report report = ReportIndex(rows, "value.field('|',0):u64").Gather();
  const tools::Histogram& histogram = report.keys.parts[0].histogram.value();
  BOOST_TEST(histogram.upper < 2000);
  BOOST_TEST(histogram.above == 1u);
  BOOST_TEST(histogram.below == 0u);
  BOOST_TEST(std::accumulate(histogram.counts.begin(), histogram.counts.end(), uint64_t{0}) ==
             1000u);
  BOOST_TEST(Holds(Page(report), "are above, up to 1.84467e+19"));
}

BOOST_AUTO_TEST_CASE(numbers_further_apart_than_any_number_have_a_histogram) {
  constexpr double kMax = std::numeric_limits<double>::max();
  std::map<std::string, std::string> rows;
  for (int i = 0; i < 300; ++i) {
    const double number = i % 3 == 0 ? -kMax : i % 3 == 1 ? kMax : 1.0;
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    rows["k" + std::to_string(i)] = bytes;
  }
  const ReportIndex index(rows, "value[0:8]:f64le");
  for (const uint64_t scan_most : {1000, 0}) {  // of all, or of a sample counted exactly
    ReportOptions options;
    options.trials = false;
    options.scan_most = scan_most;
    const Report report = index.Gather(options);
    const tools::Histogram& histogram = report.keys.parts[0].histogram.value();
    BOOST_REQUIRE(histogram.counts.size() > 2u);
    BOOST_TEST(histogram.counts.front() == 100u);
    BOOST_TEST(histogram.counts[histogram.counts.size() / 2] == 100u);
    BOOST_TEST(histogram.counts.back() == 100u);
    const std::string page = Page(report);
    BOOST_TEST(!Holds(page, "nan\""), page);
    BOOST_TEST(!Holds(page, "nan to "));
    BOOST_TEST(!Holds(page, "inf<"));
    BOOST_TEST(Holds(page, "-1.798e+308 to -1.738e+308"));
  }
}

BOOST_AUTO_TEST_CASE(a_sample_of_long_keys_is_smaller) {
  std::map<std::string, std::string> rows;
  for (int i = 0; i < 4; ++i)
    rows["k" + std::to_string(i)] = std::string(size_t{1} << 20, static_cast<char>('a' + i));
  ReportOptions options;
  options.trials = false;
  options.scan_most = 0;
  const Report report = ReportIndex(rows, "value:text").Gather(options);
  BOOST_TEST(report.keys.looked_at >= 128u);
  BOOST_TEST(report.keys.looked_at <= 512u);  // of 4096, which would take 4 GB
  BOOST_TEST(report.keys.parts[0].lengths[0].least == uint64_t{1} << 20);
  Page(report);
}

BOOST_AUTO_TEST_CASE(special_indexes_have_sensible_pages) {
  BOOST_TEST(Holds(Page(ReportIndex({}, "value:text").Gather()), "The index is empty."));
  for (const bool trials : {false, true}) {
    ReportOptions options;
    options.trials = trials;
    options.seconds = 0.05;
    const std::map<std::string, std::string> one = {{"a", "1"}};
    for (const char* spec : {"value:text", "value.field('|',0):u64", "value.field('|',0):f64"}) {
      const std::string page = Page(ReportIndex(one, spec).Gather(options));
      BOOST_TEST(Holds(page, "Each key has one entry."), page);
      BOOST_TEST(Holds(page, "All 1 entry was read."));
    }
    std::map<std::string, std::string> same;
    for (int i = 0; i < 100; ++i) same["k" + std::to_string(i)] = "7";
    for (const char* spec : {"value:text", "value.field('|',0):u32"}) {
      const Report report = ReportIndex(same, spec).Gather(options);
      BOOST_TEST(report.keys.top[0].entries == 100u);
      BOOST_TEST(Holds(Page(report), "All entries have the same key."));
    }
    Page(ReportIndex({}, "value.field('|',0):u64").Gather(options));

    const Report report =
        ReportIndex({{"a", std::string("\0\0\0\0\0\0\xf8\x7f", 8)}}, "value[0:8]:f64le")
            .Gather(options);
    BOOST_TEST(report.keys.parts[0].nans == 1u);
    BOOST_TEST(!report.keys.parts[0].histogram.has_value());
    BOOST_TEST(Holds(Page(report), "100% are not a number"));
  }
  const Report nulls =
      ReportIndex({{"a", "x"}, {"b", "1|y"}}, "value.field('|',1):text, nulls=first").Gather();
  BOOST_TEST(nulls.keys.parts[0].nulls == 1u);
  BOOST_TEST(nulls.keys.first == "null");
  BOOST_TEST(Holds(Page(nulls), "50% are null"));
}

BOOST_AUTO_TEST_CASE(batches_are_timed_on_every_route) {
  ReportOptions options;
  options.seconds = 0.3;
  const ReportIndex index(Rows(2000), "value:text");
  const Report report = index.Gather(options);
  BOOST_TEST(report.speed.measured);
  BOOST_TEST(report.speed.routes.size() == report.stats.routes.size());
  std::map<uint64_t, int> chosen;
  for (const tools::RouteTimes& route : report.speed.routes) {
    for (const tools::BatchTime& time : route.times) {
      BOOST_TEST(time.seconds > 0);
      BOOST_TEST(time.predicted > 0);
      chosen[time.queries] += time.chosen;
    }
  }
  BOOST_TEST(chosen[1] == 1);
  BOOST_TEST(chosen[16] == 1);
  BOOST_TEST(report.speed.works.size() == 5u);
  const std::string page = Page(report);
  BOOST_TEST(Holds(page, "for a single key"));
  BOOST_TEST(Holds(page, report.speed.routes[0].route));
}

BOOST_AUTO_TEST_CASE(freshness_says_whether_the_index_can_catch_up) {
  using State = FreshnessFacts::State;
  const ReportIndex index(Rows(100), "value:text");
  BOOST_TEST(static_cast<int>(Freshness(index, "").state) == static_cast<int>(State::kNotAsked));
  BOOST_TEST(static_cast<int>(Freshness(index, index.db()).state) ==
             static_cast<int>(State::kCurrent));
  index.Write({{"new", "x"}, {"row1", "y"}});
  const std::string manifest = ReadFile(index.index() + "/MANIFEST");
  const FreshnessFacts ahead = Freshness(index, index.db());
  BOOST_TEST(static_cast<int>(ahead.state) == static_cast<int>(State::kCanCatchUp));
  BOOST_TEST(ahead.sequence == 102u);
  BOOST_TEST(ahead.changes == 2u);
  BOOST_TEST(ahead.rows == 2u);
  BOOST_TEST(ahead.log_bytes > 0u);
  // The report stores nothing.
  BOOST_TEST(ReadFile(index.index() + "/MANIFEST") == manifest);
  BOOST_TEST(index.Open()->sequence() == 100u);

  const FreshnessFacts missing = Freshness(index, index.directory() / "nowhere");
  BOOST_TEST(static_cast<int>(missing.state) == static_cast<int>(State::kUnreadable));
  BOOST_TEST(missing.message != "");
  const ReportIndex other(Rows(10), "value:text");
  const FreshnessFacts refused = Freshness(index, other.db());
  BOOST_TEST(static_cast<int>(refused.state) == static_cast<int>(State::kCannot));
  BOOST_TEST(refused.message != "");
}

BOOST_AUTO_TEST_CASE(what_was_caught_up_is_told_apart) {
  const ReportIndex index(Rows(100), "value:text");
  index.Write({{"new", "x"}});
  const auto source = RequireOk(SnapshotSource::FromDirectory(index.db()));
  RequireOk(index.Open()->CatchUp(*source));
  const Report report = index.Gather();
  BOOST_TEST(report.stats.delta.added_entries == 1u);
  const std::string page = Page(report);
  BOOST_TEST(Holds(page, "<b>100 entries</b> of the base"));
  BOOST_TEST(Holds(page, "<b>1</b> added since"));
  BOOST_TEST(Holds(
      page, report.should_compact ? "A compaction pays now" : "A compaction does not pay yet"));
}

BOOST_AUTO_TEST_CASE(a_damaged_index_and_an_interrupt_are_errors) {
  const ReportIndex index(Rows(100), "value:text");
  ReportOptions options;
  const std::atomic<bool> cancelled = true;
  options.cancelled = &cancelled;
  BOOST_TEST(absl::IsCancelled(tools::GatherReport(index.index(), options).status()));
  options.cancelled = nullptr;
  BOOST_TEST(
      absl::IsNotFound(tools::GatherReport(index.directory() / "nowhere", options).status()));
  for (const auto& file : std::filesystem::directory_iterator(index.index())) {
    if (file.path().extension() != ".run") continue;
    std::string bytes = ReadFile(file.path());
    bytes[bytes.size() / 2] ^= 1;
    WriteFile(file.path(), bytes);
  }
  BOOST_TEST(absl::IsDataLoss(tools::GatherReport(index.index(), options).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
