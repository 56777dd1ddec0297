// cairn query --select: the columns that an index includes.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_columns_test)
namespace {

// A database of a few rows with an index that includes columns of most kinds.
struct Shop {
  Shop() {
    rocksdb::Options options;
    options.create_if_missing = true;
    std::unique_ptr<rocksdb::DB> opened;
    BOOST_REQUIRE(rocksdb::DB::Open(options, db(), Into(&opened)).ok());
    for (const auto& [key, value] :
         {std::pair{"a", "pen|250|-1|0.5"}, {"b", "ink\tpot|3|7"}, {"c", "pen|1"}}) {
      BOOST_REQUIRE(opened->Put({}, key, value).ok());
    }
    opened.reset();
    MustRun({"build", "--db=" + db(), "--out=" + index(),
             "--spec=value.field('|',1):u8,include(name=value.field('|',0):text,"
             "change=value.field('|',2):i32,weight=value.field('|',3):f64)"});
  }
  std::string db() const { return directory / "db"; }
  std::string index() const { return directory / "index"; }
  std::string Query(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"query", index(), "--range=.."});
    return MustRun(arguments).out;
  }

  TemporaryDirectory directory;
};

BOOST_AUTO_TEST_CASE(every_format_has_the_columns) {
  const Shop shop;
  BOOST_TEST(shop.Query({"--format=tsv", "--select=name,weight", "--select=change"}) ==
             "1\tc\tpen\t\\N\t\\N\n"
             "3\tb\tink\\x09pot\t\\N\t7\n"
             "250\ta\tpen\t0.5\t-1\n");
  BOOST_TEST(
      shop.Query({"--format=json", "--select=name,weight,change", "--limit=2"}) ==
      R"({"key":1,"primary_key":"c","columns":{"name":"pen","weight":null,"change":null}})"
      "\n"
      R"({"key":3,"primary_key":"b","columns":{"name":"ink\u0009pot","weight":null,"change":7}})"
      "\n");
  BOOST_TEST(shop.Query({"--select=change,name", "--reverse", "--db=" + shop.db()}) ==
             "key  primary key  change  name        value\n"
             "250  a            -1      pen         pen|250|-1|0.5\n"
             "3    b            7       ink\\x09pot  ink\\x09pot|3|7\n"
             "1    c            \\N      pen         pen|1\n");
  BOOST_TEST(shop.Query({"--format=tsv"}) == "1\tc\n3\tb\n250\ta\n");
}

BOOST_AUTO_TEST_CASE(other_columns_are_refused) {
  const Shop shop;
  const ToolResult result = RunTool({"query", shop.index(), "--range=..", "--select=price"});
  BOOST_TEST(result.exit_status != 0);
  BOOST_TEST(absl::StrContains(result.err,
                               "the index includes no column 'price', only name, change, weight"),
             result.err);
  BOOST_TEST(result.out.empty());
}

BOOST_AUTO_TEST_CASE(verify_and_inspect_know_columns) {
  const Shop shop;
  MustRun({"verify", shop.index(), "--db=" + shop.db()});
  BOOST_TEST(absl::StrContains(MustRun({"inspect", shop.index()}).out, "columns-"));
}

BOOST_AUTO_TEST_CASE(an_index_in_shards_has_the_columns) {
  const Shop shop;
  const std::string shards = shop.directory / "shards";
  MustRun({"build", "--db=" + shop.db(), "--out=" + shards, "--shards=2",
           "--spec=value.field('|',1):u8,include(name=value.field('|',0):text)"});
  BOOST_TEST(MustRun({"query", shards, "--range=..", "--format=tsv", "--select=name"}).out ==
             "1\tc\tpen\n3\tb\tink\\x09pot\n250\ta\tpen\n");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
