// The command line with sharded indexes: built at once and by steps, and read like any index.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "test/temporary_directory.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_shards_test)
namespace {

void CheckHas(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    BOOST_TEST(text.find(part) != std::string::npos, "'" << part << "' in: " << text);
  }
}

std::string Line(const ToolResult& result) {
  BOOST_REQUIRE_EQUAL(result.lines().size(), 1u);
  return result.lines()[0];
}

// A database, and an unsharded index of it.
struct Compared {
  TemporaryDirectory directory;
  const std::string db = directory / "db", plain = directory / "plain", spec = "--spec=value:text";

  Compared() {
    WriteDb(db, [](rocksdb::DB* open) {
      for (int i = 0; i < 500; ++i) {
        RequireOk(
            open->Put({}, "row" + std::to_string(i), i % 3 == 0 ? "heavy" : std::to_string(i)));
      }
    });
    MustRun({"build", "--db=" + db, spec, "--out=" + plain});
  }

  void CheckSame(const std::string& sharded) const {
    for (const std::vector<std::string>& asked :
         {std::vector<std::string>{"query", "--range=.."},
          {"query", "--range=..", "--reverse", "--limit=77"},
          {"query", "--eq=heavy", "--eq=7", "--format=json"},
          {"query", "--prefix=4", "--db=" + db, "--format=tsv"},
          {"count", "--range=..", "--eq=heavy", "--eq=none", "--prefix=1"}}) {
      std::vector<std::string> of_plain = asked, of_sharded = asked;
      of_plain.insert(of_plain.begin() + 1, plain);
      of_sharded.insert(of_sharded.begin() + 1, sharded);
      BOOST_TEST(MustRun(of_sharded).out == MustRun(of_plain).out);
    }
    CheckHas(MustRun({"verify", sharded, "--db=" + db}).out, {"OK: 500 entries", "equal to"});
  }
};

BOOST_AUTO_TEST_CASE(an_index_built_in_shards_is_read_as_any_is) {
  const Compared compared;
  const std::string index = compared.directory / "index";
  CheckHas(
      MustRun({"build", "--db=" + compared.db, compared.spec, "--shards=5", "--out=" + index}).out,
      {"500 entries of 500 rows"});
  compared.CheckSame(index);
  CheckHas(MustRun({"inspect", index}).out,
           {"generation        1\n", "shards            5\n", "100 entries of", ", heavy of row"});
  MustRun({"build", "--db=" + compared.db, compared.spec, "--shards=2", "--out=" + index});
  CheckHas(MustRun({"inspect", index}).out, {"generation        2\n", "250 entries of"});
  MustRun({"report", index, "--out=" + compared.directory / "page.html"});
  const ToolResult caught_up = RunTool({"catch-up", index, "--db=" + compared.db});
  BOOST_TEST(caught_up.exit_status == 1);
  CheckHas(caught_up.err, {"build its next generation"});
}

BOOST_AUTO_TEST_CASE(the_steps_are_commands) {
  const Compared compared;
  const std::string work = compared.directory / "work", index = compared.directory / "index";
  std::filesystem::create_directory(work);
  std::filesystem::create_directory(index);
  std::vector<std::string> split = {"shard-split", "--shards=3", "--plan=" + work + "/plan"};
  const std::string cut = Line(MustRun({"shard-cut", "--db=" + compared.db, "--parts=2"}));
  for (const std::string& range : {"--to=" + cut, "--from=" + cut}) {
    split.push_back(Line(MustRun({"shard-extract", "--db=" + compared.db, compared.spec, range,
                                  "--part=0", "--out=" + work})));
  }
  BOOST_TEST(Line(MustRun(split)) == "3");
  const std::string plan = "--plan=" + work + "/plan";
  for (const char* shard : {"--shard=0", "--shard=1"}) {
    MustRun({"shard-build", plan, shard, "--out=" + index});
  }
  const ToolResult refused = RunTool({"shard-publish", plan, "--out=" + index});
  BOOST_TEST(refused.exit_status == 1);
  CheckHas(refused.err, {"'shard-2'", "there is no directory"});
  MustRun({"shard-build", plan, "--shard=2", "--out=" + index});
  MustRun({"shard-publish", plan, "--out=" + index});
  compared.CheckSame(index);
  std::filesystem::remove_all(work);
  compared.CheckSame(index);
  for (const auto& entry : std::filesystem::directory_iterator(index)) {
    if (!entry.is_directory()) continue;
    std::filesystem::remove_all(entry.path());
    const ToolResult missing = RunTool({"query", index, "--range=.."});
    BOOST_TEST(missing.exit_status == 1);
    CheckHas(missing.err, {entry.path().filename().string(), "is missing"});
    BOOST_TEST(RunTool({"verify", index}).exit_status == 1);
    break;
  }
}

BOOST_AUTO_TEST_CASE(databases_are_put_together_by_source) {
  const Compared compared;
  const std::string other = compared.directory / "other", index = compared.directory / "index";
  WriteDb(other, [](rocksdb::DB* db) { RequireOk(db->Put({}, "rowx", "heavy")); });
  std::filesystem::create_directory(index);
  const std::string names[] = {"shard-0.000000000000000a", "shard-1.000000000000000b"};
  MustRun({"build", "--db=" + compared.db, compared.spec, "--out=" + index + "/" + names[0]});
  MustRun({"build", "--db=" + other, compared.spec, "--out=" + index + "/" + names[1]});
  MustRun({"shard-publish", "--out=" + index, "--by-source", names[0], names[1]});
  BOOST_TEST(Line(MustRun({"count", index, "--eq=heavy"})) == "168");
  CheckHas(MustRun({"query", index, "--eq=heavy", "--reverse", "--limit=1"}).out, {"rowx"});
  CheckHas(MustRun({"inspect", index}).out, {"source 1"});
}

BOOST_AUTO_TEST_CASE(aggregates_joins_and_predicates_are_those_of_one_piece) {
  const TemporaryDirectory directory;
  const std::string db = directory / "db", cities = directory / "cities";
  WriteDb(db, [](rocksdb::DB* open) {
    for (int i = 0; i < 300; ++i) {
      RequireOk(open->Put(
          {}, "row" + std::to_string(i),
          std::to_string(i % 7) + "|city" + std::to_string(i % 3) + "|" + std::to_string(i - 100)));
    }
  });
  WriteDb(cities, [](rocksdb::DB* open) { RequireOk(open->Put({}, "home", "city1")); });
  const std::string age = "--spec=age=value.field('|',0):u8,include(n=value.field('|',2):i64)";
  const std::string city = "--spec=city=value.field('|',1):text,value.field('|',0):u8";
  const std::string town = "--spec=town=value.field('|',1):text";
  for (const std::string where : {"plain", "sharded"}) {
    for (const auto& [name, spec] : {std::pair{"age", age}, {"city", city}, {"town", town}}) {
      std::vector<std::string> build = {"build", "--db=" + db, spec,
                                        "--out=" + (directory / (where + "-" + name))};
      if (where == "sharded") build.push_back(std::string("--shards=") + (spec == age ? "3" : "4"));
      MustRun(build);
    }
  }
  MustRun({"build", "--db=" + cities, "--spec=value:text", "--out=" + (directory / "home")});
  const auto at = [&](const char* how, const char* name) {
    return directory / (std::string(how) + "-" + name);
  };
  const auto same = [&](auto arguments) {
    const std::string found = MustRun(arguments("sharded")).out;
    BOOST_TEST(found == MustRun(arguments("plain")).out);
    BOOST_TEST(!found.empty());
  };
  using Arguments = std::vector<std::string>;
  same([&](const char* how) {
    return Arguments{"aggregate",        at(how, "age"), "--range=1..5", "--eq=3",  "--count",
                     "--count-distinct", "--sum=n",      "--avg=n",      "--min=n", "--max=n"};
  });
  same([&](const char* how) {
    return Arguments{"aggregate",    at(how, "city"), "--range=..",
                     "--group-by=1", "--count",       "--count-distinct"};
  });
  for (const char* order : {"", "age", "town"}) {
    same([&](const char* how) {
      return Arguments{"query",         at(how, "age"),
                       at(how, "town"), "--where=age >= 2 AND NOT town = 'city1'",
                       "--select=n",    std::string("--order-by=") + order,
                       "--limit=40"};
    });
  }
  same([&](const char* how) {
    return Arguments{"query",
                     at(how, "age"),
                     at(how, "town"),
                     "--where=age >= 2",
                     "--group-by=town,age",
                     "--count",
                     "--sum=n",
                     "--count-distinct=age",
                     "--order-by=sum(n) desc",
                     "--limit=30"};
  });
  same([&](const char* how) {
    return Arguments{"query", at(how, "age"), at("plain", "town"), "--count",
                     "--where=age < 2 OR town LIKE 'city2%'"};
  });
  same([&](const char* how) {
    return Arguments{"join", at(how, "town"), directory / "home", "--format=tsv"};
  });
  same([&](const char* how) {
    return Arguments{"join", directory / "home", at(how, "town"), "--format=tsv"};
  });
}

BOOST_AUTO_TEST_CASE(wrong_usage_of_the_steps_is_exit_status_2) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"shard-extract", "--spec=value:text", "--out=x"},
        {"shard-extract", "--db=x", "--spec=value", "--out=x"},
        {"shard-extract", "--db=x", "--spec=value:text", "--out=x", "--from=\\x1"},
        {"shard-cut", "--parts=2"},
        {"shard-cut", "--db=x", "--parts=0"},
        {"shard-split", "--plan=x", "--shards=0", "x"},
        {"shard-split", "--plan=x", "--shards=2"},
        {"shard-build", "--plan=x", "--out=x"},
        {"shard-publish", "--out=x"},
        {"shard-publish", "--out=x", "--plan=x", "--by-source", "y"},
        {"build", "--db=x", "--spec=value:text", "--out=x", "--shards=0"}}) {
    BOOST_TEST(RunTool(arguments).exit_status == 2, arguments[0]);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
