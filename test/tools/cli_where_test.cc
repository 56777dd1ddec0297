// cairn where: predicates over several indexes.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "test/tools/run_tool.h"

namespace cairn {
namespace {

// A database of a few people with an index of their ages, which has no name, and one of cities.
struct People {
  People() {
    rocksdb::Options options;
    options.create_if_missing = true;
    std::unique_ptr<rocksdb::DB> opened;
    BOOST_REQUIRE(rocksdb::DB::Open(options, db(), Into(&opened)).ok());
    for (const auto& [key, value] :
         {std::pair{"ana", "30|Lisbon"}, {"bo b", "17|Oslo"}, {"eva", "41|Oslo"}, {"ida", "19"}}) {
      BOOST_REQUIRE(opened->Put({}, key, value).ok());
    }
    opened.reset();
    MustRun({"build", "--db=" + db(), "--out=" + age(), "--spec=value.field('|',0):u8"});
    MustRun({"build", "--db=" + db(), "--out=" + city(),
             "--spec=town=value.field('|',1):text,include(half=value.field('|',0):f64)"});
  }
  std::string db() const { return directory / "db"; }
  std::string age() const { return directory / "age"; }
  std::string city() const { return directory / "city"; }
  std::string Where(const std::string& where, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"where", age(), city(), "--where=" + where});
    return MustRun(more).out;
  }

  TemporaryDirectory directory;
};

BOOST_AUTO_TEST_SUITE(cli_where_test)

BOOST_AUTO_TEST_CASE(rows_counts_and_plans) {
  const People people;
  BOOST_TEST(people.Where("age >= 18") == "ana\neva\nida\n");
  BOOST_TEST(people.Where("age < 18 OR town = 'Lisbon'") == "ana\nbo\\x20b\n");
  BOOST_TEST(people.Where("NOT town = 'Oslo'") == "ana\n");
  BOOST_TEST(people.Where("age > 0 AND town IS NULL", {"--select=half"}) == "ida\t\\N\n");
  BOOST_TEST(people.Where("age > 0", {"--count"}) == "4\n");
  BOOST_TEST(people.Where("age > 0", {"--limit=0"}).empty());
  BOOST_TEST(people.Where("town LIKE 'O%'", {"--order-by=age", "--reverse",
                                             "--select=town.half"}) == "eva\t41\nbo\\x20b\t17\n");
  BOOST_TEST(people.Where("age > 0", {"--order-by=age", "--limit=2"}) == "bo\\x20b\nida\n");
  const ToolResult explained = MustRun({"where", people.age(), people.city(), "--count",
                                        "--explain", "--where=age > 18 AND town = 'Oslo'"});
  BOOST_TEST(explained.out == "1\n");
  BOOST_TEST(absl::StrContains(explained.err, "town = 'Oslo': 2 entries of 'town'"), explained.err);
}

BOOST_AUTO_TEST_CASE(errors) {
  const People people;
  const auto failed = [&](const std::string& where, const std::string& message) {
    const ToolResult result =
        RunTool({"where", people.age(), people.city() + "/", "--where=" + where});
    BOOST_TEST(result.exit_status != 0);
    BOOST_TEST(result.out.empty());
    BOOST_TEST(absl::StrContains(result.err, message), result.err);
  };
  failed("age >", "predicate, at offset 5: expected a number");
  failed("city = 'Oslo'", "the group has no index 'city', only age, town");
  failed("age = 'x'", "index 'age'");
  failed("town IS NULL", "does not keep rows without a key");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
