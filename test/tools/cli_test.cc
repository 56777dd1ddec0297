// The command line: builds, failures, and their messages.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cairn/version.h"
#include "cpu_fast/simd/simd_level.h"
#include "engine/util/key_order.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/version.h"
#include "test/require_ok.h"
#include "test/test_random.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_test)
namespace {

// Checks for one line from the tool that contains all of `parts`.
void CheckComplaint(const ToolResult& result, int exit_status,
                    const std::vector<std::string>& parts = {}) {
  BOOST_TEST(result.exit_status == exit_status);
  BOOST_TEST(result.out == "");
  BOOST_TEST(result.err.compare(0, 7, "cairn: ") == 0, result.err);
  BOOST_TEST(std::count(result.err.begin(), result.err.end(), '\n') == 1, result.err);
  for (const std::string& part : parts) {
    BOOST_TEST(result.err.find(part) != std::string::npos, "'" << part << "' in: " << result.err);
  }
}

BOOST_AUTO_TEST_CASE(version_says_what_the_tool_is_made_of) {
  const std::vector<std::string> lines = MustRun({"--version"}).lines();
  BOOST_REQUIRE(lines.size() == 4u);
  BOOST_TEST(lines[0] == std::string("cairn ") + Version());
  BOOST_TEST(lines[1] == "RocksDB " + rocksdb::GetRocksVersionAsString());
  BOOST_TEST((lines[2] == "without CUDA" || lines[2].compare(0, 5, "CUDA ") == 0), lines[2]);
  std::string names;
  for (const SimdLevel level : CompiledSimdLevels()) {
    names += (names.empty() ? "" : ", ") + std::string(SimdLevelName(level));
  }
  BOOST_TEST(lines[3] == "instruction sets " + names + "; here " +
                             std::string(SimdLevelName(SupportedSimdLevels().back())));
  // The instruction set that the tool would use, or the reason that there is none.
  setenv("CAIRN_SIMD", "scalar", 1);
  BOOST_TEST(MustRun({"--version"}).lines()[3] == "instruction sets " + names + "; here scalar");
  setenv("CAIRN_SIMD", "mmx", 1);
  BOOST_TEST(MustRun({"--version"}).lines()[3].find("SIMD level 'mmx'") != std::string::npos);
  unsetenv("CAIRN_SIMD");
}

BOOST_AUTO_TEST_CASE(help_goes_to_standard_output) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"build", "--help"},
                                                    {"query", "--help"},
                                                    {"count", "--help"},
                                                    {"inspect", "--help"},
                                                    {"verify", "--help"},
                                                    {"catch-up", "--help"},
                                                    {"compact", "--help"},
                                                    {"report", "--help"},
                                                    {"shard-cut", "--help"},
                                                    {"shard-extract", "--help"},
                                                    {"shard-split", "--help"},
                                                    {"shard-build", "--help"},
                                                    {"shard-publish", "--help"},
                                                    {"demo", "--help"}}) {
    const ToolResult help = MustRun(arguments);
    BOOST_TEST(help.out.find("Usage: cairn") != std::string::npos, help.out);
    BOOST_TEST(help.err == "");
  }
}

BOOST_AUTO_TEST_CASE(wrong_usage_is_one_line_and_exit_status_2) {
  TemporaryDirectory directory;
  const std::string out = "--out=" + directory / "index";
  CheckComplaint(RunTool({}), 2);
  CheckComplaint(RunTool({"frobnicate"}), 2, {"unknown command 'frobnicate'"});
  CheckComplaint(RunTool({"qery", "x", "--limit=1"}), 2, {"unknown command 'qery'"});
  CheckComplaint(RunTool({"query"}), 2, {"INDEX"});
  CheckComplaint(RunTool({"query", "x", "--frob"}), 2, {"--frob"});
  CheckComplaint(RunTool({"query", "x", "--a", "--b"}), 2, {"unexpected arguments: '--a' '--b'"});
  CheckComplaint(RunTool({"query", "x", "--format=xml"}), 2, {"xml"});
  CheckComplaint(RunTool({"query", "x", "--limit=-1"}), 2,
                 {"--limit: '-1' is not a whole number from 0 to 18446744073709551615 (see"});
  CheckComplaint(RunTool({"query", "x", "--limit=1.5"}), 2, {"--limit: '1.5'"});
  CheckComplaint(RunTool({"demo", "x", "--seed=-1"}), 2, {"--seed: '-1'"});
  CheckComplaint(RunTool({"compact", "x", "--max-bytes-per-second=-1"}), 2,
                 {"--max-bytes-per-second"});
  CheckComplaint(RunTool({"query", "x", "--limit=many"}), 2, {"--limit"});
  CheckComplaint(RunTool({"demo"}), 2, {"DIR"});
  CheckComplaint(RunTool({"demo", "x", "--rows=-1"}), 2, {"--rows"});
  CheckComplaint(RunTool({"catch-up", "x"}), 2, {"--db"});
  CheckComplaint(RunTool({"catch-up", "x", "--db=y", "--compact=sometimes"}), 2, {"--compact"});
  CheckComplaint(RunTool({"compact"}), 2, {"INDEX"});
  CheckComplaint(RunTool({"compact", "x", "--threads=0"}), 2, {"--threads"});
  CheckComplaint(RunTool({"build", "--db=x", out}), 2, {"--spec"});
  CheckComplaint(RunTool({"build", "--db=x", "--spec=value:text"}), 2, {"--out"});
  CheckComplaint(RunTool({"build", "--spec=value:text", out}), 2,
                 {"--db", "--checkpoint", "--sst"});
  CheckComplaint(RunTool({"build", "--db=x", "--checkpoint=y", "--spec=value:text", out}), 2,
                 {"--db", "--checkpoint"});
  CheckComplaint(RunTool({"build", "--db=x", "--spec=value", out}), 2, {"value"});
  CheckComplaint(RunTool({"build", "--db=x", "--spec=value[0:4]:u32", out}), 2, {"u32"});
  CheckComplaint(RunTool({"build", "--db=x", "--spec=value:text", out, "--nulls=middle"}), 2,
                 {"middle"});
  CheckComplaint(RunTool({"build", "--db=x", "--spec=value:text", out, "--threads=0"}), 2,
                 {"--threads"});
  // Several specs need names, each its own.
  CheckComplaint(RunTool({"build", "--db=x", "--spec=a=value:text", "--spec=value:text", out}), 2,
                 {"name"});
  CheckComplaint(RunTool({"build", "--db=x", "--spec=a=value:text", "--spec=a=key:text", out}), 2,
                 {"'a'"});
  CheckComplaint(RunTool({"build", "--db=x", "--spec=a=value:text", "--spec=..=key:text", out}), 2,
                 {"name"});
  BOOST_TEST(!std::filesystem::exists(directory / "index"));
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_a_failure_with_exit_status_1) {
  TemporaryDirectory directory;
  const std::string nowhere = directory / "nowhere";
  CheckComplaint(RunTool({"query", nowhere, "--eq=1"}), 1, {nowhere});
  CheckComplaint(RunTool({"count", nowhere, "--eq=1"}), 1, {nowhere});
  CheckComplaint(RunTool({"inspect", nowhere}), 1, {nowhere});
  CheckComplaint(RunTool({"verify", nowhere}), 1, {nowhere});
  CheckComplaint(RunTool({"catch-up", nowhere, "--db=" + nowhere}), 1, {nowhere});
  CheckComplaint(RunTool({"compact", nowhere}), 1, {nowhere});
  CheckComplaint(
      RunTool({"build", "--db=" + nowhere, "--spec=value:text", "--out=" + directory / "index"}), 1,
      {nowhere});
  BOOST_TEST(!std::filesystem::exists(directory / "index"));
  BOOST_TEST(!std::filesystem::exists(nowhere));
  CheckComplaint(RunTool({"demo", "/dev/null/db", "--rows=1"}), 1, {"/dev/null/db"});
}

BOOST_AUTO_TEST_CASE(a_failed_build_leaves_nothing_and_names_the_row) {
  TemporaryDirectory directory;
  WriteDb(directory / "db", [](rocksdb::DB* db) {
    RequireOk(db->Put({}, "good", "12"));
    RequireOk(db->Put({}, "the-bad-row", "twelve"));
    RequireOk(db->Put({}, "other", "12"));
  });
  const std::string db = "--db=" + directory / "db";
  const std::string index = directory / "index";
  const std::string spec = "--spec=value.field('|',0):u32";
  const auto build = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"build", db, "--out=" + index};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  };
  const auto last_line = [](ToolResult result) {  // after the progress
    result.err.pop_back();
    result.err = result.err.substr(result.err.rfind('\n') + 1) + "\n";
    return result;
  };
  CheckComplaint(last_line(build({spec})), 1, {"the-bad-row"});
  CheckComplaint(last_line(build({spec + ",on_error=fail", "--on-error=skip"})), 1,
                 {"the-bad-row"});
  CheckComplaint(last_line(build({"--spec=a=value.field('|',0):u32", "--spec=b=value:text"})), 1,
                 {"the-bad-row"});
  BOOST_TEST(!std::filesystem::exists(index));

  const ToolResult skipped = build({spec, "--on-error=skip"});
  BOOST_TEST(skipped.exit_status == 0);
  BOOST_TEST(skipped.out.find("the-bad-row") != std::string::npos, skipped.out);
  BOOST_TEST(MustRun({"count", index, "--range=.."}).out == "2\n");

  // An existing index survives a failed build.
  CheckComplaint(last_line(build({spec, "--on-error=skip", "--unique"})), 1, {"good", "other"});
  BOOST_TEST(MustRun({"count", index, "--eq=12"}).out == "2\n");
  BOOST_TEST(build({spec + ",unique=false", "--on-error=skip", "--unique"}).exit_status == 0);
  BOOST_TEST(MustRun({"inspect", index}).out.find("version           2\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(options_hold_for_specs_that_do_not_say_so_themselves) {
  TemporaryDirectory directory;
  WriteDb(directory / "db", [](rocksdb::DB* db) {
    RequireOk(db->Put({}, "1", "x|red"));
    RequireOk(db->Put({}, "2", "x"));
    rocksdb::ColumnFamilyHandle* other = nullptr;
    RequireOk(db->CreateColumnFamily({}, "other", &other));
    RequireOk(db->Put({}, other, "3", "x|blue"));
    RequireOk(db->DestroyColumnFamilyHandle(other));
  });
  MustRun({"build", "--db=" + directory / "db", "--out=" + directory / "out", "--cf=other",
           "--nulls=last", "--spec=a=value.field('|',1):text",
           "--spec=b=value.field('|',1):text, cf=default",
           "--spec=c=value.field('|',1):text, cf='default', nulls=skip"});
  const auto entries = [&](const std::string& name) {
    return MustRun({"query", directory / "out/" + name, "--range=..", "--format=tsv"}).out;
  };
  BOOST_TEST(entries("a") == "blue\t3\n");
  BOOST_TEST(entries("b") == "red\t1\n\\N\t2\n");
  BOOST_TEST(entries("c") == "red\t1\n");
}

BOOST_AUTO_TEST_CASE(progress_goes_to_standard_error_in_plain_lines) {
  TemporaryDirectory directory;
  MustRun({"demo", directory / "db", "--rows=3000"});
  const ToolResult built = MustRun(
      {"build", "--db=" + directory / "db", "--cf=customer", "--threads=2", "--memory-budget=64M",
       "--spec=value.field('|',4):text", "--out", directory / "index"});
  BOOST_TEST(built.err.find("cairn: scanning rows") == 0u, built.err);
  BOOST_TEST(built.err.find('\r') == std::string::npos);
  BOOST_TEST(built.out.find("3,000 entries of 3,000 rows") != std::string::npos, built.out);
}

// Runs the tool with one pipe as both its standard output and its standard error.
std::string RunIntoPipe(const std::vector<std::string>& arguments) {
  std::string command = CAIRN_TOOL;
  for (const std::string& argument : arguments) command += " \"" + argument + "\"";
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  BOOST_REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  BOOST_TEST(pclose(pipe) == 0, text);
  return text;
}

BOOST_AUTO_TEST_CASE(a_pipe_of_results_has_no_progress_in_it) {
  TemporaryDirectory directory;
  MustRun({"demo", directory / "db", "--rows=3000"});
  const std::string built =
      RunIntoPipe({"build", "--db=" + directory / "db", "--out=" + directory / "out",
                   "--spec=a=value:text, cf=customer", "--spec=b=value:text, cf=orders"});
  BOOST_TEST(std::count(built.begin(), built.end(), '\n') == 4, built);
  BOOST_TEST(built.find("a: 3,000 entries") == 0u, built);
  BOOST_TEST(built.find("cairn:") == std::string::npos, built);
}

BOOST_AUTO_TEST_CASE(an_index_of_nothing_is_built_with_a_warning) {
  TemporaryDirectory directory;
  MustRun({"demo", directory / "db", "--rows=100"});
  const auto build = [&](const std::string& spec) {
    return RunIntoPipe({"build", "--db=" + directory / "db", "--cf=profile", "--spec=" + spec,
                        "--out=" + directory / "out"});
  };
  const std::string warned = build("value.json('/adress'):text");
  BOOST_TEST(warned.find("0 entries of 100 rows") == 0u, warned);
  const size_t warning = warned.find("\ncairn: warning: ");
  BOOST_TEST(warning == warned.find('\n'), warned);
  BOOST_TEST(warned.find("value.json('/adress'):text", warning) != std::string::npos, warned);
  BOOST_TEST(build("value.json('/age'):u8").find("warning") == std::string::npos);
  BOOST_TEST(build("value.json('/adress'):text, nulls=first").find("warning") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(inspect_shows_that_leaves_are_stored) {
  TemporaryDirectory directory;
  MustRun({"demo", directory / "db", "--rows=20000"});
  for (bool leaves : {false, true}) {
    const std::string out = directory / (leaves ? "with" : "without");
    std::vector<std::string> build = {"build", "--db=" + directory / "db", "--cf=customer",
                                      "--spec=key[0:8]:u64be, on_error=skip", "--out=" + out};
    if (leaves) build.emplace_back("--prebuild-search-structure");
    MustRun(build);
    const std::string shown = MustRun({"inspect", out}).out;
    BOOST_TEST((shown.find("leaf properties") != std::string::npos) == leaves, shown);
    const bool mapped = shown.find("of stored leaves mapped") != std::string::npos;
    BOOST_TEST(mapped == leaves, shown);
  }
}

BOOST_AUTO_TEST_CASE(inspect_shows_spec_counts_and_sections) {
  TemporaryDirectory directory;
  MustRun({"demo", directory / "db", "--rows=2000"});
  MustRun({"build", "--db=" + directory / "db", "--cf=customer",
           "--spec=n=value.field('|', 3) : u8", "--out=" + directory / "index"});
  const std::string text = MustRun({"inspect", directory / "index"}).out;
  for (const char* part :
       {"n=value.field('|',3):u8", "customer", "rows              2,000\n",
        "entries           2,000\n", "distinct keys     25\n", "version           1\n",
        "sequence number", "database id", ".run", ".tbl", "checksums         good\n"}) {
    BOOST_TEST(text.find(part) != std::string::npos, "'" << part << "' in:\n" << text);
  }
}

BOOST_AUTO_TEST_CASE(the_demo_follows_from_its_seed) {
  TemporaryDirectory directory;
  const auto demo = [&](const std::string& name, const std::string& seed, const char* rows) {
    const ToolResult result = MustRun({"demo", directory / name, "--seed=" + seed, rows});
    BOOST_TEST(result.out.find("cairn build") != std::string::npos);
  };
  demo("a", "7", "--rows=2500");
  demo("b", "7", "--rows=2500");
  demo("c", "8", "--rows=2500");
  demo("none", "8", "--rows=0");
  for (const char* column_family : {"customer", "orders", "profile"}) {
    const auto a = ReadRows(directory / "a", column_family);
    BOOST_TEST(a.size() == (column_family == std::string("orders") ? 2498u : 2500u));
    BOOST_CHECK(a == ReadRows(directory / "b", column_family));
    BOOST_CHECK(a != ReadRows(directory / "c", column_family));
    BOOST_TEST(ReadRows(directory / "none", column_family).empty());
  }
  // An existing database is not changed.
  CheckComplaint(RunTool({"demo", directory / "a"}), 1, {directory / "a"});
  BOOST_TEST(ReadRows(directory / "a", "customer").size() == 2500u);
}

BOOST_AUTO_TEST_CASE(verify_tells_what_differs) {
  TemporaryDirectory directory;
  const std::string db = directory / "db";
  WriteDb(db, [](rocksdb::DB* db) {
    for (int i = 0; i < 500; ++i) {
      RequireOk(db->Put({}, "row" + std::to_string(i), std::to_string(i % 10)));
    }
  });
  const std::string index = directory / "index";
  MustRun({"build", "--db=" + db, "--spec=value.field('|',0):u8", "--out=" + index});
  MustRun({"verify", index});
  MustRun({"verify", index, "--db=" + db});
  MustRun({"verify", index, "--checkpoint=" + db});

  WriteDb(db, [](rocksdb::DB* db) {
    RequireOk(db->Put({}, "row123", "77"));
    RequireOk(db->Delete({}, "row321"));
    RequireOk(db->Put({}, "row-new", "5"));
  });
  MustRun({"verify", index});  // the index itself is still good
  const ToolResult differs = RunTool({"verify", index, "--db=" + db});
  BOOST_TEST(differs.exit_status == 1);
  for (const char* row : {"row123", "row321", "row-new"}) {
    BOOST_TEST(differs.out.find(row) != std::string::npos, differs.out);
  }
  BOOST_TEST(differs.out.find("row124") == std::string::npos);
  const ToolResult first = RunTool({"verify", index, "--db=" + db, "--max-differences=1"});
  BOOST_TEST(first.exit_status == 1);
  BOOST_TEST(first.lines().size() == 2u);

  for (const auto& file : std::filesystem::directory_iterator(index)) {
    if (file.path().extension() != ".run") continue;
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-10, std::ios::end);
    const int byte = stream.peek();
    stream.seekp(-10, std::ios::end);
    stream.put(static_cast<char>(byte ^ 1));
  }
  const ToolResult damaged = RunTool({"verify", index});
  BOOST_TEST(damaged.exit_status == 1);
  BOOST_TEST(damaged.out.find(".run") != std::string::npos, damaged.out);
  CheckComplaint(RunTool({"query", index, "--eq=1"}), 1, {".run"});
}

BOOST_AUTO_TEST_CASE(an_index_of_another_database_is_refused) {
  TemporaryDirectory directory;
  MustRun({"demo", directory / "db", "--rows=100"});
  MustRun({"demo", directory / "other", "--rows=100"});
  MustRun({"build", "--db=" + directory / "db", "--cf=customer", "--spec=value.field('|',4):text",
           "--out=" + directory / "index"});
  const std::string other = "--db=" + directory / "other";
  CheckComplaint(RunTool({"verify", directory / "index", other}), 1);
  CheckComplaint(RunTool({"query", directory / "index", "--range=..", other}), 1);
}

// A comparator that the tool does not know.
BOOST_AUTO_TEST_CASE(the_order_of_a_comparator_can_be_declared) {
  const TemporaryDirectory directory;
  const std::string path = directory / "db", out = directory / "index";
  const auto write = [&](const std::string& value) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.comparator = ComparatorOfName("test.Foreign=1", KeyOrder::kReverseBytewise);
    options.WAL_size_limit_MB = 100;
    std::unique_ptr<rocksdb::DB> db;
    RequireOk(rocksdb::DB::Open(options, path, Into(&db)));
    RequireOk(db->DeleteRange({}, db->DefaultColumnFamily(), "c", "b"));  // "c" only
    for (const char* key : {"a", "b"}) RequireOk(db->Put({}, key, value));
    RequireOk(db->Put({}, "d", "none"));
  };
  write("x");
  const std::string spec = "--spec=value:text";
  CheckComplaint(RunTool({"build", "--db", path, spec, "--out", out}), 1,
                 {"test.Foreign=1", "'default'", "--comparator"});
  for (const char* wrong :
       {"test.Foreign=1", "test.Foreign=1=up", "=bytes", "reverse", "RocksDB_SE_v3.10=reverse"}) {
    const ToolResult refused =
        RunTool({"build", "--db", path, spec, "--out", out, std::string("--comparator=") + wrong});
    BOOST_TEST(refused.exit_status == 2, wrong << refused.err);
    BOOST_TEST(refused.err.find("--comparator") != std::string::npos, refused.err);
  }
  const std::string declared = "--comparator=test.Foreign=1=reverse";
  MustRun({"build", "--db", path, spec, "--out", out, declared, "--comparator=other=bytes"});
  BOOST_TEST(MustRun({"query", out, "--eq=x", "--format=tsv"}).out == "x\ta\nx\tb\n");
  write("y");
  MustRun({"catch-up", out, "--db", path, declared});
  BOOST_TEST(MustRun({"query", out, "--eq=y", "--format=tsv", "--db", path, declared}).out ==
             "y\ta\ty\ny\tb\ty\n");
  MustRun({"verify", out, "--db", path, declared});
  CheckComplaint(RunTool({"verify", out, "--db", path}), 1, {"test.Foreign=1"});
}

BOOST_AUTO_TEST_CASE(an_interrupted_build_leaves_the_directory_as_it_was) {
  TemporaryDirectory directory;
  MustRun({"demo", directory / "db", "--rows=200000"});
  const std::string index = directory / "index";
  bool interrupted = false;
  bool there = false;
  for (int delay = 1; delay <= 4096 && !(interrupted && there); delay *= 2) {
    const pid_t child = StartTool(
        {"build", "--db=" + directory / "db", "--cf=profile", "--threads=1",
         "--spec=value.json('/address/city'):text,value.json('/age'):u8", "--out=" + index},
        directory / "out", directory / "err");
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    kill(child, SIGINT);
    const int exit_status = WaitForTool(child);
    if (exit_status == -SIGINT) continue;  // before the tool handled signals
    BOOST_REQUIRE_MESSAGE(exit_status == 0 || exit_status == 130,
                          exit_status << ": " << ReadFile(directory / "err"));
    if (exit_status == 130) {
      interrupted = true;
      BOOST_TEST(ReadFile(directory / "err").find("cairn: interrupted\n") != std::string::npos);
    }
    there |= exit_status == 0;
    BOOST_TEST(std::filesystem::exists(index) == there);
    if (there) MustRun({"verify", index});
  }
  BOOST_TEST(interrupted);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
