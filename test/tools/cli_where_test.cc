// cairn query --where: rows and groups of predicates over several indexes.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_where_test)
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
    more.insert(more.begin(), {"query", age(), city(), "--where=" + where, "--format=tsv"});
    return MustRun(more).out;
  }

  TemporaryDirectory directory;
};

BOOST_AUTO_TEST_CASE(rows_counts_and_plans) {
  const People people;
  BOOST_TEST(people.Where("age >= 18") == "ana\neva\nida\n");
  BOOST_TEST(people.Where("age < 18 OR town = 'Lisbon'") == "ana\nbo\\x20b\n");
  BOOST_TEST(people.Where("NOT town = 'Oslo'") == "ana\n");
  BOOST_TEST(people.Where("age > 0 AND town IS NULL", {"--select=half"}) == "ida\t\\N\n");
  BOOST_TEST(people.Where("age > 0", {"--count"}) == "count\n4\n");
  BOOST_TEST(people.Where("age > 0", {"--limit=0"}).empty());
  BOOST_TEST(people.Where("town LIKE 'O%'", {"--order-by=age", "--reverse",
                                             "--select=town.half"}) == "eva\t41\nbo\\x20b\t17\n");
  BOOST_TEST(people.Where("town LIKE 'O%'", {"--order-by=age desc", "--select=age,town"}) ==
             "eva\t41\tOslo\nbo\\x20b\t17\tOslo\n");
  BOOST_TEST(people.Where("age > 0", {"--order-by=age", "--limit=2"}) == "bo\\x20b\nida\n");
  const ToolResult explained =
      MustRun({"query", people.age(), people.city(), "--count", "--explain", "--format=json",
               "--where=age > 18 AND town = 'Oslo'"});
  BOOST_TEST(explained.out == "{\"count\":1}\n");
  BOOST_TEST(absl::StrContains(explained.err, "town = 'Oslo': 2 entries of 'town'"), explained.err);
}

BOOST_AUTO_TEST_CASE(errors) {
  const People people;
  const auto failed = [&](const std::string& where, const std::string& message) {
    const ToolResult result =
        RunTool({"query", people.age(), people.city() + "/", "--where=" + where});
    BOOST_TEST(result.exit_status == 2);
    BOOST_TEST(result.out.empty());
    BOOST_TEST(absl::StrContains(result.err, message), result.err);
  };
  failed("age >", "predicate, at offset 5: expected a number");
  failed("city = 'Oslo'", "the group has no index 'city'; expected one of age, town");
  failed("age = 'x'", "index 'age'");
  failed("town IS NULL", "does not keep rows without a key");
}

BOOST_AUTO_TEST_CASE(parameters_are_never_parsed) {
  const People people;
  BOOST_TEST(people.Where("town = ?", {"--param=Oslo"}) == "bo\\x20b\neva\n");
  BOOST_TEST(people.Where("age > ? AND town LIKE ?", {"--param=17", "--param=O%"}) == "eva\n");
  BOOST_TEST(people.Where("age IN (?, 30)", {"--param=19"}) == "ana\nida\n");
  BOOST_TEST(people.Where("town = ?", {"--param=x' OR town >= '"}).empty());
  BOOST_TEST(people.Where("town = ?", {"--param=a\\x41"}).empty());
  BOOST_TEST(people.Where("town >= ?", {"--param="}) == "ana\nbo\\x20b\neva\n");
  const auto refused = [&](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), {"query", people.age(), people.city()});
    const ToolResult result = RunTool(arguments);
    BOOST_TEST(result.exit_status == 2);
    BOOST_TEST(result.out.empty());
    BOOST_TEST(absl::StrContains(result.err, message), result.err);
  };
  refused({"--where=age = ?"}, "expected a value of parameter 1, found 0 values");
  refused({"--where=age = ?", "--param=1", "--param=x"}, "expected 1 parameter, one for each ?");
  refused({"--where=age = ?", "--param=x"}, "--param 1, of index 'age'");
  refused({"--where=age = ?", "--param=300"}, "--param 1, of index 'age'");
  refused({"--where=years = ?", "--param=3"}, "the group has no index 'years'");
  refused({"--param=3"}, "expected a --where");
}

BOOST_AUTO_TEST_CASE(formats_of_rows) {
  const People people;
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"query", people.age(), people.city()});
    return MustRun(arguments).out;
  };
  // Without a predicate, several indexes return all rows.
  BOOST_TEST(
      run({"--select=half"}) ==
      "primary key  half\nana          30\nbo b         17\neva          41\nida          \\N\n");
  BOOST_TEST(run({"--format=json", "--limit=1", "--select=age,town"}) ==
             "{\"primary_key\":\"ana\",\"columns\":{\"age\":30,\"town\":\"Lisbon\"}}\n");
  BOOST_TEST(run({"--format=json", "--limit=1", "--reverse"}) == "{\"primary_key\":\"ida\"}\n");
  // Floats are not accepted as integers.
  BOOST_TEST(run({"--format=json", "--limit=1", "--select=half"}) ==
             "{\"primary_key\":\"ana\",\"columns\":{\"half\":30.0}}\n");
}

BOOST_AUTO_TEST_CASE(groups_in_order_and_in_pages) {
  const People people;
  BOOST_TEST(people.Where("TRUE", {"--group-by=town", "--count", "--sum=half", "--avg=age"}) ==
             "town\tcount\tsum(half)\tavg(age)\n"
             "\\N\t1\t\\N\t19\nLisbon\t1\t30\t30\nOslo\t2\t58\t29\n");
  BOOST_TEST(people.Where("age > 0", {"--group-by=town", "--min=age", "--max=half",
                                      "--count-distinct=age", "--order-by=min(age) desc,town"}) ==
             "town\tcount_distinct(age)\tmin(age)\tmax(half)\n"
             "Lisbon\t1\t30\t30\n\\N\t1\t19\t\\N\nOslo\t2\t17\t41\n");
  BOOST_TEST(people.Where("age > 90", {"--sum=age"}) == "sum(age)\n\\N\n");
  // Only groups are counted; --reverse reverses their order.
  BOOST_TEST(people.Where("age > 0", {"--group-by=town", "--reverse", "--limit=2"}) ==
             "town\tcount\nOslo\t2\nLisbon\t1\n");
  std::string found, cursor;
  for (int page = 0; page < 4; ++page) {
    std::vector<std::string> arguments = {"query",         people.age(),    people.city(),
                                          "--limit=1",     "--format=json", "--cursor",
                                          "--group-by=age"};
    if (page == 3) arguments.back() = "--order-by=age";
    if (!cursor.empty() && page != 3) arguments.push_back("--after=" + cursor);
    const ToolResult result = MustRun(arguments);
    found += result.out;
    const size_t at = result.err.find("--after=");
    BOOST_REQUIRE(at != std::string::npos);
    cursor = result.err.substr(at + 8, result.err.find('\n', at) - at - 8);
  }
  BOOST_TEST(found ==
             "{\"age\":17,\"count\":1}\n{\"age\":19,\"count\":1}\n{\"age\":30,\"count\":1}\n"
             "{\"primary_key\":\"bo b\"}\n");
  BOOST_TEST(people.Where("TRUE", {"--order-by=age", "--limit=2", "--after=" + cursor}) ==
             "ida\nana\n");
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together) {
  const People people;
  const auto refused = [&](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), {"query", people.age(), people.city()});
    const ToolResult result = RunTool(arguments);
    BOOST_TEST(result.exit_status == 2);
    BOOST_TEST(result.out.empty());
    BOOST_TEST(absl::StrContains(result.err, message), result.err);
  };
  refused({"--eq=3"}, "are for the entries of one index");
  refused({"--where=age > 0", "--db=" + people.db()}, "are for the entries of one index");
  refused({"--where=age > 0", "--order-by=age,town"}, "in the order of one index");
  refused({"--order-by=half"}, "no column 'half' to order by; expected one of age, town");
  refused({"--group-by=town", "--order-by=age"},
          "no column 'age' to order by; expected one of town, count");
  refused({"--group-by=town", "--select=age"}, "--select is for rows");
  refused({"--after=zz"}, "expected hexadecimal digits");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
