#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cairn/ordered_index.h"

namespace cairn {

// Entries in run order, and keys to ask for: some that are there, some just beside them, the least
// and the greatest. Key is uint32_t, uint64_t or std::string.
template <typename Key>
struct OracleData {
  std::string name;
  std::vector<Key> keys;
  std::vector<RowId> row_ids;
  std::vector<Key> queries;
};

// Data sets that have broken, or would break, some search structure: sizes around powers of two and
// cache lines; all keys equal; duplicates that span lines; the least and the greatest key; dense
// and scattered ones. Those of strings besides: empty ones, one a prefix of another, zero bytes,
// long common prefixes. `most` bounds the number of entries.
template <typename Key>
std::vector<OracleData<Key>> OracleCatalogue(size_t most = 70000);

template <>
std::vector<OracleData<uint32_t>> OracleCatalogue<uint32_t>(size_t most);
template <>
std::vector<OracleData<uint64_t>> OracleCatalogue<uint64_t>(size_t most);
template <>
std::vector<OracleData<std::string>> OracleCatalogue<std::string>(size_t most);

namespace oracle {

// What a batch of the keys is made from: keys themselves, or views of them.
template <typename Key>
using Physical = std::conditional_t<std::is_integral_v<Key>, Key, std::string_view>;

template <typename Key>
std::vector<Physical<Key>> Views(const std::vector<Key>& keys) {
  return {keys.begin(), keys.end()};
}

// A data set of these keys, in any order, with random row ids and with queries.
template <typename Key>
OracleData<Key> FinishIntegers(std::string name, std::vector<Key> keys);
OracleData<std::string> FinishStrings(std::string name, std::vector<std::string> keys);

}  // namespace oracle

// The data's entries as a run.
template <typename Key>
SortedRun OracleRun(const OracleData<Key>& data);

// Asks `index`, over the data's run, everything that an OrderedIndex answers, and compares with
// std:: algorithms over the same entries.
template <typename Key>
void CheckAgainstOracle(const OrderedIndex& index, const OracleData<Key>& data);

// Asks it only of single keys, the first `most` of the data's queries in one batch.
template <typename Key>
void CheckPointsAgainstOracle(const OrderedIndex& index, const OracleData<Key>& data,
                              size_t most = SIZE_MAX);

// CheckAgainstOracle for every data set of the catalogue; make(run) gives the index.
template <typename Key, typename Make>
void CheckCatalogue(Make make, size_t most = 70000) {
  for (const OracleData<Key>& data : OracleCatalogue<Key>(most)) {
    CheckAgainstOracle(*make(OracleRun(data)), data);
  }
}

}  // namespace cairn
