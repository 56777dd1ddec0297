#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "index/files/run_file.h"
#include "index/machine/status_macros.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {

// Sorted entries of one kind, the expected contents of a run.
template <typename Key>
struct Entries {
  std::vector<Key> keys;
  std::vector<RowId> row_ids;
};

template <typename Key>
Key RandomKey(std::mt19937_64& random);
template <>
inline uint32_t RandomKey(std::mt19937_64& random) {
  return static_cast<uint32_t>(random());
}
template <>
inline uint64_t RandomKey(std::mt19937_64& random) {
  return random();
}
template <>
inline std::string RandomKey(std::mt19937_64& random) {
  std::string key(random() % 20, '\0');
  for (char& c : key) c = static_cast<char>(random() % 3 == 0 ? 0 : random());
  return key;
}

// `size` entries over about `distinct` keys.
template <typename Key>
Entries<Key> RandomEntries(std::mt19937_64& random, size_t size, size_t distinct) {
  std::vector<Key> keys(distinct);
  for (Key& key : keys) key = RandomKey<Key>(random);
  std::set<std::pair<Key, RowId>> sorted;
  while (sorted.size() < size) {
    sorted.emplace(keys[random() % distinct], static_cast<RowId>(random() % kMaxEntries));
  }
  Entries<Key> entries;
  for (const auto& [key, row_id] : sorted) {
    entries.keys.push_back(key);
    entries.row_ids.push_back(row_id);
  }
  return entries;
}

template <typename Key>
PhysicalType KindOf() {
  return std::is_same_v<Key, uint32_t>   ? PhysicalType::kU32
         : std::is_same_v<Key, uint64_t> ? PhysicalType::kU64
                                         : PhysicalType::kBytes;
}

template <typename Key>
uint64_t KeyBytes(const std::vector<Key>& keys) {
  uint64_t bytes = 0;
  for (const Key& key : keys) {
    if constexpr (std::is_same_v<Key, std::string>) {
      bytes += key.size();
    } else {
      bytes += sizeof(key);
    }
  }
  return bytes;
}

template <typename Key>
absl::Status AppendRange(RunFileWriter* writer, const Entries<Key>& entries, size_t first,
                         size_t count) {
  const auto row_ids = absl::MakeConstSpan(entries.row_ids).subspan(first, count);
  if constexpr (std::is_same_v<Key, std::string>) {
    const std::vector<std::string_view> views(entries.keys.begin() + first,
                                              entries.keys.begin() + first + count);
    return writer->Append(absl::MakeConstSpan(views), row_ids);
  } else {
    return writer->Append(absl::MakeConstSpan(entries.keys).subspan(first, count), row_ids);
  }
}

// Writes in batches of random sizes, some of them empty.
template <typename Key>
void WriteRun(const std::string& path, const Entries<Key>& entries, RunFileOptions options = {},
              size_t largest_batch = 100) {
  std::mt19937_64 random = TestRandom(entries.keys.size());
  auto writer = RequireOk(RunFileWriter::Create(path, KindOf<Key>(), options));
  RequireOk(writer->Begin(entries.keys.size(), KeyBytes(entries.keys)));
  for (size_t first = 0; first < entries.keys.size();) {
    const size_t count = std::min(entries.keys.size() - first, random() % (largest_batch + 1));
    RequireOk(AppendRange(writer.get(), entries, first, count));
    first += count;
  }
  RequireOk(writer->Finish());
}

inline absl::Status Append(RunFileWriter* writer, std::vector<uint32_t> keys,
                           std::vector<RowId> rows) {
  return writer->Append(absl::MakeConstSpan(keys), rows);
}

}  // namespace cairn
