// Contents of a page: hostile bytes, human-readable numbers, scales.
#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

#include "test/tools/report_index.h"
#include "tools/report/svg.h"
#include "tools/report/words.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(report_page_test)
namespace {

BOOST_AUTO_TEST_CASE(hostile_bytes_stay_text) {
  const std::string script = "<script>alert('1')</script>";
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  const std::string hostile[] = {script,
                                 "\"><b onload=x>",
                                 "&amp;",
                                 "]]>",
                                 "\xff\xfe",
                                 "\xef\xbf\xbe",
                                 "\xef\xbf\xbf",
                                 "\u202egnp.exe\u061c",
                                 std::string("\0", 1),
                                 every};
  std::map<std::string, std::string> rows;
  for (const std::string& value : hostile) {
    // Several entries each, so that they are among the most frequent keys.
    for (int i = 0; i < 3; ++i) rows[std::to_string(i) + value] = value;
  }
  const std::string name = "d<script>&\"'";
  for (const char* spec : {"value:bytes, on_error=skip", "value:text, key:bytes"}) {
    const ReportIndex index(rows, spec, name);
    tools::ReportOptions options;
    options.seconds = 0.05;
    options.database = index.directory() / "no <script>db";
    options.title = "Title " + script;
    const std::string page = Page(index.Gather(options));
    BOOST_TEST(!Holds(page, "<script"));
    BOOST_TEST(!Holds(page, "onload=x>"));
    BOOST_TEST(!Holds(page, "\u202e"));
    BOOST_TEST(!Holds(page, "\u061c"));
    BOOST_TEST(Holds(page, "Title &lt;script&gt;"));
    BOOST_TEST(Holds(page, "d&lt;script&gt;&amp;&quot;&#39;"));
    BOOST_TEST(Holds(page, "\\xff\\xfe"));
  }
  tools::Report report;
  report.spec = RequireOk(IndexSpec::Parse(
      "value.json('/<script>\"&'):text, column('\\x00\\xff]]>'):bytes, custom('<b>'):u8, "
      "value.field('<', 1):text"));
  report.spec.column_family = "<i>";
  report.title = every;
  report.directory = every;
  report.machine = every;
  report.stats.entries = 1;
  report.stats.distinct_keys = 1;
  report.stats.database_id = script;
  report.stats.fallback = script;
  report.stats.sections = {{script, script, 10}, {every, every, 90}};
  report.stats.ordered_indexes = {{script, 100, 10, 0}};
  report.files = {{every, 5}};
  report.keys.first = every;
  report.freshness.state = tools::FreshnessFacts::State::kCannot;
  report.freshness.message = script + every;
  report.speed.measured = true;
  report.speed.routes = {{script, {{1, 1e-6, 1e-6, true}}}};
  report.speed.works = {{script, {{1, 1e-6, 0, true}}}};
  const std::string page = Page(report);
  BOOST_TEST(!Holds(page, "<script"));
  BOOST_TEST(!Holds(page, "<i>\""));
}

BOOST_AUTO_TEST_CASE(a_page_asks_for_nothing) {
  const std::string page = Page(ReportIndex({{"a", "b"}}, "value:text").Gather());
  for (const char* word : {"src=", "url(", "@import", "<script", "<iframe", "//cdn"}) {
    BOOST_TEST(!Holds(page, word), word);
  }
  // The only addresses are names of XML.
  size_t addresses = 0;
  for (size_t at = page.find("http"); at != std::string::npos; at = page.find("http", at + 1)) {
    const bool is_name = page.compare(at, 19, "http://www.w3.org/1") == 0 ||
                         page.compare(at, 19, "http://www.w3.org/2") == 0 ||
                         page.compare(at, 10, "http-equiv") == 0;
    BOOST_TEST(is_name, page.substr(at, 40));
    ++addresses;
  }
  BOOST_TEST(addresses > 0u);
}

BOOST_AUTO_TEST_CASE(long_keys_are_cut) {
  std::map<std::string, std::string> rows;
  for (int i = 0; i < 4; ++i)
    rows["k" + std::to_string(i)] = std::string(10 << 20, 'x') + std::to_string(i / 2);
  for (const char* spec : {"value:bytes", "value:text, key:text"}) {
    const ReportIndex index(rows, spec);
    const tools::Report report = index.Gather();
    BOOST_TEST(report.keys.first.size() <= tools::kMaxKeyText + 3);
    BOOST_TEST(report.keys.parts[0].lengths[0].least == (10u << 20) + 1);
    BOOST_TEST(Page(report).size() < 200000u);
  }
}

BOOST_AUTO_TEST_CASE(cuts_are_between_characters) {
  std::map<std::string, std::string> rows;
  for (size_t i = 0; i < 4; ++i) {
    std::string text(i, 'a');
    while (text.size() < 300) text += "\u20ac";
    rows["k" + std::to_string(i)] = text;
  }
  const tools::Report report = ReportIndex(rows, "value:text").Gather();
  for (const std::string& text : {report.keys.first, report.keys.last}) {
    BOOST_TEST(text.size() <= tools::kMaxKeyText + 3);
    BOOST_TEST(!Holds(tools::Escape(text), "\\x"), text);
  }
}

BOOST_AUTO_TEST_CASE(bytes_that_could_go_on_a_character_are_cut_as_bytes) {
  const tools::Report report =
      ReportIndex({{"k", std::string(300, '\x80')}}, "value:bytes").Gather();
  BOOST_TEST(report.keys.first == std::string(tools::kMaxKeyText, '\x80') + tools::kCut);
}

BOOST_AUTO_TEST_CASE(numbers_are_written_as_people_read_them) {
  using namespace tools;  // NOLINT(google-build-using-namespace)
  BOOST_TEST(ShortNumber(0) == "0");
  BOOST_TEST(ShortNumber(999) == "999");
  BOOST_TEST(ShortNumber(999.9) == "1 k");
  BOOST_TEST(ShortNumber(1234567) == "1.23 M");
  BOOST_TEST(ShortNumber(1e9) == "1 G");
  BOOST_TEST(ByteText(24300000) == "24.3 MB");
  BOOST_TEST(ByteText(512) == "512 B");
  BOOST_TEST(TimeText(79.4e-9) == "79.4 ns");
  BOOST_TEST(TimeText(0.00123) == "1.23 ms");
  BOOST_TEST(TimeText(12) == "12 s");
  BOOST_TEST(BatchText(1) == "1");
  BOOST_TEST(BatchText(65536) == "66 k");
  BOOST_TEST(BatchText(1 << 20) == "1 M");
  BOOST_TEST(PercentText(0) == "0%");
  BOOST_TEST(PercentText(0.00001) == "under 0.1%");
  BOOST_TEST(PercentText(0.5) == "50%");
  BOOST_TEST(PercentText(0.99999) == "over 99.9%");
  BOOST_TEST(PercentText(1) == "100%");
  BOOST_TEST(PlainNumber(1234567) == "1,234,567");
  BOOST_TEST(PlainNumber(-1234.5) == "−1,234.50");
  BOOST_TEST(PlainNumber(1999.999) == "2,000");
  BOOST_TEST(PlainNumber(0.25) == "0.25");
  BOOST_TEST(PlainNumber(1e300) == "1e+300");
  BOOST_TEST(Counted(1, "row", "rows") == "1 row");
  BOOST_TEST(Counted(2000, "row", "rows") == "2,000 rows");
}

BOOST_AUTO_TEST_CASE(scales_have_round_ticks_inside) {
  using tools::Scale;
  BOOST_TEST(Scale::Linear(0, 10, 100, 200)(5) == 150);
  BOOST_TEST(Scale::Linear(0, 10, 100, 200).Ticks(5) == (std::vector<double>{0, 2, 4, 6, 8, 10}),
             boost::test_tools::per_element());
  BOOST_TEST(Scale::Log(1, 1000, 0, 3)(100) == 2);
  BOOST_TEST(Scale::Log(1, 1e6, 0, 1).Ticks(8).size() == 7u);
  for (const auto& [least, most] : std::vector<std::pair<double, double>>{
           {0, 0}, {5, 5}, {-1e308, 1e308}, {1e-300, 2e-300}, {0, 1.8446744073709552e19}}) {
    const Scale scale = Scale::Linear(least, most, 0, 100);
    for (const double tick : scale.Ticks(8)) {
      BOOST_TEST(scale(tick) >= -0.001);
      BOOST_TEST(scale(tick) <= 100.001);
    }
    BOOST_TEST(scale.Ticks(8).size() <= 17u);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
