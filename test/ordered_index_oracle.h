#pragma once

#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "cairn/ordered_index.h"
#include "test/oracle_catalogue.h"

namespace cairn {
namespace oracle {

// The key type of a batch: keys themselves, or views of them.
template <typename Key>
using Physical = std::conditional_t<std::is_integral_v<Key>, Key, std::string_view>;

template <typename Key>
std::vector<Physical<Key>> Views(const std::vector<Key>& keys) {
  return {keys.begin(), keys.end()};
}

}  // namespace oracle

// The data's entries as a run.
template <typename Key>
SortedRun OracleRun(const OracleData<Key>& data);

// Executes all operations of an OrderedIndex over the data's run, and compares the results with
// std:: algorithms over the same entries.
template <typename Key>
void CheckAgainstOracle(const OrderedIndex& index, const OracleData<Key>& data);

// The same only for single keys: the first `most` of the data's queries in one batch.
template <typename Key>
void CheckPointsAgainstOracle(const OrderedIndex& index, const OracleData<Key>& data,
                              size_t most = SIZE_MAX);

// Calls CheckAgainstOracle for every data set of the catalog; make(run) returns the index.
template <typename Key, typename Make>
void CheckCatalogue(Make make, size_t most = 70000) {
  for (const OracleData<Key>& data : OracleCatalogue<Key>(most)) {
    CheckAgainstOracle(*make(OracleRun(data)), data);
  }
}

// A run like `run`, with offsets of 4 bytes.
inline SortedRun WithShortOffsets(const SortedRun& run) {
  struct Columns {
    SortedRun run;
    std::vector<uint32_t> offsets;
  };
  auto columns = std::make_shared<Columns>(Columns{run, {}});
  for (size_t i = 0; i <= run.size(); ++i) {
    columns->offsets.push_back(static_cast<uint32_t>(run.bytes().offset(i)));
  }
  return SortedRun::Wrap(BytesColumn(run.bytes().heap(), absl::MakeConstSpan(columns->offsets)),
                         run.row_ids(), columns);
}

// Calls `holds` on four threads at once, and requires that all calls return true.
inline void RequireOnFourThreads(const std::function<bool()>& holds) {
  std::vector<std::thread> threads;
  std::vector<int> held(4, 0);
  for (int& one : held) threads.emplace_back([&] { one = holds() ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  BOOST_CHECK(held == std::vector<int>(4, 1));
}

}  // namespace cairn
