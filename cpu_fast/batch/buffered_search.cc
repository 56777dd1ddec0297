#include "cpu_fast/batch/buffered_search.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "cpu_fast/batch/part_map.h"
#include "index/machine/status_macros.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

using Role = StrategyScratch::Role;

// Partitions of a run of fixed-width keys.
template <typename Key>
class FixedWidthParts {
 public:
  FixedWidthParts(const FixedWidthColumn<Key>& column, size_t parts, StrategyScratch* scratch)
      : map_(scratch->part_map<Key>()) {
    map_.Prepare(column.keys.data(), column.keys.size(), parts,
                 [&](size_t i) { return column[i]; });
  }
  size_t size() const { return map_.parts(); }
  size_t PartOf(Key query) const { return map_.PartOf(query); }

 private:
  PartMap<Key>& map_;
};

// Partitions of a run of byte-string keys.
class BytesParts {
 public:
  BytesParts(const StringColumn& column, size_t parts, StrategyScratch* scratch)
      : map_(scratch->part_map<uint64_t>()) {
    const std::string_view first = column[0], last = column[column.keys.size() - 1];
    const size_t shorter = std::min(first.size(), last.size());
    const auto differ = std::mismatch(first.begin(), first.begin() + shorter, last.begin());
    common_ = first.substr(0, static_cast<size_t>(differ.first - first.begin()));
    map_.Prepare(column.keys.heap(), column.keys.size(), parts,
                 [&](size_t i) { return WordAt(column[i], common_.size()); });
  }
  size_t size() const { return map_.parts(); }
  size_t PartOf(std::string_view query) const { return map_.PartOf(WordOf(query)); }

 private:
  // Non-decreasing in the query.
  uint64_t WordOf(std::string_view query) const {
    const int order = query.substr(0, common_.size()).compare(common_);
    if (order != 0) return order < 0 ? 0 : UINT64_MAX;
    return WordAt(query, common_.size());
  }
  // The eight bytes of the key from `depth` on as a big-endian integer, zero-padded past the end of
  // the key. Requires depth <= key.size().
  static uint64_t WordAt(std::string_view key, size_t depth) {
    uint64_t word = 0;
    if (key.size() >= depth + sizeof word) {
      std::memcpy(&word, key.data() + depth, sizeof word);
    } else if (key.size() > depth) {
      std::memcpy(&word, key.data() + depth, key.size() - depth);
    }
    return __builtin_bswap64(word);
  }

  PartMap<uint64_t>& map_;
  std::string_view common_;  // common prefix of the run's keys
};

// One buffer per partition, each with room for `capacity` queries.
template <typename Key, typename Parts>
class PartBuffers {
 public:
  PartBuffers(const OrderedIndex& index, const Parts& parts, size_t capacity,
              StrategyScratch* scratch, const Batch& batch)
      : index_(index),
        parts_(parts),
        capacity_(capacity),
        fill_(scratch->Take<uint32_t>(Role::kFill, parts.size())),
        keys_(scratch->Take<Key>(Role::kKeys, parts.size() * capacity)),
        slots_(scratch->Take<uint32_t>(Role::kSlots, parts.size() * capacity)),
        found_(batch),
        batch_(batch) {
    found_.query_of = {};
    scratch->TakeAnswers(capacity, &found_);
    std::fill(fill_.begin(), fill_.end(), 0);
  }

  absl::Status Run() {
    const absl::Span<const Key> queries = batch_.keys.as<Key>();
    for (size_t i = 0; i < queries.size(); ++i) {
      const size_t part = parts_.PartOf(queries[i]);
      const size_t at = part * capacity_ + fill_[part];
      keys_[at] = queries[i];
      slots_[at] = static_cast<uint32_t>(i);
      if (++fill_[part] < capacity_) continue;
      RETURN_IF_ERROR(RunPart(part));
    }
    for (size_t part = 0; part < parts_.size(); ++part) {
      RETURN_IF_ERROR(RunPart(part));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunPart(size_t part) {
    const size_t count = fill_[part];
    const size_t begin = part * capacity_;
    fill_[part] = 0;
    found_.keys = keys_.subspan(begin, count);
    const Batch found = found_.Slice(0, count);
    RETURN_IF_ERROR(index_.Execute(found));
    ScatterAnswers(found, slots_.subspan(begin, count), batch_);
    return absl::OkStatus();
  }

  const OrderedIndex& index_;
  const Parts& parts_;
  const size_t capacity_;            // of each buffer, in queries
  const absl::Span<uint32_t> fill_;  // [parts] number of queries in each buffer
  const absl::Span<Key> keys_;       // [parts][capacity_] the buffered queries
  const absl::Span<uint32_t>
      slots_;    // [parts][capacity_] position of each buffered query in the batch
  Batch found_;  // [capacity_] results of the buffer being searched
  const Batch& batch_;
};

}  // namespace

absl::Status BufferedSearch(const OrderedIndex& index, const Batch& batch,
                            const StrategyOptions& options, StrategyScratch* scratch) {
  size_t parts = options.parts;
  while (parts > 1 && batch.size() / parts < options.buffer) parts /= 2;
  if (parts == 1 || index.run().empty()) return index.Execute(batch);
  return WithColumn(index.run(), [&](const auto& column) {
    using Key = typename decltype(column.Queries(batch.keys))::value_type;
    using Parts =
        std::conditional_t<std::is_same_v<Key, std::string_view>, BytesParts, FixedWidthParts<Key>>;
    const Parts of_run(column, parts, scratch);
    return PartBuffers<Key, Parts>(index, of_run, options.buffer, scratch, batch).Run();
  });
}

}  // namespace cairn
