// Compares keys by rank, and a sample's results, with all keys of an index.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "test/test_random.h"
#include "test/tools/report_index.h"
#include "tools/report/key_facts.h"
#include "tools/report/key_sample.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(report_sample_test)
namespace {

using tools::Deadline;

const Deadline kNever = Deadline::max();

std::string LittleEndian(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i);
  return text;
}

std::string LittleEndian(double number) {
  uint64_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return LittleEndian(bits, 8);
}

// Checks that every rank's key is the one that a walk in order finds.
void CheckRanks(const ReportIndex& index) {
  const auto opened = index.Open();
  EncodedKeys walked(opened->kind());
  const bool finished =
      RequireOk(tools::VisitAllKeys(*opened, kNever, [&](const EncodedKeys& keys, size_t i) {
        tools::AppendKey(keys, i, &walked);
      }));
  BOOST_TEST(finished);
  std::vector<uint64_t> ranks(walked.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), TestRandom());
  const EncodedKeys found = RequireOk(tools::KeysOfRanks(*opened, ranks, kNever));
  BOOST_REQUIRE(found.size() == ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    switch (opened->kind()) {
      case PhysicalType::kU32:
        BOOST_REQUIRE(found.u32(i) == walked.u32(ranks[i]));
        break;
      case PhysicalType::kU64:
        BOOST_REQUIRE(found.u64(i) == walked.u64(ranks[i]));
        break;
      case PhysicalType::kBytes:
        BOOST_REQUIRE(found.bytes(i) == walked.bytes(ranks[i]));
        break;
    }
  }
}

BOOST_AUTO_TEST_CASE(numbers_are_found_by_rank) {
  auto random = TestRandom();
  std::map<std::string, std::string> rows;
  const uint64_t ends[] = {0, 1, UINT32_MAX, UINT64_MAX, UINT64_MAX - 1};
  for (int i = 0; i < 2000; ++i) {
    const uint64_t number = i < 5 ? ends[i] : random() >> random() % 64;
    rows["k" + std::to_string(i)] = LittleEndian(number, 8);
  }
  CheckRanks(ReportIndex(rows, "value[0:8]:u64le"));
  CheckRanks(ReportIndex(rows, "value[0:4]:u32le"));
}

BOOST_AUTO_TEST_CASE(bytes_are_found_by_rank) {
  auto random = TestRandom();
  std::map<std::string, std::string> rows;
  for (int i = 0; i < 2000; ++i) {
    std::string key(random() % 6, '\0');
    for (char& c : key) c = "\0\0a\xff"[random() % 4];
    if (random() % 4 == 0) key = std::string(40, 'x') + key;
    rows["k" + std::to_string(i)] = "v" + key;
  }
  CheckRanks(ReportIndex(rows, "value:bytes"));
  CheckRanks(ReportIndex(rows, "value[1:]:text, key:text"));
}

BOOST_AUTO_TEST_CASE(what_a_sample_says_of_the_whole_key_is_exact) {
  auto random = TestRandom();
  std::map<std::string, std::string> rows;
  std::vector<double> numbers;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3000; ++i) {
    double number = static_cast<double>(random() % 100000) / 7 - 5000;
    if (i < 30) number = i % 3 == 0 ? kInfinity : i % 3 == 1 ? -kInfinity : std::nan("");
    rows["k" + std::to_string(i)] = LittleEndian(number);
    if (std::isfinite(number)) numbers.push_back(number);
  }
  const ReportIndex index(rows, "value[0:8]:f64le");
  tools::ReportOptions options;
  options.trials = false;
  options.scan_most = 0;
  const tools::Report report = index.Gather(options);
  BOOST_TEST(!report.keys.exact);
  const tools::PartFacts& part = report.keys.parts[0];
  BOOST_TEST(part.exact);
  BOOST_TEST(part.looked_at == 3000u);
  BOOST_TEST(part.nans == 10u);
  BOOST_TEST(part.lowest == 10u);
  BOOST_TEST(part.highest == 10u);
  BOOST_REQUIRE(part.histogram.has_value());
  const tools::Histogram& histogram = *part.histogram;
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  BOOST_TEST(histogram.least == *least);
  BOOST_TEST(histogram.most == *most);
  uint64_t sum = histogram.below + histogram.above;
  const double width =
      (histogram.upper - histogram.lower) / static_cast<double>(histogram.counts.size());
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const double from = histogram.lower + width * static_cast<double>(i);
    const double to = histogram.lower + width * static_cast<double>(i + 1);
    const bool is_last = i + 1 == histogram.counts.size();
    const auto count = std::count_if(numbers.begin(), numbers.end(), [&](double number) {
      return number >= from && (is_last || number < to);
    });
    BOOST_TEST(histogram.counts[i] == static_cast<uint64_t>(count));
    sum += histogram.counts[i];
  }
  BOOST_TEST(sum == numbers.size());
  BOOST_TEST(Holds(Page(report), "From a random sample of 4,096 entries"));
}

BOOST_AUTO_TEST_CASE(shares_of_prefixes_are_exact_and_duplicates_estimated) {
  std::map<std::string, std::string> rows;
  // 2,000 entries with one key, 1,000 with a unique key each.
  for (int i = 0; i < 3000; ++i) {
    rows["k" + std::to_string(i)] = i < 2000 ? "Lisbon" : "Oslo " + std::to_string(i);
  }
  const ReportIndex index(rows, "value:text");
  tools::ReportOptions options;
  options.trials = false;
  options.scan_most = 0;
  const tools::KeyFacts facts = index.Gather(options).keys;
  BOOST_REQUIRE(facts.parts[0].prefixes.size() == 2u);
  BOOST_TEST(facts.parts[0].prefixes[0].prefix == "Lisbon");
  BOOST_TEST(facts.parts[0].prefixes[0].values == 2000u);
  BOOST_TEST(facts.parts[0].prefixes[1].prefix == "Oslo 2");
  BOOST_TEST(facts.parts[0].prefixes[1].values == 1000u);
  BOOST_REQUIRE(!facts.top.empty());
  BOOST_TEST(facts.top[0].key == "Lisbon");
  BOOST_TEST(facts.top[0].entries == 2000u);
  BOOST_REQUIRE(facts.keys_by_entries.size() == 2u);
  BOOST_TEST(facts.keys_by_entries[0].least == 1u);
  // A sample of 4,096 draws.
  BOOST_TEST(facts.keys_by_entries[0].count > 900u);
  BOOST_TEST(facts.keys_by_entries[0].count < 1100u);
  BOOST_TEST(facts.keys_by_entries[1].least == 2000u);
  BOOST_TEST(facts.keys_by_entries[1].count == 1u);
}

BOOST_AUTO_TEST_CASE(a_passed_deadline_ends_a_walk) {
  std::map<std::string, std::string> rows;
  for (int i = 0; i < 5000; ++i) rows["k" + std::to_string(i)] = std::to_string(i);
  const auto index = ReportIndex(rows, "value:text").Open();
  size_t visited = 0;
  const bool finished = RequireOk(
      tools::VisitAllKeys(*index, Deadline::min(), [&](const EncodedKeys&, size_t) { ++visited; }));
  BOOST_TEST(!finished);
  BOOST_TEST(visited > 0u);
  BOOST_TEST(visited < 5000u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
