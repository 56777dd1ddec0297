#include "cpu_fast/strings/partial_key_tree.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(partial_key_tree_test)
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run, std::optional<SimdLevel> level = std::nullopt) {
  return RequireOk(PartialKeyTree::Build(std::move(run), {.simd = level, .hash = false}));
}

// All point operations at every SIMD level.
void CheckEveryLevel(const OracleData<std::string>& data) {
  const SortedRun run = OracleRun(data);
  for (SimdLevel level : SupportedSimdLevels()) {
    CheckPointsAgainstOracle(*Make(run, level), data);
  }
}

// `size` keys, key(i) each, with queries for them and for keys near them.
OracleData<std::string> Data(const std::string& name, size_t size,
                             const std::function<std::string(size_t)>& key) {
  std::vector<std::string> keys(size);
  for (size_t i = 0; i < size; ++i) keys[i] = key(i);
  return oracle::FinishStrings(name + ", " + std::to_string(size), std::move(keys));
}

std::string Letters(std::mt19937_64* random, size_t length, uint64_t alphabet) {
  std::string s(length, '\0');
  for (char& c : s) c = static_cast<char>('a' + (*random)() % alphabet);
  return s;
}

// Keys that make a trie deep, its bits far apart, or its leaves without distinguishing bits.
std::vector<OracleData<std::string>> HardData() {
  auto random = TestRandom(4);
  std::vector<OracleData<std::string>> all;
  const auto add = [&](const std::string& name, size_t size, auto key) {
    size = FewerSanitized(size, 4, 1);
    all.push_back(Data(name, size, key));
  };
  add("a shared 1 KB, then one byte", 20000,
      [&](size_t) { return std::string(1024, 'p') + static_cast<char>(random()); });
  add("a shared 100 bytes", 50000,
      [&](size_t) { return std::string(100, 'p') + Letters(&random, 12, 26); });
  add("one key", 50000, [](size_t) { return std::string("the one key there is"); });
  add("one empty key", 1000, [](size_t) { return std::string(); });
  add("each key 30 times", 30000, [](size_t i) { return std::to_string(i / 30 * 7919); });
  add("each key 50 times", 30000, [](size_t i) { return std::to_string(i / 50 * 7919); });
  add("one key in two is one", 30000,
      [&](size_t i) { return i % 2 == 0 ? "kkk" : Letters(&random, 6, 4); });
  add("prefixes of one another", 3000, [](size_t i) { return std::string(i, 'a'); });
  add("prefixes of one another, 20 bytes apart", 700,
      [](size_t i) { return std::string(20 * i, 'a'); });
  add("zero bytes only", 3000, [](size_t i) { return std::string(i, '\0'); });
  add("zero bytes after letters", 20000,
      [&](size_t) { return Letters(&random, random() % 4, 3) + std::string(random() % 60, '\0'); });
  add("many chains of prefixes", 20000,
      [](size_t i) { return std::to_string(1000 + i / 200) + std::string(i % 200, 'x'); });
  add("one byte in two hundred", 30000, [&](size_t) {
    std::string s(200, 'a');
    s[random() % 200] = static_cast<char>(random());
    return s;
  });
  add("three bytes in two hundred", 30000, [&](size_t) {
    std::string s(200, 'a');
    for (int k = 0; k < 3; ++k) s[random() % 200] = 'b';
    return s;
  });
  add("one bit", 2048, [](size_t i) {
    std::string s(256, '\0');
    s[i / 8] = static_cast<char>(1 << i % 8);
    return s;
  });
  add("up to 64 KB", 100, [&](size_t i) {
    std::string s(random() % 65536, 'k');
    if (i % 2 == 0) s += Letters(&random, 3, 2);
    return s;
  });
  add("any bytes", 60000, [&](size_t) {
    std::string s(random() % 12, '\0');
    for (char& c : s) c = static_cast<char>(random());
    return s;
  });
  add("numbers of one length", 60000,
      [&](size_t) { return std::to_string(100000000000ull + random() % 800000000000ull); });
  return all;
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle, *StartsNoThread()) {
  CheckCatalogue<std::string>([](const SortedRun& run) { return Make(run); });
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_with_offsets_of_four_bytes, *StartsNoThread()) {
  CheckCatalogue<std::string>([](const SortedRun& run) { return Make(WithShortOffsets(run)); },
                              FewerSanitized(20000, 4, 1));
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_at_every_simd_level, *StartsNoThread()) {
  for (const OracleData<std::string>& data : OracleCatalogue<std::string>()) CheckEveryLevel(data);
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_on_hard_keys_at_every_simd_level, *StartsNoThread()) {
  for (const OracleData<std::string>& data : HardData()) CheckEveryLevel(data);
}

// The trie's nodes change shape at these sizes.
BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_every_small_number_of_keys, *StartsNoThread()) {
  auto random = TestRandom(5);
  for (size_t size = 0; size < 200; ++size) {
    CheckEveryLevel(Data("letters", size, [&](size_t) { return Letters(&random, 5, 3); }));
  }
}

BOOST_AUTO_TEST_CASE(no_keys_take_more_than_thirteen_bytes_each, *StartsNoThread()) {
  for (const OracleData<std::string>& data : HardData()) {
    const size_t bytes = Make(OracleRun(data))->memory_bytes();
    BOOST_TEST_MESSAGE(
        data.name << ": " << static_cast<double>(bytes) / static_cast<double>(data.keys.size()));
    BOOST_TEST(bytes <= 13 * data.keys.size() + 1024, data.name << ": " << bytes << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(takes_less_than_five_bytes_a_key) {
  auto random = TestRandom(6);
  const auto data = Data("letters", 200000, [&](size_t) { return Letters(&random, 16, 10); });
  BOOST_TEST(Make(OracleRun(data))->memory_bytes() < 5 * data.keys.size());
}

BOOST_AUTO_TEST_CASE(refuses_keys_that_are_not_bytes) {
  BOOST_TEST(absl::IsUnimplemented(PartialKeyTree::Build(SortedRun()).status()));
}

BOOST_AUTO_TEST_CASE(many_threads_ask_at_once) {
  const auto catalogue = OracleCatalogue<std::string>(30000);
  const OracleData<std::string>& data = catalogue.back();
  const auto tree = Make(OracleRun(data));
  const auto queries = oracle::Views(data.queries);
  std::vector<Position> expected(queries.size());
  RequireOk(tree->Execute(Batch::LowerBound(queries, absl::MakeSpan(expected))));
  RequireOnFourThreads([&] {
    std::vector<Position> positions(queries.size());
    bool same = true;
    for (int i = 0; i < 10; ++i) {
      same &= tree->Execute(Batch::LowerBound(queries, absl::MakeSpan(positions))).ok();
      same &= positions == expected;
    }
    return same;
  });
}

// Keys differ at many distant bits, so leaves do not distinguish some of them. A bound may be
// between two keys that are equal for the search for a prefix.
BOOST_AUTO_TEST_CASE(answers_like_the_oracle_where_bounds_are_between_ties, *StartsNoThread()) {
  for (uint64_t salt = 0; salt < FewerSanitized(40, 8, 1); ++salt) {
    auto random = TestRandom(salt);
    const size_t most = 20 + random() % 600, changes = 1 + random() % 4;
    std::vector<std::string> keys(500 + random() % 4000);
    for (std::string& key : keys) {
      key = std::string(random() % most, 'k');
      for (size_t c = 0; c < changes && !key.empty(); ++c) {
        key[random() % key.size()] = "\0kz\xff"[random() % 4];
      }
    }
    const auto data = oracle::FinishStrings("hardly different", std::move(keys));
    CheckPointsAgainstOracle(*RequireOk(PartialKeyTree::Build(OracleRun(data))), data);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
