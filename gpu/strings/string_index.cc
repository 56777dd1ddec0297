#include "gpu/strings/string_index.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/run/range_rows.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/strings/string_hash.h"
#include "gpu/strings/string_records.h"
#include "gpu/strings/string_search.h"
#include "gpu/strings/string_tree.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

class StringIndex : public DeviceIndex {
 public:
  StringIndex(size_t size, int device, bool hash)
      : DeviceIndex(PhysicalType::kBytes, size, device), wants_hash_(hash) {}

  absl::Status Build(const SortedRun& run, int threads, cudaStream_t stream);

  bool writes_results_once() const override { return true; }
  bool has_distinct_keys() const override { return first_positions_.size() == 0; }
  std::string description() const override {
    return absl::StrFormat("gpu:partial_key%s",
                           hash_.has_value() || (wants_hash_ && size() == 0) ? ",hash" : "");
  }
  uint64_t memory_bytes() const override {
    return records_.memory_bytes() + nodes_.bytes() + root_.bytes() + root_bits_.bytes() +
           first_positions_.bytes() + row_ids_.bytes() +
           (hash_.has_value() ? hash_->memory_bytes() : 0);
  }

 private:
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override;
  absl::Status FindEqualRanges(DeviceKeys keys, Position* begin, Position* end,
                               DeviceStream stream) const override;
  absl::Status FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                              DeviceStream stream) const override;
  absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                          uint64_t rows, Order order, RowId* row_ids,
                          DeviceStream stream) const override;

  StringTreeView view_;
  StringRecords records_;
  DeviceBuffer<StringNode> nodes_;
  DeviceBuffer<uint32_t> root_, root_bits_;
  std::optional<StringHash> hash_;
  // Used if keys repeat.
  DeviceBuffer<Position> first_positions_;
  DeviceBuffer<RowId> row_ids_;
  const bool wants_hash_;
};

// Checks whether a non-empty run can be indexed, before memory is allocated.
absl::Status CheckStrings(const SortedRun& run, const DistinctStrings& keys) {
  if (!keys.ascend()) return absl::DataLossError("the keys of a run are not sorted");
  if (std::find(run.row_ids().begin(), run.row_ids().end(), kNoRow) != run.row_ids().end()) {
    return absl::DataLossError("an entry of a run has no row id");
  }
  return StringRecords::CheckKeys(keys);
}

absl::Status StringIndex::Build(const SortedRun& run, int threads, cudaStream_t stream) {
  if (run.empty()) return absl::OkStatus();
  const DistinctStrings keys(run.bytes(), threads);
  RETURN_IF_ERROR(CheckStrings(run, keys));
  ASSIGN_OR_RETURN(records_, StringRecords::Upload(keys, run.row_ids(), threads, stream));
  if (wants_hash_) {
    const AlignedBuffer<uint32_t> begins = records_.TakeBegins();
    ASSIGN_OR_RETURN(hash_, StringHash::Build(keys, begins.span(), threads, stream));
  }
  records_.TakeBegins();
  const StringTree tree = BuildStringTree(keys, threads);
  absl::Status status = Upload(tree.nodes.span(), &nodes_, stream);
  if (status.ok()) status = Upload(tree.root.span(), &root_, stream);
  if (status.ok()) {
    status = Upload(absl::MakeConstSpan(tree.root_bits), &root_bits_, stream);
  }
  if (const auto positions = keys.first_positions(); status.ok() && !positions.empty()) {
    status = Upload(positions, &first_positions_, stream);
    if (status.ok()) status = Upload(run.row_ids(), &row_ids_, stream);
  }
  // The enqueued work reads memory of this function.
  const cudaError_t waited = cudaStreamSynchronize(stream);
  RETURN_IF_ERROR(status);
  CAIRN_RETURN_IF_CUDA_FAILS(waited);

  view_.nodes = nodes_.data();
  view_.root = root_.data();
  view_.root_bits = root_bits_.data();
  view_.ties = tree.ties;
  view_.records = records_.view();
  view_.first_positions = first_positions_.data();
  view_.longest = keys.longest();
  records_.Detach();
  if (hash_.has_value()) hash_->Detach();
  nodes_.SetStream(AfterAllUses());
  root_.SetStream(AfterAllUses());
  root_bits_.SetStream(AfterAllUses());
  first_positions_.SetStream(AfterAllUses());
  row_ids_.SetStream(AfterAllUses());
  return absl::OkStatus();
}

absl::Status StringIndex::Search(Operation query, DeviceKeys keys, void* results,
                                 DeviceStream stream) const {
  const bool row = query == Operation::kFindFirst, found = query == Operation::kContains;
  if (size() == 0) {
    const size_t bytes = keys.size() * (found ? sizeof(bool) : sizeof(uint32_t));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(results, row ? 0xff : 0, bytes, stream));
    return absl::OkStatus();
  }
  const StringAnswer answer = row                               ? StringAnswer::kRow
                              : found                           ? StringAnswer::kFound
                              : query == Operation::kUpperBound ? StringAnswer::kUpperBound
                                                                : StringAnswer::kLowerBound;
  if (hash_.has_value() && (row || found)) {
    StringHashView hash = hash_->view();
    hash.records = view_.records;
    hash.longest = view_.longest;
    return SearchStringHash(hash, answer, keys, results, stream);
  }
  return SearchStringTree(view_, answer, keys, results, nullptr, stream);
}

absl::Status StringIndex::FindEqualRanges(DeviceKeys keys, Position* begin, Position* end,
                                          DeviceStream stream) const {
  if (size() == 0) {
    RETURN_IF_ERROR(Search(Operation::kLowerBound, keys, begin, stream));
    return Search(Operation::kUpperBound, keys, end, stream);
  }
  return SearchStringTree(view_, StringAnswer::kRange, keys, begin, end, stream);
}

absl::Status StringIndex::FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                                         DeviceStream stream) const {
  if (size() == 0) {
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaMemsetAsync(ends, 0, prefixes.size() * sizeof(Position), stream));
    return absl::OkStatus();
  }
  return SearchStringTree(view_, StringAnswer::kPrefixEnd, prefixes, ends, nullptr, stream);
}

absl::Status StringIndex::GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                                     uint64_t rows, Order order, RowId* row_ids,
                                     DeviceStream stream) const {
  RowColumn column;
  if (row_ids_.size() != 0) {
    column.rows = row_ids_.data();
  } else {
    // The low half of each record's first unit.
    column.rows = reinterpret_cast<const RowId*>(view_.records.units);
    column.stride = view_.records.at != nullptr ? 2 : 2 * view_.records.stride;
    column.at = view_.records.at;
  }
  return CopyRowsFromColumn(column, begin, offsets, queries, rows, order, row_ids, stream);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildStringIndex(const SortedRun& run,
                                                              const StringIndexOptions& options,
                                                              int threads, cudaStream_t stream) {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  auto index = std::make_unique<StringIndex>(run.size(), device, options.hash);
  RETURN_IF_ERROR(Guarded("building an index of byte-string keys",
                          [&] { return index->Build(run, threads, stream); }));
  return std::unique_ptr<DeviceIndex>(std::move(index));
}

absl::StatusOr<StringIndexBytes> BoundStringIndex(const SortedRun& run,
                                                  const StringIndexOptions& options, int threads) {
  if (run.empty()) return StringIndexBytes();
  const DistinctStrings keys(run.bytes(), threads);
  RETURN_IF_ERROR(CheckStrings(run, keys));
  uint64_t bytes = StringRecords::BytesFor(keys) + MostStringTreeBytes(keys.size());
  if (options.hash) bytes += StringHash::MostBytesFor(keys.size());
  if (const auto positions = keys.first_positions(); !positions.empty()) {
    bytes += positions.size() * sizeof(Position) + run.size() * sizeof(RowId);
  }
  return StringIndexBytes{bytes, bytes};
}

}  // namespace cairn::gpu
