// cairn aggregate: one line per selector or group.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_aggregate_test)
namespace {

// A database of a few rows with an index that includes columns of most kinds.
struct Shop {
  Shop() {
    rocksdb::Options options;
    options.create_if_missing = true;
    std::unique_ptr<rocksdb::DB> opened;
    BOOST_REQUIRE(rocksdb::DB::Open(options, db(), Into(&opened)).ok());
    for (const auto& [key, value] : {std::pair{"a", "pen|2|-1|0.5|red"},
                                     {"b", "ink\tpot|3|7|inf|blue"},
                                     {"c", "pen|1"},
                                     {"d", "pen|2|9223372036854775807|nan|"}}) {
      BOOST_REQUIRE(opened->Put({}, key, value).ok());
    }
    opened.reset();
    MustRun(
        {"build", "--db=" + db(), "--out=" + index(),
         "--spec=value.field('|',0):text,value.field('|',1):u8,include(change=value.field('|',2)"
         ":i64,weight=value.field('|',3):f64,color=value.field('|',4):text)"});
  }
  std::string db() const { return directory / "db"; }
  std::string index() const { return directory / "index"; }
  std::string Aggregate(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"aggregate", index()});
    return MustRun(arguments).out;
  }

  TemporaryDirectory directory;
};

BOOST_AUTO_TEST_CASE(each_selector_has_a_line) {
  const Shop shop;
  BOOST_TEST(shop.Aggregate({"--prefix=pen,", "--range=..", "--eq=cup,1", "--count",
                             "--count-distinct", "--min=change,weight", "--max=color"}) ==
             "count\tcount_distinct\tmin(change)\tmin(weight)\tmax(color)\n"
             "3\t2\t-1\t0.5\tred\n"
             "4\t3\t-1\t0.5\tred\n"
             "0\t0\t\\N\t\\N\t\\N\n");
  BOOST_TEST(shop.Aggregate({"--range=.."}) == "count\n4\n");
}

BOOST_AUTO_TEST_CASE(each_group_has_a_line) {
  const Shop shop;
  BOOST_TEST(shop.Aggregate({"--range=..", "--group-by=1", "--count", "--avg=weight"}) ==
             "part1\tcount\tavg(weight)\n"
             "ink\\x09pot\t1\tinf\n"
             "pen\t3\tnan\n");
  BOOST_TEST(shop.Aggregate({"--prefix=pen,", "--group-by=2", "--format=json", "--max=weight",
                             "--min=color"}) ==
             "{\"part1\":\"pen\",\"part2\":1,\"min(color)\":null,\"max(weight)\":null}\n"
             "{\"part1\":\"pen\",\"part2\":2,\"min(color)\":\"\",\"max(weight)\":\"nan\"}\n");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_asked_says_why) {
  const Shop shop;
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"aggregate", shop.index()});
    const auto run = RunTool(arguments);
    BOOST_TEST(run.out.empty());
    BOOST_TEST(run.exit_status != 0);
    return run.err;
  };
  BOOST_TEST(absl::StrContains(error({"--range=..", "--sum=change"}),
                               "range 0: the sum of column 'change' is 9223372036854775813"));
  BOOST_TEST(absl::StrContains(error({"--range=..", "--sum=price"}), "no column 'price'"));
  BOOST_TEST(absl::StrContains(error({"--range=..", "--group-by=3"}), "1 to 2 leading parts"));
  BOOST_TEST(absl::StrContains(error({"--range=..", "--group-by=0"}), "--group-by"));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
