#include "index/sort/record_sort.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "index/machine/prefetch.h"
#include "index/sort/bucket_sort.h"

namespace cairn {
namespace {

// Groups up to this size are sorted by comparing whole keys.
constexpr size_t kFewRecords = 16;

// The prefetch distance of records, which are anywhere in memory.
constexpr size_t kPrefetchDistance = 16;

// The number of bytes that the first search for a common prefix compares. If all are equal, the
// next search compares twice that number. So the cost of the last search is at most a multiple of
// the bytes that are skipped.
constexpr size_t kFirstLook = 64;

// Entries that are equal up to a depth at which their partial keys have been taken.
struct Group {
  size_t begin;
  size_t end;
  size_t depth;
};

// Prefetches a record's header and the byte at `depth` of its key.
void PrefetchRecord(const char* record, size_t depth) {
  Prefetch(record);
  Prefetch(record + KeyRecord::kHeaderBytes + depth);
}

void PrefetchAhead(absl::Span<const BytesEntry> entries, size_t i, size_t depth) {
  i += kPrefetchDistance;
  if (i < entries.size()) PrefetchRecord(entries[i].record, depth);
}

// The length of the common prefix of a[0, n) and b[0, n).
size_t Mismatch(const char* a, const char* b, size_t n) {
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= n; i += sizeof(uint64_t)) {
    uint64_t x;
    uint64_t y;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    if (x != y) return i + static_cast<size_t>(__builtin_ctzll(x ^ y)) / 8;
  }
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

// Like CommonPrefix, but reads at most `limit` bytes.
size_t CommonPrefixWithin(absl::Span<const BytesEntry> entries, size_t depth, size_t limit) {
  const std::string_view first = entries[0].key();
  limit = std::min(limit, first.size() - depth);
  for (size_t i = 1; i < entries.size() && limit > 0; ++i) {
    PrefetchAhead(entries, i, depth);
    const std::string_view key = entries[i].key();
    limit = Mismatch(first.data() + depth, key.data() + depth, std::min(limit, key.size() - depth));
  }
  return limit;
}

// Sorts entries of one key.
void SortByRowId(absl::Span<BytesEntry> entries) {
  bool ascending = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    PrefetchAhead(entries, i, 0);
    entries[i].partial_key = entries[i].row_id();
    ascending &= i == 0 || entries[i - 1].partial_key <= entries[i].partial_key;
  }
  if (!ascending) SortByPartialKey(entries);
}

// Sorts few entries whose keys are equal before `depth`.
void SortFew(absl::Span<BytesEntry> entries, size_t depth) {
  const auto less = [depth](const BytesEntry& a, const BytesEntry& b) {
    const int order = a.key().substr(depth).compare(b.key().substr(depth));
    return order != 0 ? order < 0 : a.row_id() < b.row_id();
  };
  for (size_t i = 1; i < entries.size(); ++i) {
    const BytesEntry entry = entries[i];
    size_t j = i;
    for (; j > 0 && less(entry, entries[j - 1]); --j) entries[j] = entries[j - 1];
    entries[j] = entry;
  }
}

}  // namespace

size_t CommonPrefix(absl::Span<const BytesEntry> entries, size_t depth) {
  size_t common = 0;
  for (size_t look = kFirstLook;; look *= 2) {
    const size_t found = CommonPrefixWithin(entries, depth + common, look);
    common += found;
    if (found < look) return common;
  }
}

size_t TakePartialKeys(absl::Span<BytesEntry> entries, size_t depth) {
  depth += CommonPrefix(entries, depth);
  for (size_t i = 0; i < entries.size(); ++i) {
    PrefetchAhead(entries, i, depth);
    entries[i].partial_key = PartialKey(entries[i].key(), depth);
  }
  return depth;
}

uint64_t PartialKeyBehind(std::string_view prefix, std::string_view key) {
  const size_t shared = std::min(prefix.size(), key.size());
  const int order = shared == 0 ? 0 : std::memcmp(key.data(), prefix.data(), shared);
  if (order > 0) return kAboveDepth;
  if (order < 0 || key.size() < prefix.size()) return kBelowDepth;
  return PartialKey(key, prefix.size());
}

void SortRecords(absl::Span<BytesEntry> entries, size_t depth) {
  // Reads records only if partial keys are equal, and prefetches these.
  const auto prefetch = [&](const Group& group, size_t begin, size_t end) {
    begin = std::max(begin, group.begin + 1);
    end = std::min(end, group.end);
    for (size_t i = begin; i < end; ++i) {
      if (entries[i].partial_key != entries[i - 1].partial_key) continue;
      PrefetchRecord(entries[i - 1].record, group.depth);
      PrefetchRecord(entries[i].record, group.depth);
    }
  };
  std::vector<Group> groups = {{0, entries.size(), depth}};
  while (!groups.empty()) {
    const Group group = groups.back();
    groups.pop_back();
    SortByPartialKey(entries.subspan(group.begin, group.end - group.begin));
    for (size_t begin = group.begin, end; begin < group.end; begin = end) {
      const uint64_t partial_key = entries[begin].partial_key;
      for (end = begin + 1; end < group.end && entries[end].partial_key == partial_key;) ++end;
      prefetch(group, begin + kPrefetchDistance, end + kPrefetchDistance);
      if (end - begin == 1) continue;
      const absl::Span<BytesEntry> equal = entries.subspan(begin, end - begin);
      const bool elsewhere = partial_key == kBelowDepth || partial_key == kAboveDepth;
      const size_t next = elsewhere ? 0 : group.depth + kPartialKeyBytes;
      if (!elsewhere && !GoesOn(partial_key)) {
        SortByRowId(equal);
      } else if (equal.size() <= kFewRecords) {
        SortFew(equal, next);
      } else {
        groups.push_back({begin, end, TakePartialKeys(equal, next)});
      }
    }
  }
}

}  // namespace cairn
