// Arbitrary sorted entries: every ordered index over them gives the answers of a binary search. The
// input bytes are a small program that writes keys, so that few bytes make long runs of equal,
// adjacent or scattered keys.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "test/fuzz/every_ordered_index.h"

namespace cairn {
namespace {

constexpr size_t kMaxEntries = 20000;

// Reads numbers from bytes; zeros past their end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  uint64_t Number(size_t width) {
    uint64_t number = 0;
    const size_t taken = std::min(width, bytes_.size());
    if (taken > 0) std::memcpy(&number, bytes_.data(), taken);
    bytes_.remove_prefix(taken);
    return number;
  }
  std::string_view Bytes(size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view bytes_;
};

// Each step reads a first key, a distance from key to key, and a number of keys.
template <typename Key>
std::vector<Key> Numbers(Reader reader) {
  std::vector<Key> keys;
  while (!reader.at_end() && keys.size() < kMaxEntries) {
    const uint64_t step = reader.Number(1);
    Key key = static_cast<Key>(reader.Number(1 + step % sizeof(Key)));
    if ((step & 8) != 0) key = static_cast<Key>(~key);  // at the other end
    if ((step & 16) != 0) key = static_cast<Key>(key << (step % (8 * sizeof(Key))));
    const uint64_t count =
        std::min<uint64_t>(1 + reader.Number(1 + (step >> 5) % 2), kMaxEntries - keys.size());
    Key distance = static_cast<Key>(reader.Number(1 + (step >> 6) % sizeof(Key)));
    for (uint64_t i = 0; i < count; ++i) {
      keys.push_back(key);
      key = static_cast<Key>(key + distance);
      if ((step & 128) != 0) distance = static_cast<Key>(distance * 0x9E3779B97F4A7C15u + 1);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Each step reads: the length of the previous key's prefix to keep, the bytes after it, the number
// of repetitions, and whether a counter follows.
std::vector<std::string> Strings(Reader reader) {
  std::vector<std::string> keys;
  std::string key;
  size_t bytes = 0;
  while (!reader.at_end() && keys.size() < kMaxEntries && bytes < 1'000'000) {
    key.resize(std::min<size_t>(key.size(), reader.Number(1)));
    const uint64_t step = reader.Number(1);
    const std::string_view tail = reader.Bytes(step % 16);
    for (uint64_t i = 0; i <= (step >> 4) % 4 && key.size() < 2000; ++i) key.append(tail);
    const uint64_t count = std::min<uint64_t>(1 + reader.Number(1), kMaxEntries - keys.size());
    for (uint64_t i = 0; i < count; ++i) {
      keys.push_back(key);
      if ((step & 64) != 0) keys.back().push_back(static_cast<char>(i));
      if ((step & 128) != 0) keys.back().insert(0, 1, static_cast<char>(i / 2));
      bytes += keys.back().size();
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

template <typename Key>
void CheckKeys(const std::vector<Key>& keys) {
  std::vector<RowId> rows(keys.size());
  std::iota(rows.begin(), rows.end(), RowId{0});  // ascending within a key, as they must be
  const auto run = SortedRun::FromSorted(absl::MakeConstSpan(keys), rows);
  if (!run.ok()) std::abort();
  EveryOrderedIndex::Check(*run);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cairn::Reader reader(std::string_view(reinterpret_cast<const char*>(data), size));
  switch (reader.Number(1) % 3) {
    case 0:
      cairn::CheckKeys(cairn::Numbers<uint32_t>(reader));
      break;
    case 1:
      cairn::CheckKeys(cairn::Numbers<uint64_t>(reader));
      break;
    default: {
      const std::vector<std::string> keys = cairn::Strings(reader);
      cairn::CheckKeys(std::vector<std::string_view>(keys.begin(), keys.end()));
      break;
    }
  }
  return 0;
}
