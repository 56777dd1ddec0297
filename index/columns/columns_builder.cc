#include "index/columns/columns_builder.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_format.h"
#include "index/columns/column_encoder.h"
#include "index/columns/column_format.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kCollecting = "collecting columns";

// A chunk takes no more rows if it has this many bytes.
constexpr size_t kChunkBytes = size_t{256} << 10;
// Rows of fewer than a block are encoded if their text has this many bytes.
constexpr uint64_t kPendingBytes = uint64_t{1} << 20;
// The number of rows between two checks of that size.
constexpr size_t kStride = 64;

// A chunk is a sequence of pieces. A piece has this header, a ColumnBlock per column, whose offsets
// count from the chunk's start, and the blocks' bytes, up to a multiple of 8.
struct PieceHeader {
  uint64_t rows;
  uint64_t bytes;  // including this header
};

absl::Status AtColumn(const absl::Status& status, const ColumnSchema& column) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(
      absl::StrFormat("column '%s': %s", column.name, status.message()));
}

void AppendPiece(absl::Span<const ColumnValues> rows, std::string* chunk) {
  const size_t begin = chunk->size();
  std::vector<ColumnBlock> blocks(rows.size());
  const size_t header_bytes = sizeof(PieceHeader) + blocks.size() * sizeof(ColumnBlock);
  chunk->resize(begin + header_bytes);
  for (size_t i = 0; i < rows.size(); ++i) {
    EncodeBlock(rows[i], 0, rows[i].size(), nullptr, chunk, &blocks[i]);
  }
  const PieceHeader header = {rows[0].size(), chunk->size() - begin};
  std::memcpy(chunk->data() + begin, &header, sizeof header);
  std::memcpy(chunk->data() + begin + sizeof header, blocks.data(),
              blocks.size() * sizeof(ColumnBlock));
}

}  // namespace

// ---------------------------------------------------------------------------------------- Part

ColumnsBuilder::Part::Part(ColumnsBuilder* builder) : builder_(builder) {}

bool ColumnsBuilder::Part::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  failed_ = true;
  return false;
}

// Reports whether rows of `columns` columns may be added.
bool ColumnsBuilder::Part::Admit(size_t columns) {
  if (failed_) return false;
  if (!builder_->status_.ok()) return Fail(builder_->status_);
  if (finished_) return Fail(absl::InvalidArgumentError("rows were added to a finished part"));
  if (columns != builder_->columns_.size()) {
    return Fail(absl::InvalidArgumentError(absl::StrFormat("expected rows of %d columns, found %d",
                                                           builder_->columns_.size(), columns)));
  }
  if (!pending_.empty()) return true;
  try {
    for (const ColumnSchema& column : builder_->columns_) pending_.emplace_back(column.type);
  } catch (...) {
    pending_.clear();
    return Fail(StatusOfException(kCollecting));
  }
  return true;
}

bool ColumnsBuilder::Part::Add(absl::Span<const DataValue> row) {
  if (ABSL_PREDICT_FALSE(failed_ || finished_ || row.empty() || row.size() != pending_.size())) {
    if (!Admit(row.size())) return false;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    if (absl::Status s = pending_[i].Append(row[i]); ABSL_PREDICT_FALSE(!s.ok())) {
      return Fail(AtColumn(s, builder_->columns_[i]));
    }
    if (const auto* text = std::get_if<std::string_view>(&row[i])) pending_bytes_ += text->size();
  }
  ++rows_;
  if (ABSL_PREDICT_TRUE(pending_[0].size() < kRowsPerColumnBlock &&
                        pending_bytes_ < kPendingBytes)) {
    return true;
  }
  absl::Status status = Guarded(kCollecting, [&] { return Encode(); });
  return status.ok() || Fail(std::move(status));
}

absl::Status ColumnsBuilder::Part::AppendRows(absl::Span<const ColumnValues> rows) {
  const size_t size = rows[0].size();
  for (size_t i = 0; i < rows.size(); ++i) {
    const ColumnSchema& column = builder_->columns_[i];
    if (rows[i].type() == column.type && rows[i].size() == size) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("column '%s': expected %d values of %s, found %d of %s", column.name, size,
                        DataTypeName(column.type), rows[i].size(), DataTypeName(rows[i].type())));
  }
  for (size_t first = 0; first < size;) {
    const size_t count =
        std::min({size - first, kRowsPerColumnBlock - pending_[0].size(), kStride});
    for (size_t i = 0; i < rows.size(); ++i) {
      pending_[i].AppendFrom(rows[i], first, count);
      if (rows[i].width() != 0) continue;
      const std::vector<uint64_t>& offsets = rows[i].strings().offsets();
      pending_bytes_ += offsets[first + count] - offsets[first];
    }
    first += count;
    rows_ += count;
    if (pending_[0].size() == kRowsPerColumnBlock || pending_bytes_ >= kPendingBytes) {
      RETURN_IF_ERROR(Encode());
    }
  }
  return absl::OkStatus();
}

bool ColumnsBuilder::Part::Add(absl::Span<const ColumnValues> rows) {
  if (!Admit(rows.size())) return false;
  absl::Status status = Guarded(kCollecting, [&] { return AppendRows(rows); });
  return status.ok() || Fail(std::move(status));
}

// Adds the chunks' memory to the builder's count.
void ColumnsBuilder::Part::Charge() {
  uint64_t bytes = charged_;
  charged_ = 0;
  for (const Chunk& chunk : chunks_) charged_ += chunk.is_spilled ? 0 : chunk.bytes.capacity();
  builder_->charged_.fetch_add(charged_ - bytes, std::memory_order_relaxed);
}

// Encodes the pending rows. Throws std::bad_alloc.
absl::Status ColumnsBuilder::Part::Encode() {
  const uint64_t more = rows_ - std::exchange(reported_, rows_);
  const uint64_t total = builder_->rows_.fetch_add(more) + more;
  if (total > builder_->options_.max_rows) {
    return absl::ResourceExhaustedError(absl::StrFormat("an index holds at most %d rows, found %d",
                                                        builder_->options_.max_rows, total));
  }
  if (more == 0) return absl::OkStatus();
  if (chunks_.empty() || chunks_.back().is_spilled || chunks_.back().bytes.size() >= kChunkBytes) {
    chunks_.emplace_back();
  }
  AppendPiece(pending_, &chunks_.back().bytes);
  for (ColumnValues& column : pending_) column.Clear();
  pending_bytes_ = 0;
  Charge();
  return builder_->MakeRoom(this);
}

absl::Status ColumnsBuilder::Part::Finish() {
  if (finished_) return absl::FailedPreconditionError("a part was finished twice");
  if (!builder_->status_.ok()) Fail(builder_->status_);
  if (!failed_) {
    absl::Status status = Guarded(kCollecting, [&]() -> absl::Status {
      RETURN_IF_ERROR(Encode());
      pending_ = {};
      const MutexLock lock(&builder_->mutex_);
      if (charged_ != 0) builder_->resting_.push_back(this);
      return absl::OkStatus();
    });
    if (!status.ok()) Fail(std::move(status));
  }
  finished_ = true;
  return status_;
}

// ------------------------------------------------------------------------------------ spilling

ColumnsBuilder::ColumnsBuilder(std::vector<ColumnSchema> columns, Options options, int parts)
    : columns_(std::move(columns)), options_(std::move(options)), status_(CheckColumns(columns_)) {
  for (int i = 0; i < parts; ++i) parts_.push_back(std::make_unique<Part>(this));
}

ColumnsBuilder::~ColumnsBuilder() = default;

// Spills if the budget is exceeded: the largest of `part` and the resting parts. Parts that are
// being filled check by themselves, up to a chunk later; a quarter of the budget is set aside for
// that.
absl::Status ColumnsBuilder::MakeRoom(Part* part) {
  const uint64_t budget = options_.memory_budget - options_.memory_budget / 4;
  while (charged_.load(std::memory_order_relaxed) > budget) {
    Part* largest = part;
    {
      const MutexLock lock(&mutex_);
      if (!spill_status_.ok()) return spill_status_;
      for (Part* resting : resting_) {
        if (resting->charged_ > largest->charged_) largest = resting;
      }
      if (largest->charged_ == 0) return absl::OkStatus();
      resting_.erase(std::remove(resting_.begin(), resting_.end(), largest), resting_.end());
    }
    absl::Status status = Guarded(kCollecting, [&] { return Spill(largest); });
    if (status.ok()) continue;
    const MutexLock lock(&mutex_);
    if (spill_status_.ok()) spill_status_ = status;
    return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<SpillFile*> ColumnsBuilder::OpenSpillFile() {
  const MutexLock lock(&mutex_);
  if (spill_file_ == nullptr) {
    if (options_.spill_directory.empty()) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("the columns take more than the memory budget of %d bytes, and there is "
                          "no directory to spill them to",
                          options_.memory_budget));
    }
    ASSIGN_OR_RETURN(spill_file_, SpillFile::Create(options_.spill_directory, options_.files));
  }
  return spill_file_.get();
}

// Moves a part's chunks to the spill file.
absl::Status ColumnsBuilder::Spill(Part* part) {
  ASSIGN_OR_RETURN(SpillFile* const file, OpenSpillFile());
  for (Part::Chunk& chunk : part->chunks_) {
    if (chunk.is_spilled) continue;
    ASSIGN_OR_RETURN(chunk.spilled, file->Write(chunk.bytes, 1));
    chunk.is_spilled = true;
    chunk.bytes = std::string();
  }
  part->Charge();
  return absl::OkStatus();
}

// -------------------------------------------------------------------------------------- Finish

absl::Status ColumnsBuilder::CheckParts() const {
  RETURN_IF_ERROR(status_);
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = *parts_[p];
    if (!part.status_.ok()) return part.status_;
    if (!part.finished_) {
      return absl::FailedPreconditionError(absl::StrFormat("part %d is not finished", p));
    }
  }
  return spill_status_;
}

// Appends a chunk's rows and frees it. `rows` is scratch, one element per column.
absl::Status ColumnsBuilder::WriteChunk(Part::Chunk* chunk, std::vector<ColumnValues>* rows,
                                        ColumnFileWriter* writer,
                                        const std::atomic<bool>* cancelled) {
  std::string bytes = std::move(chunk->bytes);
  if (chunk->is_spilled) {
    bytes.resize(chunk->spilled.bytes);
    RETURN_IF_ERROR(spill_file_->Read(chunk->spilled, bytes.data()));
  }
  const size_t end = bytes.size();
  bytes.append(kBlockSlack, '\0');
  PieceHeader header;
  for (size_t at = 0; at < end; at += header.bytes) {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
      return absl::CancelledError("cancelled");
    }
    std::memcpy(&header, bytes.data() + at, sizeof header);
    for (size_t i = 0; i < rows->size(); ++i) {
      ColumnBlock block;
      std::memcpy(&block, bytes.data() + at + sizeof header + i * sizeof block, sizeof block);
      (*rows)[i].Clear();
      DecodeBlock(block, bytes.data(), header.rows, &(*rows)[i]);
    }
    RETURN_IF_ERROR(writer->Append(*rows));
  }
  return absl::OkStatus();
}

absl::Status ColumnsBuilder::Finish(ColumnFileWriter* writer,
                                    const std::atomic<bool>* cancelled) try {
  if (finished_) return absl::FailedPreconditionError("a columns builder was finished twice");
  RETURN_IF_ERROR(CheckParts());
  if (writer->columns() != absl::MakeConstSpan(columns_) || writer->rows() != 0) {
    return absl::InvalidArgumentError(
        "expected a new writer of the same columns, found one of others or with rows");
  }
  if (cancelled != nullptr && cancelled->load()) return absl::CancelledError("cancelled");
  finished_ = true;
  std::vector<ColumnValues> rows;
  for (const ColumnSchema& column : columns_) rows.emplace_back(column.type);
  for (const auto& part : parts_) {
    for (Part::Chunk& chunk : part->chunks_) {
      RETURN_IF_ERROR(WriteChunk(&chunk, &rows, writer, cancelled));
    }
    part->chunks_ = {};
  }
  return writer->Finish();
} catch (...) {
  return StatusOfException(kCollecting);
}

}  // namespace cairn
