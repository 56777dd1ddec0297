#include "test/oracle_catalogue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
namespace oracle {

constexpr size_t kMaxKeys = kUnderTsan ? 500 : SIZE_MAX;
constexpr size_t kKeysAskedFor = FewerSanitized(700, 3, 30);  // without their neighbors

// Sorts entries, removes duplicates, and creates queries.
template <typename Key, typename Neighbours>
OracleData<Key> Finish(std::string name, std::vector<Key> keys, Neighbours neighbours) {
  OracleData<Key> data;
  data.name = std::move(name);
  auto random = TestRandom(keys.size());
  std::vector<std::pair<Key, RowId>> entries;
  for (Key& key : keys) {
    entries.emplace_back(std::move(key), static_cast<RowId>(random() % (uint64_t{1} << 31)));
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  for (auto& [key, row_id] : entries) {
    data.keys.push_back(std::move(key));
    data.row_ids.push_back(row_id);
  }
  const size_t step = std::max<size_t>(1, data.keys.size() / kKeysAskedFor);
  for (size_t i = 0; i < data.keys.size(); i += step) neighbours(data.keys[i], &data.queries);
  if (!data.keys.empty()) {
    neighbours(data.keys.front(), &data.queries);
    neighbours(data.keys.back(), &data.queries);
  }
  std::shuffle(data.queries.begin(), data.queries.end(), random);
  return data;
}

template <typename Key>
OracleData<Key> FinishIntegers(std::string name, std::vector<Key> keys) {
  constexpr Key kMax = std::numeric_limits<Key>::max();
  OracleData<Key> data =
      Finish(std::move(name), std::move(keys), [](Key key, std::vector<Key>* queries) {
        queries->push_back(key);
        if (key > 0) queries->push_back(key - 1);
        if (key < kMax) queries->push_back(key + 1);
      });
  for (Key key : {Key{0}, Key{1}, kMax, static_cast<Key>(kMax - 1), static_cast<Key>(kMax / 2),
                  static_cast<Key>(kMax / 2 + 1)}) {
    data.queries.push_back(key);
  }
  auto random = TestRandom(1);
  for (size_t i = 0; i < FewerUnderTsan(100); ++i) {
    data.queries.push_back(static_cast<Key>(random()));
  }
  return data;
}

OracleData<std::string> FinishStrings(std::string name, std::vector<std::string> keys) {
  OracleData<std::string> data =
      Finish(std::move(name), std::move(keys),
             [](const std::string& key, std::vector<std::string>* queries) {
               queries->push_back(key);
               queries->push_back(key + '\0');
               queries->push_back(key + '\xff');
               if (key.empty()) return;
               queries->push_back(key.substr(0, key.size() - 1));
               queries->push_back(key.substr(0, key.size() / 2));
               std::string other = key;
               ++other.back();
               queries->push_back(other);
               other = key;
               --other[other.size() / 2];
               queries->push_back(other);
             });
  for (std::string key : {std::string(), std::string(1, '\0'), std::string(9, '\xff'),
                          std::string(8, '\0'), std::string("m")}) {
    data.queries.push_back(std::move(key));
  }
  return data;
}

template <typename Key>
std::vector<OracleData<Key>> IntegerCatalogue(size_t most) {
  constexpr Key kMax = std::numeric_limits<Key>::max();
  auto random = TestRandom(2);
  std::vector<OracleData<Key>> catalogue;
  const auto add = [&](const std::string& shape, size_t size, auto key) {
    if (size > std::min(most, kMaxKeys)) return;
    std::vector<Key> keys(size);
    for (size_t i = 0; i < size; ++i) keys[i] = static_cast<Key>(key(i));
    catalogue.push_back(FinishIntegers(shape + ", " + std::to_string(size), std::move(keys)));
  };
  std::vector<size_t> sizes = {0, 1, 2, 3};
  for (size_t power = 8; power <= 65536; power *= power < 512 ? 2 : 8) {
    for (size_t size : {power - 1, power, power + 1}) sizes.push_back(size);
  }
  for (size_t size : sizes) {
    add("random", size, [&](size_t) { return random(); });
    add("dense", size, [&](size_t i) { return i + 5; });
  }
  for (size_t size : {1u, 16u, 17u, 64u, 1000u, 5000u}) {
    add("all equal", size, [&](size_t) { return Key{42}; });
    add("all greatest", size, [&](size_t) { return kMax; });
    add("all zero", size, [&](size_t) { return Key{0}; });
    add("half greatest", size, [&](size_t i) { return i % 2 == 0 ? kMax : Key(random()); });
    add("half zero", size, [&](size_t i) { return i % 2 == 0 ? Key{0} : Key(random()); });
    add("around the sign bit", size, [&](size_t i) { return kMax / 2 - size / 2 + i; });
    add("up to the greatest", size, [&](size_t i) { return kMax - i; });
  }
  add("few distinct", 20000, [&](size_t) { return random() % 10; });
  add("duplicates", 20000, [&](size_t) { return random() % 2000 * 1000; });
  add("one long duplicate", 20000, [&](size_t i) { return i < 15000 ? 7777 : random() % 20000; });
  add("clusters", 30000, [&](size_t) { return (random() % 50 << 20) + random() % 700; });
  // -0.0 and +0.0 among floating-point numbers, 80 of each.
  add("both zeros", 30000, [&](size_t i) { return i < 160 ? kMax / 2 + i % 2 : random(); });
  add("powers of two", 30000, [&](size_t) { return Key{1} << (random() % (sizeof(Key) * 8)); });
  return catalogue;
}

std::vector<OracleData<std::string>> StringCatalogue(size_t most) {
  auto random = TestRandom(3);
  std::vector<OracleData<std::string>> catalogue;
  const auto add = [&](const std::string& shape, size_t size, auto key) {
    if (size > std::min(most, kMaxKeys)) return;
    std::vector<std::string> keys(size);
    for (size_t i = 0; i < size; ++i) keys[i] = key(i);
    catalogue.push_back(FinishStrings(shape + ", " + std::to_string(size), std::move(keys)));
  };
  const auto letters = [&](size_t longest, uint64_t alphabet) {
    std::string s(random() % (longest + 1), '\0');
    for (char& c : s) c = static_cast<char>('a' + random() % alphabet);
    return s;
  };
  const auto bytes = [&](size_t longest, uint64_t alphabet) {
    std::string s(random() % (longest + 1), '\0');
    for (char& c : s) c = static_cast<char>(random() % alphabet);
    return s;
  };
  for (size_t size :
       {0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 65536, 65537}) {
    add("random letters", size, [&](size_t) { return letters(20, 26); });
  }
  for (size_t size : {1u, 8u, 9u, 500u}) {
    add("all empty", size, [&](size_t) { return std::string(); });
    add("all equal", size, [&](size_t) { return std::string("the one key there is"); });
    add("eight zero bytes and less", size, [&](size_t i) { return std::string(i % 9, '\0'); });
    add("eight 0xFF and less", size, [&](size_t i) { return std::string(i % 10, '\xff'); });
    add("prefixes of one another", size, [&](size_t i) { return std::string(i, 'a'); });
    add("prefixes of one another, zero bytes", size,
        [&](size_t i) { return std::string(i, '\0'); });
    add("a long common prefix", size,
        [&](size_t) { return std::string(1024, 'p') + letters(6, 3); });
    add("a common prefix that is a key", size,
        [&](size_t i) { return std::string(33, 'p') + (i % 3 == 0 ? "" : letters(3, 3)); });
  }
  add("64 KB keys", 40,
      [&](size_t) { return std::string(65536 - random() % 3, 'k') + letters(2, 2); });
  add("zero bytes and 0xFF", 5000, [&](size_t) {
    std::string s = bytes(12, 2);
    for (char& c : s) c = c == 1 ? '\xff' : '\0';
    return s;
  });
  add("two letters", 20000, [&](size_t) { return letters(14, 2); });
  add("any bytes", 20000, [&](size_t) { return bytes(10, 256); });
  add("few distinct", 5000, [&](size_t) { return letters(1, 3); });
  add("equal first eight bytes, in places", 30000, [&](size_t i) {
    return (i % 3 == 0 ? "same-pre" : i % 3 == 1 ? "same-pr" : "") + letters(9, 20);
  });
  add("numbers", 30000, [&](size_t) { return std::to_string(random() % 100000000000ull); });
  return catalogue;
}

template OracleData<uint32_t> FinishIntegers(std::string, std::vector<uint32_t>);
template OracleData<uint64_t> FinishIntegers(std::string, std::vector<uint64_t>);

}  // namespace oracle

template <>
std::vector<OracleData<uint32_t>> OracleCatalogue<uint32_t>(size_t most) {
  return oracle::IntegerCatalogue<uint32_t>(most);
}
template <>
std::vector<OracleData<uint64_t>> OracleCatalogue<uint64_t>(size_t most) {
  return oracle::IntegerCatalogue<uint64_t>(most);
}
template <>
std::vector<OracleData<std::string>> OracleCatalogue<std::string>(size_t most) {
  return oracle::StringCatalogue(most);
}

}  // namespace cairn
