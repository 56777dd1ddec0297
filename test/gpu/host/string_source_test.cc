#include "gpu/host/string_source.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "test/test_random.h"

// Needs no device.
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(string_source_test)
namespace {

// The part of a string that an index whose longest key has `longest_key` bytes must read.
std::string Seen(const StringKey& key, size_t longest_key) {
  if (key.bytes.size() > longest_key) return std::string(key.bytes.substr(0, longest_key + 1));
  std::string seen(key.bytes);
  if (key.last != StringKey::kNoByte) seen += static_cast<char>(key.last);
  return seen;
}

// Takes strings to a device in parts, as a batch does.
void CheckStrings(const std::vector<StringKey>& keys, size_t longest_key, size_t parts) {
  const StringsOf strings([&](size_t i) { return keys[i]; }, longest_key);
  std::vector<uint64_t> begins = {0};
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = keys.size() * part / parts, end = keys.size() * (part + 1) / parts;
    begins.push_back(begins.back() + strings.Bytes(begin, end - begin));
  }
  std::vector<uint32_t> offsets(keys.size() + 1, UINT32_MAX);
  std::string copied(begins.back(), '?');
  for (size_t part = parts; part-- > 0;) {
    const size_t begin = keys.size() * part / parts, end = keys.size() * (part + 1) / parts;
    strings.Copy(begin, end - begin, static_cast<uint32_t>(begins[part]), offsets.data() + begin,
                 copied.data());
  }
  offsets.back() = static_cast<uint32_t>(begins.back());
  for (size_t i = 0; i < keys.size(); ++i) {
    BOOST_REQUIRE(offsets[i] <= offsets[i + 1]);
    BOOST_REQUIRE(copied.substr(offsets[i], offsets[i + 1] - offsets[i]) ==
                  Seen(keys[i], longest_key));
  }
}

BOOST_AUTO_TEST_CASE(strings_of_every_length_are_copied) {
  std::string bytes(300, ' ');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);  // zeros too
  std::vector<StringKey> keys;
  for (size_t size = 0; size <= 100; ++size) {
    for (int last : {StringKey::kNoByte, 0, 255}) {
      keys.push_back({std::string_view(bytes).substr(size, size), last});
    }
  }
  std::shuffle(keys.begin(), keys.end(), TestRandom());
  for (size_t longest_key : {0, 1, 7, 33, 64, 1000}) {
    for (size_t parts : {1, 2, 16}) CheckStrings(keys, longest_key, parts);
  }
}

BOOST_AUTO_TEST_CASE(few_strings) {
  CheckStrings({}, 3, 1);
  CheckStrings({{"", StringKey::kNoByte}}, 0, 1);
  CheckStrings({{"", 0}}, 0, 1);
  CheckStrings({{"abc", 0}, {"abc", StringKey::kNoByte}, {"", 1}}, 3, 16);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
