#include "index/run/copy_run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "index/machine/aligned_buffer.h"
#include "index/machine/parallel.h"

namespace cairn {
namespace {

// Bytes per task of a copy.
constexpr size_t kCopyGrain = size_t{4} << 20;

template <typename T>
AlignedBuffer<T> Copy(const T* from, size_t size, int threads) {
  AlignedBuffer<T> to(size);
  const size_t bytes = size * sizeof(T);
  ParallelFor(threads, (bytes + kCopyGrain - 1) / kCopyGrain, [&](size_t task) {
    const size_t begin = task * kCopyGrain;
    std::memcpy(reinterpret_cast<char*>(to.data()) + begin,
                reinterpret_cast<const char*>(from) + begin, std::min(kCopyGrain, bytes - begin));
  });
  return to;
}

template <typename Key>
SortedRun CopyFixedWidth(const SortedRun& run, int threads) {
  struct Columns {
    AlignedBuffer<Key> keys;
    AlignedBuffer<RowId> row_ids;
  };
  auto columns =
      std::make_shared<const Columns>(Columns{Copy(run.keys<Key>().data(), run.size(), threads),
                                              Copy(run.row_ids().data(), run.size(), threads)});
  return SortedRun::Wrap(columns->keys.span(), columns->row_ids.span(), columns);
}

template <typename Offset>
SortedRun CopyStrings(const SortedRun& run, const Offset* offsets, int threads) {
  struct Columns {
    AlignedBuffer<char> heap;
    AlignedBuffer<Offset> offsets;
    AlignedBuffer<RowId> row_ids;
  };
  auto columns = std::make_shared<const Columns>(Columns{
      Copy(run.bytes().heap(), run.bytes().offset(run.size()), threads),
      Copy(offsets, run.size() + 1, threads), Copy(run.row_ids().data(), run.size(), threads)});
  return SortedRun::Wrap(BytesColumn(columns->heap.data(), columns->offsets.span()),
                         columns->row_ids.span(), columns);
}

}  // namespace

SortedRun CopyRun(const SortedRun& run, int threads) {
  switch (run.kind()) {
    case PhysicalType::kU32:
      return CopyFixedWidth<uint32_t>(run, threads);
    case PhysicalType::kU64:
      return CopyFixedWidth<uint64_t>(run, threads);
    case PhysicalType::kBytes:
      break;
  }
  return run.bytes().offsets32() != nullptr ? CopyStrings(run, run.bytes().offsets32(), threads)
                                            : CopyStrings(run, run.bytes().offsets64(), threads);
}

}  // namespace cairn
