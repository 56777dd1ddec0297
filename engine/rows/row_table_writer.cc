#include "engine/rows/row_table_writer.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

template <typename T>
std::string_view AsBytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

absl::Status RowTableWriter::Part::EncodeBlock() {
  if (encoding_) {
    return writer_->Fail(absl::ResourceExhaustedError("no memory for a block of primary keys"));
  }
  encoding_ = true;
  std::string_view keys[kRowsPerBlock];
  for (uint32_t i = 0; i < pending_rows_; ++i) {
    keys[i] = {pending_.data() + begins_[i], begins_[i + 1] - begins_[i]};
  }
  if (offsets_.empty()) first_key_ = keys[0];
  if (offsets_.size() % kBlocksPerSeparator == 0) {
    std::string_view separator = keys[0];
    if (!offsets_.empty()) {
      // One byte more than the common prefix with the previous key separates them.
      const std::string_view before(pending_.data(), begins_[0]);
      separator = separator.substr(0, CommonPrefix(before, separator, 0) + 1);
    }
    separators_.append(separator);
    separator_ends_.push_back(separators_.size());
  }
  offsets_.push_back(encoded_.size());
  RowBlock::Encode(absl::MakeConstSpan(keys, pending_rows_), &encoded_);
  const std::string_view last = keys[pending_rows_ - 1];
  std::memmove(pending_.data(), last.data(), last.size());
  begins_[0] = last.size();
  pending_rows_ = 0;
  encoding_ = false;
  return absl::OkStatus();
}

absl::Status RowTableWriter::Part::Flush() {
  uint64_t offset = 0;
  RETURN_IF_ERROR(writer_->AppendBlocks(encoded_, &offset));
  for (; flushed_ < offsets_.size(); ++flushed_) offsets_[flushed_] += offset;
  encoded_.clear();
  return absl::OkStatus();
}

absl::Status RowTableWriter::Part::Close() {
  if (closed_) return absl::OkStatus();
  closed_ = true;
  if (pending_rows_ != 0) {
    RETURN_IF_ERROR(EncodeBlock());
  }
  if (encoded_.empty()) return absl::OkStatus();
  absl::Status status = Flush();
  encoded_.shrink_to_fit();
  return status;
}

absl::Status RowTableWriter::Part::OutOfOrder(std::string_view primary_key) {
  return writer_->Fail(absl::InvalidArgumentError(
      absl::StrFormat("primary keys do not ascend: row %d of a part, %s, follows %s", rows_,
                      Quoted(primary_key), Quoted(last()))));
}

absl::Status RowTableWriter::Part::TooLong(std::string_view primary_key) {
  return writer_->Fail(absl::InvalidArgumentError(
      absl::StrFormat("primary key of %d bytes is longer than %d: %s", primary_key.size(),
                      kMaxPrimaryKeyBytes, Quoted(primary_key))));
}

RowTableWriter::RowTableWriter(size_t parts, RowTableSink* sink) : sink_(sink), parts_(parts) {
  for (Part& part : parts_) part.writer_ = this;
}

std::vector<uint64_t> RowTableWriter::FirstRows() const {
  std::vector<uint64_t> first_rows = {0};
  for (const Part& part : parts_) first_rows.push_back(first_rows.back() + part.rows());
  return first_rows;
}

absl::Status RowTableWriter::Fail(absl::Status status) {
  const MutexLock lock(&mutex_);
  if (status_.ok()) status_ = status;
  return status;
}

absl::Status RowTableWriter::AppendBlocks(std::string_view bytes, uint64_t* offset) {
  const MutexLock lock(&mutex_);
  if (status_.ok() && !begun_) status_ = sink_->BeginSection(RowTableSection::kBlocks);
  begun_ = true;
  if (status_.ok()) status_ = sink_->Append(bytes);
  *offset = block_bytes_;
  block_bytes_ += bytes.size();
  return status_;
}

absl::Status RowTableWriter::CheckParts() const {
  if (const uint64_t rows = FirstRows().back(); rows > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected at most %d rows in a row table, got %d", kMaxEntries, rows));
  }
  const Part* before = nullptr;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (part.rows() == 0) continue;
    if (before != nullptr && before->last() >= part.first_key_) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "primary keys do not ascend: part %d starts with %s, but an earlier one ends with %s", i,
          Quoted(part.first_key_), Quoted(before->last())));
    }
    before = &part;
  }
  return absl::OkStatus();
}

absl::Status RowTableWriter::Finish() {
  for (Part& part : parts_) {
    RETURN_IF_ERROR(part.Close());
  }
  uint64_t ignored;
  RETURN_IF_ERROR(AppendBlocks("", &ignored));
  RETURN_IF_ERROR(CheckParts());

  const MutexLock lock(&mutex_);
  const auto begin = [&](RowTableSection section) {
    if (status_.ok()) status_ = sink_->BeginSection(section);
  };
  const auto append = [&](std::string_view bytes) {
    if (status_.ok() && !bytes.empty()) status_ = sink_->Append(bytes);
  };

  std::vector<RowTablePart> directory = {{0, 0, 0}};
  for (const Part& part : parts_) {
    const RowTablePart& at = directory.back();
    directory.push_back({at.first_row + part.rows_, at.first_block + part.offsets_.size(),
                         at.first_separator + part.separator_ends_.size()});
  }
  begin(RowTableSection::kParts);
  append(AsBytes(directory));
  begin(RowTableSection::kBlockOffsets);
  for (const Part& part : parts_) append(AsBytes(part.offsets_));

  begin(RowTableSection::kSeparatorEnds);
  uint64_t base = 0;
  append({reinterpret_cast<const char*>(&base), sizeof base});
  for (Part& part : parts_) {
    for (uint64_t& end : part.separator_ends_) end += base;
    base += part.separators_.size();
    append(AsBytes(part.separator_ends_));
  }
  begin(RowTableSection::kSeparators);
  for (const Part& part : parts_) append(part.separators_);
  return status_;
}

}  // namespace cairn
