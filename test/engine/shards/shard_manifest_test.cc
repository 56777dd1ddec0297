#include "engine/shards/shard_manifest.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "index/files/checksum.h"
#include "index/files/manifest_text.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_manifest_test)
namespace {

ShardManifest Example() {
  ShardManifest manifest;
  manifest.generation = 7;
  manifest.spec = "value:text,name=a\\b";
  const ShardBound first = {"m", ""}, second = {std::string("m\0\xff", 3), std::string("row 1\n")};
  manifest.shards = {
      {"shard-0.0123456789abcdef", 1, 17, "id", 5, 10, 12, std::nullopt, first},
      {"shard-1.0123456789abcdef", 1, 18, "id", 5, 1, 1, first, second},
      {"nested/shard", 2, UINT64_MAX, "", UINT64_MAX, 0, 0, second, std::nullopt},
  };
  return manifest;
}

std::string Text(const ShardManifest& manifest) {
  return RequireOk(FormatShardManifest(manifest));
}

// Replaces text, and corrects the checksum.
std::string Resealed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  text.resize(text.rfind("checksum "));
  AppendChecksumLine(&text);
  return text;
}

BOOST_AUTO_TEST_CASE(a_manifest_is_read_as_it_was_written) {
  const ShardManifest manifest = Example();
  BOOST_CHECK(RequireOk(ParseShardManifest(Text(manifest), "SHARDS")) == manifest);
  ShardManifest by_source = manifest;
  by_source.mode = ShardMode::kSource;
  for (ShardRecord& shard : by_source.shards) shard.lower.reset(), shard.upper.reset();
  BOOST_CHECK(RequireOk(ParseShardManifest(Text(by_source), "SHARDS")) == by_source);
}

BOOST_AUTO_TEST_CASE(any_byte_that_is_changed_missing_or_added_is_damage) {
  const std::string text = Text(Example());
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char mask : {'\1', '\x80'}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      BOOST_REQUIRE(absl::IsDataLoss(ParseShardManifest(damaged, "SHARDS").status()));
    }
    BOOST_REQUIRE(absl::IsDataLoss(ParseShardManifest(text.substr(0, i), "SHARDS").status()));
  }
  BOOST_CHECK(absl::IsDataLoss(ParseShardManifest(text + "\n", "SHARDS").status()));
}

BOOST_AUTO_TEST_CASE(lines_that_are_wrong_under_a_right_checksum_are_damage) {
  const std::string text = Text(Example());
  const std::pair<const char*, const char*> changes[] = {
      {"generation 7\n", ""},
      {"generation 7\n", "generation 07\n"},
      {"generation 7\n", "generation 7\ngeneration 7\n"},
      {"generation 7\n", "generation 7\nunknown 1\n"},
      {"mode key_range\n", "mode hash\n"},
      {"mode key_range\n", "mode source\n"},
      {"version 1\n", "version -1\n"},
      {"manifest_checksum 0", "manifest_checksum "},
      {"lower open\n", ""},
      {"lower open\n", "lower at 6d \n"},
      {"lower open\n", "lower at 6D \n"},
      {"upper at 6d \n", "upper at 6e \n"},
      {"upper at 6d \n", "upper at 6c \n"},
      {"upper at 6d \n", "upper at 6 \n"},
      {"upper at 6d \n", "upper open\n"},
      {"shard nested/shard\n", "shard ../shard\n"},
      {"shard nested/shard\n", "shard /shard\n"},
      {"shard nested/shard\n", "shard nested//shard\n"},
      {"shard nested/shard\n", "shard shard-0.0123456789abcdef\n"},
      {"rows 0\n", "rows 18446744073709551616\n"},
  };
  for (const auto& [from, to] : changes) {
    const absl::Status status = ParseShardManifest(Resealed(text, from, to), "SHARDS").status();
    BOOST_TEST(absl::IsDataLoss(status), from << " -> " << to << ": " << status);
    BOOST_TEST(std::string(status.message()).find("SHARDS") != std::string::npos);
  }
  BOOST_CHECK(absl::IsFailedPrecondition(
      ParseShardManifest(Resealed(text, "cairn-shards 1.0", "cairn-shards 2.0"), "S").status()));
  // A newer minor version may have more.
  const std::string newer = Resealed(text, "cairn-shards 1.0\n", "cairn-shards 1.1\n");
  BOOST_CHECK(RequireOk(ParseShardManifest(
                  Resealed(newer, "mode key_range\n", "mode key_range\nmore 5\n"), "S")) ==
              Example());
}

BOOST_AUTO_TEST_CASE(shards_that_overlap_or_leave_room_are_refused_by_name) {
  const auto refused = [](const std::function<void(ShardManifest*)>& change, const char* why) {
    ShardManifest manifest = Example();
    change(&manifest);
    const absl::Status status = CheckShards(manifest);
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    BOOST_TEST(std::string(status.message()).find(why) != std::string::npos, status);
    BOOST_TEST(!FormatShardManifest(manifest).ok());
  };
  refused([](auto* m) { m->shards.clear(); }, "0 shards");
  refused([](auto* m) { m->shards.erase(m->shards.begin()); }, "does not begin with the first key");
  refused([](auto* m) { m->shards.pop_back(); }, "does not end with the last key");
  refused([](auto* m) { m->shards.erase(m->shards.begin() + 1); }, "one is missing");
  refused([](auto* m) { m->shards[1].lower = ShardBound{"l", ""}; }, "overlap");
  refused([](auto* m) { m->shards[1].lower.reset(); }, "overlap");
  refused([](auto* m) { m->shards[1].upper = m->shards[1].lower; }, "not below its upper one");
  refused([](auto* m) { m->mode = ShardMode::kSource; }, "though the index is sharded by source");
  for (const char* name : {"", ".", "..", "a/..", "/a", "a/", "a b", "a\n"}) {
    refused([name](auto* m) { m->shards[0].directory = name; }, "not within the index's directory");
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
