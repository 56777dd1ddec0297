// cairn report: the file that it writes, and rejected arguments.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "test/tools/report_index.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_report_test)
namespace {

// The names in a directory, in order.
std::vector<std::string> Names(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(directory))
    names.push_back(file.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

BOOST_AUTO_TEST_CASE(a_page_is_written_whole_or_not_at_all) {
  const ReportIndex index({{"a", "x"}, {"b", "y"}}, "value:text");
  const TemporaryDirectory out;
  const std::string file = out / "page.html";
  WriteFile(file, "what was there");
  const std::string good[] = {"report", index.index(), "--out=" + file, "--seconds=0.05",
                              "--db=" + index.db()};
  const ToolResult result = MustRun({good, good + 5});
  BOOST_TEST(result.out == "");
  BOOST_TEST(result.err == "");
  const std::string page = ReadFile(file);
  BOOST_TEST(XmlCheck(page).Fault() == "");
  BOOST_TEST(Holds(page, "The index is current"));
  BOOST_TEST(Names(out.path()) == std::vector<std::string>{"page.html"},
             boost::test_tools::per_element());

  // The same, to standard output.
  const ToolResult to_output =
      MustRun({"report", index.index(), "--out=-", "--no-trials", "--title=Its name"});
  BOOST_TEST(XmlCheck(to_output.out).Fault() == "");
  BOOST_TEST(Holds(to_output.out, "<h1>Its name</h1>"));

  // After any failure, the earlier file is unchanged.
  const ToolResult failed = RunTool({"report", out / "no index", "--out=" + file});
  BOOST_TEST(failed.exit_status == 1);
  BOOST_TEST(failed.err.compare(0, 7, "cairn: ") == 0, failed.err);
  BOOST_TEST(ReadFile(file) == page);
  const ToolResult nowhere =
      RunTool({"report", index.index(), "--no-trials", "--out=" + out / "no/page.html"});
  BOOST_TEST(nowhere.exit_status == 1);
  BOOST_TEST(Holds(nowhere.err, "no/page.html"), nowhere.err);
  BOOST_TEST(Names(out.path()) == std::vector<std::string>{"page.html"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_no_file_stays_what_it_is) {
  namespace fs = std::filesystem;
  const ReportIndex index({{"a", "x"}}, "value:text");
  const TemporaryDirectory out;
  const auto report = [&](const std::string& file) {
    return RunTool({"report", index.index(), "--no-trials", "--out=" + file});
  };
  const std::string kept = out / "kept.html", link = out / "link.html";
  WriteFile(kept, "what was there");
  fs::permissions(kept, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("kept.html", link);
  BOOST_TEST(report(link).exit_status == 0);
  BOOST_TEST(fs::is_symlink(link));
  BOOST_TEST(XmlCheck(ReadFile(kept)).Fault() == "");
  constexpr auto kOwners = fs::perms::owner_read | fs::perms::owner_write;
  BOOST_TEST(((fs::status(kept).permissions() & fs::perms::all) == kOwners));
  fs::create_symlink("made.html", out / "ahead.html");
  BOOST_TEST(report(out / "ahead.html").exit_status == 0);
  BOOST_TEST(fs::is_symlink(out / "ahead.html"));
  BOOST_TEST(XmlCheck(ReadFile(out / "made.html")).Fault() == "");

  const std::string pipe = out / "pipe";
  BOOST_REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  BOOST_REQUIRE(reader >= 0);
  BOOST_REQUIRE(fcntl(reader, F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
  BOOST_TEST(report(pipe).exit_status == 0);
  BOOST_TEST(fs::is_fifo(pipe));
  std::string page(size_t{1} << 20, '\0');
  const ssize_t size = read(reader, page.data(), page.size());
  close(reader);
  page.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  BOOST_TEST(XmlCheck(page).Fault() == "");

  const ToolResult full = report("/dev/full");
  BOOST_TEST(full.exit_status == 1);
  BOOST_TEST(Holds(full.err, "/dev/full"), full.err);
  BOOST_TEST(fs::is_character_file("/dev/full"));
  BOOST_TEST(Names(out.path()) == (std::vector<std::string>{"ahead.html", "kept.html", "link.html",
                                                            "made.html", "pipe"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wrong_usage_is_refused) {
  const ReportIndex index({{"a", "x"}}, "value:text");
  const TemporaryDirectory out;
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{},
                                             {"--out=" + out.path()},
                                             {"--out="},
                                             {"--out=-", "--seconds=-1"},
                                             {"--out=-", "--seconds=x"},
                                             {"--out=-", "--seconds=nan"},
                                             {"--out=-", "--device=tpu"}}) {
    std::vector<std::string> arguments = {"report", index.index()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult result = RunTool(arguments);
    BOOST_TEST(result.exit_status == 2, result.err);
    BOOST_TEST(result.out == "");
  }
  BOOST_TEST(Names(out.path()).empty());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
