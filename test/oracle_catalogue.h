#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cairn/types.h"

namespace cairn {

// Entries in run order, and queries: some keys of the entries, some adjacent to these, the min and
// the max. Key is uint32_t, uint64_t or std::string.
template <typename Key>
struct OracleData {
  std::string name;
  std::vector<Key> keys;
  std::vector<RowId> row_ids;
  std::vector<Key> queries;
};

// Data sets that have broken, or could break, some search structure: sizes around powers of two and
// cache lines; all keys equal; duplicates that span lines; the min and the max key; dense and
// scattered keys. For strings also: empty ones, one a prefix of another, zero bytes, long common
// prefixes. `most` bounds the number of entries.
template <typename Key>
std::vector<OracleData<Key>> OracleCatalogue(size_t most = 70000);

template <>
std::vector<OracleData<uint32_t>> OracleCatalogue<uint32_t>(size_t most);
template <>
std::vector<OracleData<uint64_t>> OracleCatalogue<uint64_t>(size_t most);
template <>
std::vector<OracleData<std::string>> OracleCatalogue<std::string>(size_t most);

namespace oracle {

// A data set of these keys, in any order, with random row ids and with queries.
template <typename Key>
OracleData<Key> FinishIntegers(std::string name, std::vector<Key> keys);
OracleData<std::string> FinishStrings(std::string name, std::vector<std::string> keys);

}  // namespace oracle

}  // namespace cairn
