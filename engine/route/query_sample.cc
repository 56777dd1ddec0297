#include "engine/route/query_sample.h"

#include <algorithm>
#include <string>

#include "absl/functional/function_ref.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

constexpr int64_t kMostNanoseconds = 4'000'000;
constexpr size_t kMostBytes = size_t{8} << 20;
// Keys whose memory is asked for before it is read, and between looks at the clock.
constexpr size_t kBlock = 32;

// Appends keys of a run, or as often the least of all where it has none.
void AppendKeys(const SortedRun& run, absl::Span<const Position> positions, KeyColumn* to) {
  if (!run.empty()) {
    return WithColumn(run, [&](const auto& column) {
      PrefetchKeys(column, run.size(), positions);
      for (const Position position : positions) column.Append(position, to);
    });
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    switch (run.kind()) {
      case KeyKind::kU32:
        to->AppendU32(0);
        break;
      case KeyKind::kU64:
        to->AppendU64(0);
        break;
      case KeyKind::kBytes:
        to->AppendBytes("");
        break;
    }
  }
}

void AppendKey(const KeyColumn& from, size_t i, KeyColumn* to) {
  switch (from.kind()) {
    case KeyKind::kU32:
      return to->AppendU32(from.u32(i));
    case KeyKind::kU64:
      return to->AppendU64(from.u64(i));
    case KeyKind::kBytes:
      return to->AppendBytes(std::string(from.bytes(i)));  // a view of *to's own would move
  }
}

size_t HeapBytes(const SortedRun& run, absl::Span<const Position> positions) {
  size_t bytes = 0;
  if (run.kind() == KeyKind::kBytes && !run.empty()) {
    for (const Position position : positions) bytes += run.bytes()[position].size();
  }
  return bytes;
}

}  // namespace

QuerySample::QuerySample(const SortedRun& run, const std::function<int64_t()>& now_ns)
    : run_(run),
      points_(run.kind()),
      lower_(run.kind()),
      upper_(run.kind()),
      ascending_(run.kind()) {
  const size_t last = std::max<size_t>(run.size(), 1) - 1;
  const auto draw = [&](size_t most, int64_t most_ns, absl::FunctionRef<size_t()> draw_block) {
    const int64_t start = now_ns();
    size_t drawn = 0, bytes = 0;
    do {
      bytes += draw_block();
      drawn += kBlock;
    } while (drawn < most && bytes < kMostBytes && now_ns() - start < most_ns);
  };
  Position positions[kBlock];
  draw(kMostKeys, kMostNanoseconds, [&] {
    for (Position& position : positions) position = static_cast<Position>(Below(last + 1));
    return points_.Draw(run, positions);
  });
  draw(kMostRanges, kMostNanoseconds / 2, [&] {
    for (Position& position : positions) position = static_cast<Position>(Below(last + 1));
    const size_t bytes = lower_.Draw(run, positions);
    for (Position& position : positions) {
      position = static_cast<Position>(std::min(position + kRangeEntries, last));
    }
    return bytes + upper_.Draw(run, positions);
  });
  for (Column* column : {&points_, &lower_, &upper_}) column->batch = column->keys.Batch();
}

size_t QuerySample::Column::Draw(const SortedRun& run, absl::Span<const Position> positions) {
  AppendKeys(run, positions, &keys);
  drawn += positions.size();
  return HeapBytes(run, positions);
}

void QuerySample::Column::Repeat(size_t count) {
  if (count <= batch.size()) return;
  for (size_t i = batch.size(); i < count; ++i) AppendKey(keys, i % drawn, &keys);
  batch = keys.Batch();
}

size_t QuerySample::Below(size_t n) {
  // splitmix64
  uint64_t z = (random_ += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  return static_cast<size_t>((z >> 32) * uint64_t{n} >> 32);  // positions take 32 bits
}

KeyBatch QuerySample::Next(size_t count) {
  points_.Repeat(count);
  if (next_point_ + count > points_.batch.size()) next_point_ = 0;
  next_point_ += count;
  return points_.batch.Slice(next_point_ - count, count);
}

RangeBatch QuerySample::NextRanges(size_t count) {
  lower_.Repeat(count);
  upper_.Repeat(count);
  if (next_range_ + count > lower_.batch.size()) next_range_ = 0;
  next_range_ += count;
  const size_t first = next_range_ - count;
  return RangeBatch::HalfOpen(lower_.batch.Slice(first, count), upper_.batch.Slice(first, count));
}

KeyBatch QuerySample::NextAscending(size_t count, size_t of) {
  const size_t entries = std::max<size_t>(run_.size(), 1);
  const size_t window = of <= count ? entries : entries * count / of;  // that the batch falls into
  const size_t first = Below(entries - window + 1);
  std::vector<Position> positions(count);
  for (size_t i = 0; i < count; ++i) {
    // One in each of `count` parts of the window.
    const size_t begin = window * i / count;
    const size_t end = window * (i + 1) / count;
    positions[i] = static_cast<Position>(
        std::min(first + begin + Below(std::max<size_t>(end - begin, 1)), entries - 1));
  }
  ascending_.Clear(run_.kind());
  AppendKeys(run_, positions, &ascending_);
  return ascending_.Batch();
}

}  // namespace cairn
