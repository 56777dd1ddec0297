// cairn join: pairs of rows of two indexes.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "test/tools/run_tool.h"

namespace cairn {
namespace {

// Orders "customer|amount" and customers "id|name", each with an index by customer.
struct Orders {
  Orders() {
    const auto build = [&](const std::string& name, const std::vector<std::string>& values,
                           const std::string& spec) {
      rocksdb::Options options;
      options.create_if_missing = true;
      std::unique_ptr<rocksdb::DB> db;
      BOOST_REQUIRE(rocksdb::DB::Open(options, directory / (name + ".db"), Into(&db)).ok());
      for (size_t i = 0; i < values.size(); ++i) {
        BOOST_REQUIRE(db->Put({}, name + std::to_string(i), values[i]).ok());
      }
      db.reset();
      MustRun({"build", "--db=" + (directory / (name + ".db")), "--out=" + (directory / name),
               "--spec=" + spec});
    };
    build("order", {"7|100", "3|-5", "7|20", "9|1"},
          "value.field('|',0):u32,include(amount=value.field('|',1):i32)");
    build("customer", {"3|Ada", "7|Bo", "8|Cy"},
          "value.field('|',0):u32,include(name=value.field('|',1):text)");
    build("name", {"Ada"}, "value:text");
  }
  ToolResult Join(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"join", directory / "order", directory / "customer"});
    return RunTool(arguments);
  }

  TemporaryDirectory directory;
};

BOOST_FIXTURE_TEST_SUITE(cli_join_test, Orders)

BOOST_AUTO_TEST_CASE(pairs_are_printed_in_every_format) {
  BOOST_TEST(Join({"--format=tsv", "--select=amount", "--select-right=name"}).out ==
             "3\torder1\tcustomer0\t-5\tAda\n"
             "7\torder0\tcustomer1\t100\tBo\n"
             "7\torder2\tcustomer1\t20\tBo\n");
  BOOST_TEST(Join({"--format=json", "--limit=1", "--select=amount"}).out ==
             R"({"key":3,"left.primary_key":"order1","right.primary_key":"customer0",)"
             R"("columns":{"left.amount":-5}})"
             "\n");
  BOOST_TEST(Join({"--format=json", "--limit=1"}).out ==
             R"({"key":3,"left.primary_key":"order1","right.primary_key":"customer0"})"
             "\n");
  BOOST_TEST(Join({"--limit=2"}).out ==
             "key  primary key  right.primary_key\n"
             "3    order1       customer0\n"
             "7    order0       customer1\n");
  BOOST_TEST(Join({"--limit=0", "--format=tsv"}).out.empty());
  BOOST_TEST(Join({"--count"}).out == "3\n");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_joined_is_refused) {
  const ToolResult types = RunTool({"join", directory / "order", directory / "name"});
  BOOST_TEST(types.exit_status == 2);
  BOOST_TEST(absl::StrContains(types.err, "keys of the same types"), types.err);
  BOOST_TEST(types.out.empty());
  const ToolResult column = Join({"--select=price"});
  BOOST_TEST(column.exit_status == 2);
  BOOST_TEST(absl::StrContains(column.err, "no column 'price', only amount"), column.err);
  BOOST_TEST(RunTool({"join", directory / "order"}).exit_status == 2);
  BOOST_TEST(RunTool({"join", directory / "order", directory / "none"}).exit_status == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
