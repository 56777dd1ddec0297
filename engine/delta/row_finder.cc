#include "engine/delta/row_finder.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/run/gallop.h"
#include "index/strings/string_compare.h"

namespace cairn {
namespace {

// Searches that advance together.
constexpr size_t kGroup = 64;
// Blocks per task.
constexpr size_t kBuildGrain = 4096;
// Cache lines of a block that are prefetched: enough for 16 keys of 16 bytes.
constexpr uint64_t kLinesAhead = 5;
constexpr uint64_t kLineBytes = 64;

// SliceOf(s), faster for a string in memory that is readable up to `end`.
uint64_t SliceBefore(std::string_view s, const char* end) {
  if (end - s.data() < 8 || s.empty()) return SliceOf(s);
  const uint64_t word = LoadBigEndian(s.data());
  return s.size() >= 8 ? word : word >> (64 - 8 * s.size()) << (64 - 8 * s.size());
}

}  // namespace

struct RowFinder::Search {
  std::string_view key;
  uint64_t slice = 0;
  uint64_t behind = 0;  // the result is in the last block before this one
  RowId row = 0;
  bool found = false;
};

absl::StatusOr<std::shared_ptr<const RowFinder>> RowFinder::Build(RowTable table, int threads) {
  ASSIGN_OR_RETURN(const SimdLevel level, DefaultSimdLevel());
  std::shared_ptr<RowFinder> finder(new RowFinder(std::move(table)));
  const uint64_t blocks = finder->table_.sections_.block_offsets.size();
  std::string first, last;
  if (blocks > 0) {
    if (!finder->FirstKey(0, &first)) return finder->table_.Damaged(0);
    if (!finder->FirstKey(blocks - 1, &last)) return finder->table_.Damaged(blocks - 1);
    first.resize(CommonPrefix(first, last, 0));
    finder->prefix_ = first;
  }
  finder->slices_ = AlignedBuffer<uint64_t>(blocks);
  std::atomic<uint64_t> damaged{blocks};
  ParallelFor(threads, (blocks + kBuildGrain - 1) / kBuildGrain, [&](size_t grain) {
    std::string key;
    const uint64_t end = std::min(blocks, (grain + 1) * kBuildGrain);
    for (uint64_t block = grain * kBuildGrain; block < end; ++block) {
      if (block + kGroup < blocks) finder->table_.PrefetchBlock(block + kGroup);
      if (finder->FirstKey(block, &key)) {
        finder->slices_[block] = finder->Slice(key);
      } else {
        damaged.store(block);
      }
    }
  });
  if (damaged.load() < blocks) return finder->table_.Damaged(damaged.load());
  for (uint64_t block = 1; block < blocks; ++block) {
    if (finder->slices_[block] < finder->slices_[block - 1]) return finder->table_.Damaged(block);
  }
  finder->tree_ = FastTreeNodes<uint64_t>(std::as_const(finder->slices_).span(), {},
                                          PageBlocking::kNone, level);
  return std::shared_ptr<const RowFinder>(std::move(finder));
}

bool RowFinder::FirstKey(uint64_t block, std::string* key) const {
  RowBlock parsed;
  std::string_view rest;
  if (!table_.Parse(block, table_.RowsOf(block), &parsed) || !parsed.Rest(0, &rest)) return false;
  key->assign(parsed.prefix()).append(rest);
  return true;
}

uint64_t RowFinder::Slice(std::string_view primary_key) const {
  const size_t shared = prefix_.size();
  if (primary_key.size() >= shared && primary_key.compare(0, shared, prefix_) == 0) {
    return SliceOf(primary_key.substr(shared));
  }
  return primary_key < prefix_ ? 0 : UINT64_MAX;
}

absl::Status RowFinder::Places(absl::Span<const std::string_view> primary_keys,
                               absl::Span<RowPlace> places) const {
  Search group[kGroup];
  for (size_t first = 0; first < primary_keys.size(); first += kGroup) {
    const size_t count = std::min(kGroup, primary_keys.size() - first);
    for (size_t i = 0; i < count; ++i) group[i] = Search{primary_keys[first + i]};
    RETURN_IF_ERROR(Locate(absl::MakeSpan(group, count)));
    for (size_t i = 0; i < count; ++i) {
      places[first + i] = {group[i].key, group[i].row, group[i].found};
    }
  }
  return absl::OkStatus();
}

absl::Status RowFinder::Locate(absl::Span<Search> searches) const {
  const uint64_t blocks = slices_.size();
  if (blocks == 0) return absl::OkStatus();
  uint64_t slices[kGroup];
  Position positions[kGroup];
  for (size_t i = 0; i < searches.size(); ++i) {
    slices[i] = searches[i].slice = Slice(searches[i].key);
  }
  tree_.LowerBound(absl::MakeConstSpan(slices, searches.size()), positions);
  const uint64_t* const offsets = table_.sections_.block_offsets.data();
  for (size_t i = 0; i < searches.size(); ++i) {
    searches[i].behind = positions[i];
    Prefetch(slices_.data() + positions[i]);
    Prefetch(offsets + positions[i]);
  }
  for (Search& search : searches) {
    if (search.behind < blocks && slices_[search.behind] == search.slice) {
      RETURN_IF_ERROR(ChooseBlock(&search));
    }
    if (search.behind == 0) continue;
    const char* const block = table_.sections_.blocks.data() + offsets[search.behind - 1];
    for (uint64_t line = 0; line < kLinesAhead; ++line) {
      // Prefetching an address past the end of the mapping is harmless.
      Prefetch(
          reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(block) + line * kLineBytes));
    }
  }
  for (Search& search : searches) {
    if (search.behind == 0) continue;
    RETURN_IF_ERROR(FindInBlock(&search));
  }
  return absl::OkStatus();
}

absl::Status RowFinder::ChooseBlock(Search* search) const {
  uint64_t begin = search->behind;
  uint64_t end = Gallop(begin, slices_.size(),
                        [&](uint64_t block) { return slices_[block] == search->slice; });
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    RowBlock block;
    bool at_most = false;
    if (!table_.Parse(middle, table_.RowsOf(middle), &block) ||
        !block.FirstAtMost(search->key, &at_most)) {
      return table_.Damaged(middle);
    }
    (at_most ? begin : end) = at_most ? middle + 1 : middle;
  }
  search->behind = begin;
  return absl::OkStatus();
}

absl::Status RowFinder::FindInBlock(Search* search) const {
  const uint64_t block = search->behind - 1;
  const size_t part = table_.PartOf<&RowTablePart::first_block>(block);
  const RowTablePart& at = table_.sections_.parts[part];
  const uint64_t first_row = at.first_row + (block - at.first_block) * kRowsPerBlock;
  const auto rows = static_cast<uint32_t>(
      std::min<uint64_t>(kRowsPerBlock, table_.sections_.parts[part + 1].first_row - first_row));
  RowBlock parsed;
  if (!table_.Parse(block, rows, &parsed)) return table_.Damaged(block);

  std::string_view key = search->key;
  const std::string_view prefix = parsed.prefix();
  const size_t shared = CommonPrefix(key, prefix, 0);
  uint32_t begin = 0;
  uint32_t end = rows;
  if (shared < prefix.size()) {
    begin = end = CompareBehind(key, prefix, shared) < 0 ? 0 : rows;
  }
  key.remove_prefix(shared);
  const uint64_t slice = SliceOf(key);
  const char* const readable = table_.sections_.blocks.data() + table_.sections_.blocks.size();
  while (begin < end) {
    const uint32_t middle = (begin + end) / 2;
    std::string_view rest;
    if (!parsed.Rest(middle, &rest)) return table_.Damaged(block);
    const uint64_t rest_slice = SliceBefore(rest, readable);
    bool less = rest_slice < slice;
    if (rest_slice == slice) {
      const int order = rest.compare(key);
      less = order < 0;
      search->found |= order == 0;
    }
    begin = less ? middle + 1 : begin;
    end = less ? end : middle;
  }
  search->row = static_cast<RowId>(first_row + begin);
  return absl::OkStatus();
}

}  // namespace cairn
