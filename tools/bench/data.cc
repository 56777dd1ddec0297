#include "tools/bench/data.h"

#include <tbb/parallel_sort.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cairn::bench {
namespace {

const char* const kDomains[] = {".com", ".org", ".net", ".de", ".io", ".co.uk"};

std::string Word(Random* random, size_t shortest, size_t longest) {
  std::string word(shortest + random->Below(longest - shortest + 1), ' ');
  for (char& c : word) c = static_cast<char>('a' + random->Below(26));
  return word;
}

std::string Digits(Random* random, size_t count) {
  std::string digits(count, ' ');
  for (char& c : digits) c = static_cast<char>('0' + random->Below(10));
  return digits;
}

Strings MakeStrings(std::string_view name, size_t n) {
  Random random(kSeed);
  std::vector<std::string> hosts, words;
  for (size_t i = 0; i < n / 100 + 1; ++i) {
    std::string host = random.Below(2) == 0 ? "https://www." : "https://";
    host += Word(&random, 4, 14);
    host += kDomains[random.Below(std::size(kDomains))];
    hosts.push_back(std::move(host));
  }
  for (size_t i = 0; i < 2000; ++i) words.push_back(Word(&random, 3, 10));
  Strings strings;
  std::vector<uint64_t> ends;
  for (size_t i = 0; i < n + n / 1000 + 10; ++i) {
    if (name == "dig16") {
      strings.heap += Digits(&random, 16);
    } else {
      // The product of two uniform numbers favours the first hosts.
      strings.heap += hosts[random.Below(random.Below(hosts.size()) + 1)];
      for (int k = 0; k < 2; ++k) {
        strings.heap += '/';
        strings.heap += words[random.Below(words.size())];
      }
      strings.heap += '/';
      strings.heap += Digits(&random, 1 + random.Below(8));
    }
    ends.push_back(strings.heap.size());
  }
  uint64_t begin = 0;
  for (uint64_t end : ends) {
    strings.keys.emplace_back(strings.heap.data() + begin, end - begin);
    begin = end;
  }
  tbb::parallel_sort(strings.keys.begin(), strings.keys.end());
  strings.keys.erase(std::unique(strings.keys.begin(), strings.keys.end()), strings.keys.end());
  strings.keys.resize(std::min(n, strings.keys.size()));
  return strings;
}

template <typename Key>
std::vector<RowId> ScatteredRows(const std::vector<Key>& keys) {
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = ScatteredRow(i, rows.size());
  return rows;
}

}  // namespace

template <typename Key>
const std::vector<Key>& UniformKeys(size_t n) {
  static std::vector<Key> keys;
  if (keys.size() == n) return keys;
  keys.clear();
  Random random(kSeed);
  while (keys.size() < n) {
    const size_t missing = n - keys.size();
    for (size_t i = 0; i < missing + missing / 100 + 1; ++i) {
      keys.push_back(static_cast<Key>(random()));
    }
    tbb::parallel_sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  // Drops what is too much evenly, so that the greatest keys are not the ones that lack.
  const size_t surplus = keys.size() - n;
  size_t to = 0;
  for (size_t from = 0, dropped = 0; from < keys.size(); ++from) {
    if (dropped < surplus && from * surplus >= dropped * keys.size()) {
      ++dropped;
    } else {
      keys[to++] = keys[from];
    }
  }
  keys.resize(n);
  return keys;
}

template const std::vector<uint32_t>& UniformKeys<uint32_t>(size_t n);
template const std::vector<uint64_t>& UniformKeys<uint64_t>(size_t n);

template <typename Key>
SortedRun MakeRun(const std::vector<Key>& keys) {
  auto run = SortedRun::FromSorted(absl::MakeConstSpan(keys), ScatteredRows(keys));
  if (!run.ok()) {
    std::fprintf(stderr, "benchmark data: %s\n", run.status().ToString().c_str());
    std::abort();
  }
  return *std::move(run);
}

template SortedRun MakeRun(const std::vector<uint32_t>& keys);
template SortedRun MakeRun(const std::vector<uint64_t>& keys);
template SortedRun MakeRun(const std::vector<std::string_view>& keys);

const Strings& StringSet(std::string_view name, size_t n) {
  static std::string made;
  static Strings strings;
  const std::string wanted = std::string(name) + "/" + std::to_string(n);
  if (made != wanted) {
    strings = Strings();
    strings = MakeStrings(name, n);
    made = wanted;
  }
  return strings;
}

}  // namespace cairn::bench
