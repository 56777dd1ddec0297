#include "tools/bench/data.h"

#include <tbb/parallel_sort.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cairn::bench {
namespace {

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
  // Drops surplus keys evenly, so that not only the greatest keys are missing.
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

}  // namespace cairn::bench
