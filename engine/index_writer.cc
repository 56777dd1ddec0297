#include "engine/index_writer.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "engine/base.h"
#include "engine/unique_check.h"
#include "index/topology.h"

namespace cairn {

absl::StatusOr<std::unique_ptr<IndexWriter>> IndexWriter::Open(const std::string& directory,
                                                               const OpenOptions& options) {
  absl::StatusOr<std::shared_ptr<const Base>> base = Base::Open(directory, options);
  if (!base.ok()) return base.status();
  std::unique_ptr<IndexWriter> writer(new IndexWriter(options));
  absl::StatusOr<std::unique_ptr<DeltaWriter>> deltas = DeltaWriter::Create(
      (*base)->run(), (*base)->rows(), Topology::Get().Threads(options.threads));
  if (!deltas.ok()) return deltas.status();
  writer->deltas_ = *std::move(deltas);
  const SequenceNumber sequence = (*base)->manifest.sequence;
  writer->Publish({std::make_shared<const RoutedBase>(*std::move(base), options),
                   writer->deltas_->delta(), sequence});
  return writer;
}

std::shared_ptr<const IndexVersion> IndexWriter::version() const {
  const std::lock_guard<std::mutex> lock(version_mutex_);
  return version_;
}

void IndexWriter::Publish(IndexVersion version) {
  auto next = std::make_shared<const IndexVersion>(std::move(version));
  const std::lock_guard<std::mutex> lock(version_mutex_);
  version_.swap(next);  // so that the last one is freed behind the lock
}

IndexWriter::Update::Update(IndexWriter* writer)
    : writer_(writer), lock_(writer->update_mutex_), version_(writer->version()) {}

IndexWriter::Update::~Update() {
  if (applied_) writer_->RestartDeltas().IgnoreError();  // the next update says so, too
}

absl::Status IndexWriter::Update::Apply(const RowUpdates& updates) {
  if (writer_->deltas_ == nullptr) {
    if (absl::Status s = writer_->RestartDeltas(); !s.ok()) return s;
  }
  if (version_->spec().unique) {
    const std::shared_ptr<const Delta> delta = writer_->deltas_->delta();
    if (absl::Status s = CheckUnique(*version_, *delta, updates); !s.ok()) return s;
  }
  applied_ = true;
  return writer_->deltas_->Apply(updates).status();
}

void IndexWriter::Update::Publish(SequenceNumber sequence, LogPosition position) {
  writer_->Publish({version_->base, writer_->deltas_->delta(), sequence});
  writer_->position_ = position;
  applied_ = false;
}

}  // namespace cairn
