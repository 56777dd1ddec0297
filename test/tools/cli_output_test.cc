#include <boost/test/unit_test.hpp>
#include <map>
#include <string>

#include "test/require_ok.h"
#include "test/test_random.h"
#include "test/tools/demo_entries.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_output_test)
namespace {

BOOST_AUTO_TEST_CASE(json_is_one_object_a_line) {
  const Demo demo("1000");
  const auto check = [&](const std::string& index, const Entries& entries) {
    std::string expected;
    std::string with_values;
    for (const Entry& entry : entries) {
      const std::string both =
          "{\"key\":" + entry.json + ",\"primary_key\":\"" + entry.primary_key + "\"";
      expected += both + "}\n";
      with_values += both + ",\"value\":\"" + entry.value + "\"}\n";
    }
    CheckEqual(demo.Query(index, {"--range=..", "--format=json"}).out, expected);
    CheckEqual(demo.Query(index, {"--range=..", "--format=json", "--db=" + demo.db()}).out,
               with_values);
  };
  check("phone", demo.phone);
  check("nation", demo.nation);
  check("nation_balance", demo.balance);
}

BOOST_AUTO_TEST_CASE(text_has_a_headline_and_aligned_columns) {
  const Demo demo("1000");
  const auto lines = demo.Query("phone", {"--range=.."}).lines();
  BOOST_REQUIRE(lines.size() == 1001u);
  BOOST_TEST(lines[0] == "key" + std::string(14, ' ') + "primary key");
  for (size_t i = 1; i < lines.size(); ++i) {
    BOOST_REQUIRE(lines[i] == demo.phone[i - 1].key + "  " + demo.phone[i - 1].primary_key);
  }
  const auto with_values = demo.Query("nation", {"--eq=3", "--db=" + demo.db()}).lines();
  BOOST_REQUIRE(with_values.size() > 1);
  const size_t column = with_values[0].find("value");
  for (size_t i = 1; i < with_values.size(); ++i) {
    const std::string value = with_values[i].substr(column);
    BOOST_TEST(Field(value, 3) == "3", with_values[i]);
  }
}

BOOST_AUTO_TEST_CASE(keys_of_any_bytes_can_be_printed_and_asked_for) {
  auto random = TestRandom();
  TemporaryDirectory directory;
  std::map<std::string, std::string> rows;
  for (int byte = 0; byte < 256; ++byte) {
    rows["pk" + std::string(1, static_cast<char>(byte))] =
        std::string(1, static_cast<char>(byte)) + "|x" + std::string(1, static_cast<char>(byte));
  }
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 12, '\0');
    for (char& c : bytes) c = "\0\xff,\\.. \n\t'\"a\x80{}["[random() % 17];
    rows[bytes + std::to_string(i)] = bytes;
  }
  WriteDb(directory / "db", [&](rocksdb::DB* db) {
    for (const auto& [key, value] : rows) RequireOk(db->Put({}, key, value));
  });
  MustRun({"build", "--db=" + directory / "db", "--out=" + directory / "out",
           "--spec=all=value:bytes", "--spec=both=value[0:1]:bytes,key:bytes"});
  MustRun({"verify", directory / "out/all", "--db=" + directory / "db"});
  MustRun({"verify", directory / "out/both", "--db=" + directory / "db"});

  Entries expected;
  for (const auto& [key, value] : rows) expected.push_back({value, key, Escaped(value), "", value});
  expected = Sorted(std::move(expected));
  const std::string all = directory / "out/all";
  CheckEqual(MustRun({"query", all, "--range=..", "--format=tsv", "--db=" + directory / "db"}).out,
             Tsv(expected, true));
  // Printed keys are valid queries: one by one, and as a file.
  std::string keys;
  for (const Entry& entry : expected) keys += entry.key + "\n";
  CheckEqual(MustRun({"query", all, "--keys=-", "--format=tsv"}, keys).out, Tsv(expected, false));
  for (size_t i = 0; i < expected.size(); i += 11) {
    const std::string& order = expected[i].order;
    CheckEqual(MustRun({"query", all, "--format=tsv", "--eq=" + expected[i].key}).out,
               Tsv(Where(expected, [&](const Entry& e) { return e.order == order; }), false));
    CheckEqual(
        MustRun({"query", all, "--format=tsv", "--prefix=" + expected[i].key}).out,
        Tsv(Where(expected,
                  [&](const Entry& e) { return e.order.compare(0, order.size(), order) == 0; }),
            false));
  }
  // Composite keys: the comma inside a part is escaped.
  const std::string both = directory / "out/both";
  for (const std::string& line : MustRun({"query", both, "--range=..", "--format=tsv"}).lines()) {
    const std::string key = line.substr(0, line.find('\t'));
    const std::string primary_key = line.substr(line.find('\t') + 1);
    BOOST_TEST(key.substr(key.find(',') + 1).find(',') == std::string::npos);
    if (random() % 16 == 0) {
      CheckEqual(MustRun({"query", both, "--format=tsv", "--eq=" + key}).out, line + "\n");
    }
  }
  // In JSON, bytes that are not UTF-8 differ from text.
  const std::string json = MustRun({"query", all, "--eq=\\xff|x\\xff", "--format=json"}).out;
  BOOST_TEST(json == "{\"key\":{\"hex\":\"ff7c78ff\"},\"primary_key\":{\"hex\":\"706bff\"}}\n");
  BOOST_TEST(MustRun({"query", all, "--eq=\\x0a|x\\x0a", "--format=json"}).out ==
             "{\"key\":\"\\u000a|x\\u000a\",\"primary_key\":\"pk\\u000a\"}\n");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
