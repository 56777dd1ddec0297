#include "index/files/manifest.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/files/checksum.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(manifest_test, *StartsNoThread())
namespace {

Manifest Example() {
  Manifest manifest;
  manifest.version = 7;
  manifest.next_file_number = 9;
  manifest.spec = "by_country = value.json('/country'):text";
  manifest.database_id = "4c1f\\\n\t\xff";
  manifest.column_family = "default";
  manifest.anchor = "log=9 \\\n";
  manifest.sequence = UINT64_MAX;
  manifest.rows = 10;
  manifest.entries = 0;
  manifest.counts = {{"distinct_keys", 3}, {"rows_skipped", 0}};
  manifest.files = {{"base-000007.run", 4096, 0x0123456789abcdef}, {"rows-000008.tbl", 64, 0}};
  return manifest;
}

// Lines under a right checksum.
std::string Signed(const std::string& lines) {
  return absl::StrFormat("%schecksum %016x\n", lines, Checksum(lines.data(), lines.size()));
}

const char kMinimal[] =
    "cairn-manifest 2.0\nversion 1\nnext_file_number 2\nspec s\ndatabase_id d\n"
    "column_family c\nanchor a\nsequence 5\nrows 6\nentries 7\n";

BOOST_AUTO_TEST_CASE(is_lines_that_people_can_read) {
  const auto text = RequireOk(FormatManifest(Example()));
  const std::string lines =
      "cairn-manifest 2.0\n"
      "version 7\n"
      "next_file_number 9\n"
      "spec by_country = value.json('/country'):text\n"
      "database_id 4c1f\\x5c\\x0a\\x09\\xff\n"
      "column_family default\n"
      "anchor log=9 \\x5c\\x0a\n"
      "sequence 18446744073709551615\n"
      "rows 10\n"
      "entries 0\n"
      "count distinct_keys 3\n"
      "count rows_skipped 0\n"
      "file base-000007.run 4096 0123456789abcdef\n"
      "file rows-000008.tbl 64 0000000000000000\n";
  BOOST_TEST(text == Signed(lines));
}

// A manifest without these lines is written as version 2.0.
BOOST_AUTO_TEST_CASE(lines_of_version_2_1_are_optional) {
  for (const char* lines : {"tables complete=1\n", "reading c\n", "tables a:b\nreading c\n"}) {
    std::string text = kMinimal;
    text.replace(text.find("2.0"), 3, "2.1");
    text.insert(text.find("sequence"), lines);
    const Manifest manifest = RequireOk(ParseManifest(Signed(text), "m"));
    BOOST_TEST(*FormatManifest(manifest) == Signed(text));
    text.replace(text.find("2.1"), 3, "2.0");
    BOOST_TEST(absl::IsDataLoss(ParseManifest(Signed(text), "m").status()));
  }
}

BOOST_AUTO_TEST_CASE(a_line_of_version_2_2_is_optional) {
  for (const char* lines : {"logs 5:6:7\n", "tables a\nlogs 5:6:7\nreading c\n"}) {
    std::string text = kMinimal;
    text.replace(text.find("2.0"), 3, "2.2");
    text.insert(text.find("sequence"), lines);
    const Manifest manifest = RequireOk(ParseManifest(Signed(text), "m"));
    BOOST_TEST(manifest.logs == "5:6:7");
    BOOST_TEST(*FormatManifest(manifest) == Signed(text));
    text.replace(text.find("2.2"), 3, "2.1");
    BOOST_TEST(absl::IsDataLoss(ParseManifest(Signed(text), "m").status()));
  }
}

BOOST_AUTO_TEST_CASE(gives_back_what_it_was_made_of) {
  std::mt19937_64 random = TestRandom();
  const auto bytes = [&] {
    std::string s(random() % 40, '\0');
    for (char& c : s) c = static_cast<char>(random());
    return s;
  };
  for (int round = 0; round < 1000; ++round) {
    Manifest manifest = round == 0 ? Manifest() : Example();
    if (round > 1) {
      manifest.version = random() >> random() % 64;
      manifest.next_file_number = random();
      manifest.spec = bytes();
      manifest.database_id = bytes();
      manifest.column_family = bytes();
      manifest.tables = bytes();
      manifest.logs = bytes();
      manifest.reading = bytes();
      manifest.files.resize(random() % 3);
    }
    const auto text = RequireOk(FormatManifest(manifest));
    const auto back = RequireOk(ParseManifest(text, "m"));
    BOOST_CHECK(back == manifest);
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_truncation_and_addition_is_found) {
  const std::string good = *FormatManifest(Example());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string text = good;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    BOOST_REQUIRE_MESSAGE(absl::IsDataLoss(ParseManifest(text, "m").status()), "bit " << bit);
  }
  for (size_t size = 0; size < good.size(); ++size) {
    BOOST_REQUIRE(absl::IsDataLoss(ParseManifest(good.substr(0, size), "m").status()));
  }
  for (const char* more : {"\n", " ", "x", "version 1\n"}) {
    BOOST_CHECK(absl::IsDataLoss(ParseManifest(good + more, "m").status()));
  }
  BOOST_CHECK(absl::IsDataLoss(ParseManifest(good + good, "m").status()));
}

BOOST_AUTO_TEST_CASE(lines_that_are_wrong_under_a_right_checksum_are_refused) {
  const std::string minimal = kMinimal;
  RequireOk(ParseManifest(Signed(minimal), "m"));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string lines = minimal;
    const size_t at = lines.find(from);
    BOOST_REQUIRE(at != std::string::npos);
    return lines.replace(at, from.size(), to);
  };
  const std::vector<std::string> wrong = {
      "",
      "\n",
      "cairn-manifest 2.0\n",
      replaced("cairn", "Cairn"),
      replaced("2.0", "2"),
      replaced("2.0", "2.0.0"),
      replaced("2.0", "02.0"),
      replaced("2.0", ""),
      replaced("rows 6\n", ""),
      replaced("spec s\n", ""),
      replaced("anchor a\n", ""),
      replaced("rows 6\n", "rows 6\nrows 6\n"),
      replaced("rows 6\n", "rows 6\n\n"),
      replaced("rows 6\n", "rows 6"),
      replaced("rows 6", "rows 06"),
      replaced("rows 6", "rows +6"),
      replaced("rows 6", "rows -6"),
      replaced("rows 6", "rows 6 "),
      replaced("rows 6", "rows  6"),
      replaced("rows 6", "rows"),
      replaced("rows 6", "rows "),
      replaced("rows 6", "rows 18446744073709551616"),
      replaced("rows 6", "rows 0x6"),
      replaced("rows 6\nentries 7\n", "entries 7\nrows 6\n"),
      replaced("spec s", "spec \\x73"),
      replaced("spec s", "spec \\x0"),
      replaced("spec s", "spec \\x0A"),
      replaced("spec s", "spec \\"),
      replaced("spec s", "spec \\n"),
      replaced("spec s", "spec \t"),
      replaced("spec s", "spec"),
      minimal + "unknown 1\n",
      minimal + "count\n",
      minimal + "count  1\n",
      minimal + "count a\n",
      minimal + "count a-b 1\n",
      minimal + "count a 1\ncount a 1\n",
      minimal + "count b 1\ncount a 1\n",
      minimal + "file\n",
      minimal + "file base-000001.run\n",
      minimal + "file base-000001.run 5\n",
      minimal + "file base-000001.run 5 0123\n",
      minimal + "file base-000001.run 5 0123456789ABCDEF\n",
      minimal + "file base-000001.run 5 0123456789abcdef0\n",
      minimal + "file base-1.run 5 0123456789abcdef\n",
      minimal + "file ../base-000001.run 5 0123456789abcdef\n",
      minimal + "file MANIFEST 5 0123456789abcdef\n",
      minimal + "file base-000001.tmp 5 0123456789abcdef\n",
      minimal + "file base-000001.run 5 0123456789abcdef\n" +
          "file base-000001.run 5 0123456789abcdef\n",
  };
  for (const std::string& lines : wrong) {
    BOOST_TEST(absl::IsDataLoss(ParseManifest(Signed(lines), "m").status()), lines);
  }
}

BOOST_AUTO_TEST_CASE(another_major_version_is_refused_and_a_newer_minor_one_is_read) {
  std::string lines = kMinimal;
  lines.replace(lines.find("2.0"), 3, "3.0");
  const auto newer = ParseManifest(Signed(lines), "m");
  BOOST_CHECK(absl::IsFailedPrecondition(newer.status()));
  BOOST_TEST(newer.status().message().find("3.0") != std::string::npos);

  lines.replace(lines.find("3.0"), 3, "1.0");
  const auto older = ParseManifest(Signed(lines), "m");
  BOOST_CHECK(absl::IsFailedPrecondition(older.status()));
  BOOST_TEST(older.status().message().find("rebuild the index") != std::string::npos);

  lines = kMinimal;
  lines.replace(lines.find("2.0"), 3, "2.3");
  const auto minor = RequireOk(ParseManifest(Signed(lines + "colour blue\n"), "m"));
  BOOST_TEST(minor.entries == 7u);
}

BOOST_AUTO_TEST_CASE(names_that_cannot_stand_in_a_line_and_long_specs_are_refused) {
  Manifest manifest = Example();
  manifest.counts = {{"two words", 1}};
  BOOST_CHECK(absl::IsInvalidArgument(FormatManifest(manifest).status()));
  for (const char* name : {"", "base", "base-000001.tmp", "a/b-000001.run", "base-000001.run\n"}) {
    manifest = Example();
    manifest.files.push_back({name, 1, 1});
    BOOST_CHECK(absl::IsInvalidArgument(FormatManifest(manifest).status()));
  }
  manifest = Example();
  manifest.files.push_back(manifest.files[0]);
  BOOST_CHECK(absl::IsInvalidArgument(FormatManifest(manifest).status()));
  manifest = Example();
  manifest.spec = std::string(kMaxManifestBytes / 2, 's');
  BOOST_CHECK(ParseManifest(*FormatManifest(manifest), "m").ok());
  manifest.spec = std::string(kMaxManifestBytes, 's');
  BOOST_CHECK(absl::IsInvalidArgument(FormatManifest(manifest).status()));
}

BOOST_AUTO_TEST_CASE(file_names_are_a_prefix_a_number_and_an_extension) {
  std::string_view prefix, extension;
  uint64_t number = 0;
  for (uint64_t n : {uint64_t{0}, uint64_t{7}, uint64_t{999999}, uint64_t{1000000}, UINT64_MAX}) {
    const std::string name = IndexFileName("base", n, "run");
    BOOST_REQUIRE(ParseIndexFileName(name, &prefix, &number, &extension));
    BOOST_TEST(prefix == "base");
    BOOST_TEST(number == n);
    BOOST_TEST(extension == "run");
  }
  BOOST_TEST(IndexFileName("base", 7, "run") == "base-000007.run");
  for (const char* name : {"",
                           "-",
                           ".",
                           "..",
                           "-.",
                           "base-000007",
                           "base-000007.",
                           "-000007.run",
                           "base-7.run",
                           "base-0000007.run",
                           "base-000007.run.bak",
                           "base.000007-run",
                           "Base-000007.run",
                           "base-00000x.run",
                           "base- 00007.run",
                           "base-+00007.run",
                           "base--00007.run",
                           "a/b-000007.run",
                           "base-99999999999999999999.run",
                           "MANIFEST",
                           "LOCK"}) {
    BOOST_TEST(!ParseIndexFileName(name, &prefix, &number, &extension), name);
  }
}

BOOST_AUTO_TEST_CASE(a_file_is_found_by_its_prefix) {
  const Manifest manifest = Example();
  BOOST_REQUIRE(manifest.FindFile("rows") != nullptr);
  BOOST_TEST(manifest.FindFile("rows")->name == "rows-000008.tbl");
  BOOST_TEST(manifest.FindFile("row") == nullptr);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
