// cairn query and cairn count, compared with a full scan of the database.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/tools/demo_entries.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_query_test)
namespace {

BOOST_AUTO_TEST_CASE(every_selector_gives_what_a_full_scan_gives) {
  const Demo demo("3000");
  for (const char* name : {"phone", "nation", "nation_balance"}) {
    MustRun({"verify", demo.index(name), "--db=" + demo.db()});
  }
  const std::string with_db = "--db=" + demo.db();
  for (const bool values : {false, true}) {
    size_t turn = values ? 1 : 0;
    const auto check = [&](const std::string& index, const Entries& expected,
                           std::vector<std::string> selectors) {
      selectors.push_back("--format=tsv");
      if (values) selectors.push_back(with_db);
      // Under AddressSanitizer, one order without values and the other one with them.
      const bool reversed = ++turn % 2 == 0;
      if (!kUnderAsan || !reversed) {
        CheckEqual(demo.Query(index, selectors).out, Tsv(expected, values));
      }
      selectors.push_back("--reverse");
      if (!kUnderAsan || reversed) {
        CheckEqual(demo.Query(index, selectors).out,
                   Tsv(Entries(expected.rbegin(), expected.rend()), values));
      }
    };
    const auto phones = [&](auto wanted) {
      return Where(demo.phone, [=](const Entry& e) { return wanted(e.order); });
    };
    check("phone", demo.phone, {"--range=.."});
    check("phone", demo.phone, {"--prefix="});
    check("phone", phones([](auto p) { return p.substr(0, 3) == "25-"; }), {"--prefix=25-"});
    check("phone", phones([](auto p) { return p >= "17-5" && p < "19-2"; }),
          {"--range=17-5..19-2"});
    check("phone", phones([](auto p) { return p >= "33-"; }), {"--range=33-.."});
    check("phone", phones([](auto p) { return p < "12-"; }), {"--range", "..12-"});
    check("phone", {}, {"--range=19..17"});
    check("phone", {}, {"--eq="});
    const std::string one = demo.phone[1234].order;
    check("phone", phones([=](auto p) { return p == one; }), {"--eq=" + one});

    const auto nations = [&](uint64_t first, uint64_t end) {
      return Where(demo.nation, [=](const Entry& e) {
        return e.order >= BigEndian(first) && e.order < BigEndian(end);
      });
    };
    check("nation", nations(7, 8), {"--eq=7"});
    check("nation", nations(7, 8), {"--prefix=7"});
    check("nation", nations(0, 3), {"--range=..3"});
    check("nation", nations(20, 256), {"--range=20.."});
    check("nation", {}, {"--eq=255"});
    check("nation", nations(20, 255), {"--range=20..255"});
    check("nation", {}, {"--range=4..4"});

    const auto balances = [&](uint64_t nation, double first, double end) {
      return Where(demo.balance, [=](const Entry& e) {
        return e.order >= BigEndian(nation) + Ordered(first) &&
               e.order < BigEndian(nation) + Ordered(end);
      });
    };
    check("nation_balance", balances(7, 9000, 9999.99), {"--range=7,9000..7,9999.99"});
    check("nation_balance", balances(7, -1e9, 1e9), {"--prefix=7"});
    check("nation_balance", balances(7, 9000, 1e9), {"--range=7,9000..8"});
    check("nation_balance", balances(7, -1e9, 0), {"--range=7..7,0"});
  }
}

BOOST_AUTO_TEST_CASE(overlapping_selectors_give_an_entry_once_and_in_order) {
  const Demo demo("3000");
  const Entries expected = Where(demo.phone, [](const Entry& e) {
    const std::string nation = e.order.substr(0, 2);
    return nation == "11" || nation == "20" || nation == "21" || nation >= "34";
  });
  const std::vector<std::string> selectors = {"--range=34..",
                                              "--prefix=11-",
                                              "--prefix=2",
                                              "--prefix=11-5",
                                              "--eq=" + expected[0].order,
                                              "--range=34-5..34-7",
                                              "--prefix=35"};
  Entries wanted = Where(demo.phone, [](const Entry& e) {
    return e.order[0] == '2' || e.order.substr(0, 3) == "11-" || e.order >= "34";
  });
  auto more = selectors;
  more.push_back("--format=tsv");
  CheckEqual(demo.Query("phone", more).out, Tsv(wanted, false));
  std::reverse(wanted.begin(), wanted.end());
  more.push_back("--reverse");
  CheckEqual(demo.Query("phone", more).out, Tsv(wanted, false));
  wanted.resize(100);
  more.push_back("--limit=100");
  CheckEqual(demo.Query("phone", more).out, Tsv(wanted, false));
}

BOOST_AUTO_TEST_CASE(count_gives_a_number_for_each_selector_in_order) {
  const Demo demo("3000");
  const auto count = [&](const std::function<bool(const std::string&)>& wanted) {
    return std::to_string(std::count_if(demo.phone.begin(), demo.phone.end(),
                                        [&](const Entry& e) { return wanted(e.order); }));
  };
  const std::string index = demo.index("phone");
  BOOST_TEST(MustRun({"count", index, "--range=.."}).out == "3000\n");
  const std::string first = demo.phone[5].order;
  BOOST_TEST(MustRun({"count", index, "--prefix=25-", "--eq=" + first, "--range=30..", "--eq=no",
                      "--prefix=1", "--range=9..1"})
                 .out == count([](const std::string& p) { return p.substr(0, 3) == "25-"; }) +
                             "\n" + count([&](const std::string& p) { return p == first; }) + "\n" +
                             count([](const std::string& p) { return p >= "30"; }) + "\n0\n" +
                             count([](const std::string& p) { return p[0] == '1'; }) + "\n0\n");
  std::ofstream(demo.directory / "keys") << first << "\nno\n" << demo.phone[9].order;
  BOOST_TEST(MustRun({"count", index, "--keys=" + demo.directory / "keys"}).out == "1\n0\n1\n");
  const ToolResult none = RunTool({"count", index});
  BOOST_TEST(none.exit_status == 2);
  BOOST_TEST(none.err.find("--eq") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(keys_that_cannot_be_read_are_wrong_usage) {
  const Demo demo("100");
  const auto refused = [&](const std::string& index, const std::string& selector,
                           const std::string& part) {
    const ToolResult result = RunTool({"query", demo.index(index), selector});
    BOOST_TEST(result.exit_status == 2, selector);
    BOOST_TEST(result.out == "");
    BOOST_TEST(result.err.find(part) != std::string::npos, result.err);
  };
  refused("nation", "--eq=256", "256");
  refused("nation", "--eq=x", "x");
  refused("nation", "--eq=", "--eq");
  refused("nation", "--range=1-2", "LO..HI");
  refused("nation", "--range=1..x", "1..x");
  refused("nation_balance", "--eq=1", "--eq");
  refused("nation_balance", "--prefix=1,2,3", "--prefix");
  refused("phone", "--eq=\\xg0", "--eq");
  std::ofstream(demo.directory / "keys") << "1\n2\nthree\n";
  refused("nation", "--keys=" + demo.directory / "keys", "line 3");
  BOOST_TEST(RunTool({"query", demo.index("nation"), "--keys=/nowhere"}).exit_status == 1);
  BOOST_TEST(RunTool({"query", demo.index("nation")}).exit_status == 2);
}

BOOST_AUTO_TEST_CASE(long_results_are_paged_without_loss) {
  // More entries than a page, thousands of them with the same key.
  const Demo demo("140000");
  for (const bool reverse : {false, true}) {
    for (const bool values : {false, true}) {
      Entries expected = demo.nation;
      if (reverse) std::reverse(expected.begin(), expected.end());
      std::vector<std::string> more = {"--format=tsv"};
      if (reverse) more.push_back("--reverse");
      if (values) more.push_back("--db=" + demo.db());
      const auto check = [&](std::vector<std::string> selectors, const Entries& wanted) {
        selectors.insert(selectors.end(), more.begin(), more.end());
        CheckEqual(demo.Query("nation", selectors).out, Tsv(wanted, values));
      };
      check({"--range=.."}, expected);
      // Non-adjacent keys, so that each is a separate range.
      check({"--eq=9", "--eq=0", "--eq=24", "--eq=3"}, Where(expected, [](const Entry& e) {
              return e.key == "0" || e.key == "3" || e.key == "9" || e.key == "24";
            }));
      if (kUnderAsan && reverse == values) continue;  // pages with values and without, once each
      for (const size_t limit : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097},
                                 size_t{65535}, size_t{65536}, size_t{65537}, size_t{139999}}) {
        check({"--range=..", "--limit=" + std::to_string(limit)},
              Entries(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(limit)));
      }
    }
  }
  // A file with more keys than one batch.
  std::string keys;
  Entries expected;
  for (size_t i = 0; i < demo.phone.size(); i += 37) {
    keys += demo.phone[i].order + "\n";
    expected.push_back(demo.phone[i]);
  }
  const Entries matches = Where(demo.phone, [&](const Entry& e) {
    return std::binary_search(expected.begin(), expected.end(), e,
                              [](const Entry& a, const Entry& b) { return a.order < b.order; });
  });
  CheckEqual(MustRun({"query", demo.index("phone"), "--keys=-", "--format=tsv"}, keys).out,
             Tsv(matches, false));
}

BOOST_AUTO_TEST_CASE(explain_adds_up_the_batches_of_a_route) {
  const Demo demo("6000");
  std::string keys;
  for (const Entry& entry : demo.phone) keys += entry.key + "\n";
  const auto explain = [&](const std::string& keys, const std::string& db) {
    return MustRun({"query", demo.index("phone"), "--keys=-", "--format=tsv", "--explain", db,
                    "--route=cpu:partial_key"},
                   keys)
        .err;
  };
  // All are counted, and entries that fit in a page are read together; a page of rows with values
  // is smaller.
  const std::string many = explain(keys, "--limit=1000000");
  BOOST_TEST(many.find("count of 6000: cpu:partial_key") == 0u, many);
  BOOST_TEST(many.find("scan of 6000: cpu:partial_key") != std::string::npos, many);
  const std::string pages = explain(keys, "--db=" + demo.db());
  BOOST_TEST(pages.find("scan of 6000 in 2 batches: cpu:partial_key") != std::string::npos, pages);
  BOOST_TEST(std::count(many.begin(), many.end(), '\n') ==
             std::count(pages.begin(), pages.end(), '\n'));
  const std::string one = explain(demo.phone[0].key + "\n", "--limit=1000000");
  BOOST_TEST(one.find("scan of 1: cpu:partial_key") == 0u, one);
  BOOST_TEST(one.find("\n  searched with cpu:partial_key") != std::string::npos, one);
}

BOOST_AUTO_TEST_CASE(lists_of_devices_are_checked) {
  const Demo demo("10");
  const std::string index = demo.index("phone");
  const auto fails = [&](std::vector<std::string> options, const std::string& message) {
    options.insert(options.begin(), {"query", index, "--range=..", "--limit=1"});
    const ToolResult result = RunTool(options);
    BOOST_TEST(result.exit_status != 0);
    BOOST_TEST(result.err.find(message) != std::string::npos, result.err);
  };
  fails({"--devices=0,1"}, "--devices requires --device");
  fails({"--device=cpu", "--devices=0,1"}, "no ordered index is for a GPU");
  fails({"--device=gpu", "--devices=0,-1"}, "found -1");
  fails({"--device=gpu", "--devices=0,a"}, "--devices");
  const ToolResult nowhere = MustRun({"query", index, "--range=..", "--limit=1", "--device=auto",
                                      "--devices=1000,1000", "--explain"});
  BOOST_TEST(nowhere.err.find("\n  searched with cpu:") != std::string::npos, nowhere.err);
}

BOOST_AUTO_TEST_CASE(many_long_ranges_are_each_read_once) {
  TemporaryDirectory directory;
  constexpr int kKeys = 400;
  constexpr int kRowsPerKey = 200;  // more than a page of all the keys has room for
  // Keys that are apart, so that each is a range of its own.
  const auto key_of = [](int row) { return std::to_string(row / kRowsPerKey * 2); };
  std::string keys, expected;
  for (int row = 0; row < kKeys * kRowsPerKey; ++row) {
    if (row % kRowsPerKey == 0) keys += key_of(row) + "\n";
    expected += key_of(row) + "\t" + std::to_string(1000000 + row) + "\n";
  }
  WriteDb(directory / "db", [&](rocksdb::DB* db) {
    for (int row = 0; row < kKeys * kRowsPerKey; ++row) {
      RequireOk(db->Put({}, std::to_string(1000000 + row), key_of(row)));
    }
  });
  const std::string index = directory / "index";
  MustRun({"build", "--db=" + directory / "db", "--spec=value.field('|',0):u32", "--out=" + index});
  const ToolResult found = MustRun({"query", index, "--keys=-", "--format=tsv", "--explain"}, keys);
  CheckEqual(found.out, expected);
  BOOST_TEST(found.err.find(absl::StrFormat("scan of %d in ", kKeys)) != std::string::npos,
             found.err);
}

BOOST_AUTO_TEST_CASE(rows_that_changed_since_the_build_are_left_out_with_values) {
  TemporaryDirectory directory;
  const std::string db = directory / "db";
  WriteDb(db, [](rocksdb::DB* db) {
    for (int i = 100; i < 200; ++i) {
      RequireOk(db->Put({}, std::to_string(i), std::to_string(i % 3)));
    }
  });
  const std::string index = directory / "index";
  MustRun({"build", "--db=" + db, "--spec=value.field('|',0):u8", "--out=" + index});
  WriteDb(db, [](rocksdb::DB* db) {
    RequireOk(db->Put({}, "101", "0|moved"));
    RequireOk(db->Delete({}, "104"));
    RequireOk(db->Put({}, "105", "0|new text, same key"));
  });
  std::string expected;
  for (const int key : {0, 1, 2}) {
    for (int i = 100; i < 200; ++i) {
      if (i % 3 != key || i == 101 || i == 104) continue;
      expected += std::to_string(key) + "\t" + std::to_string(i) + "\t" +
                  (i == 105 ? "0|new\\x20text,\\x20same\\x20key" : std::to_string(key)) + "\n";
    }
  }
  const ToolResult fresh = MustRun({"query", index, "--range=..", "--format=tsv", "--db=" + db});
  CheckEqual(fresh.out, expected);
  BOOST_TEST(fresh.err.find("2 entries left out") != std::string::npos, fresh.err);
  // The limit counts printed entries.
  const ToolResult limited =
      MustRun({"query", index, "--range=1..2", "--format=tsv", "--db=" + db, "--limit=2"});
  BOOST_TEST(limited.out == "1\t100\t1\n1\t103\t1\n");
  BOOST_TEST(MustRun({"query", index, "--range=..", "--format=tsv"}).lines().size() == 100u);
}

BOOST_AUTO_TEST_CASE(a_reader_that_goes_away_and_a_full_disk_end_a_query) {
  const Demo demo("20000");
  TemporaryDirectory directory;
  const std::string err = directory / "err";
  const std::vector<std::string> query = {"query", demo.index("phone"), "--range=..",
                                          "--format=tsv"};
  const std::string pipe = directory / "pipe";
  BOOST_REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const pid_t child = StartTool(query, pipe, err);
  const int reader = open(pipe.c_str(), O_RDONLY);
  BOOST_REQUIRE(reader >= 0);
  char some[100];
  BOOST_TEST(read(reader, some, sizeof some) > 0);
  close(reader);
  BOOST_TEST(WaitForTool(child) == -SIGPIPE);
  BOOST_TEST(ReadFile(err) == "");

  if (std::filesystem::exists("/dev/full")) {
    BOOST_TEST(WaitForTool(StartTool(query, "/dev/full", err)) == 1);
    BOOST_TEST(ReadFile(err).find("standard output") != std::string::npos);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
