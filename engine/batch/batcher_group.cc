#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/batcher.h"
#include "engine/batch/batcher_answer.h"
#include "engine/batch/batcher_core.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {

namespace {

// A group submits keys to the batcher in portions of this size, so that submitting, which costs 40
// ns, hardly counts. No thread waits for these keys yet, since their thread is still adding
// queries.
constexpr size_t kPortion = 64;

}  // namespace

struct BatcherGroup::Answered {
  // Answers since the last Wait. During Wait, submitted_ is subtracted, so it is zero when the last
  // answer arrives. The thread that makes it zero does not access the group afterwards.
  std::atomic<int32_t> balance{0};
  Mutex mutex;
  absl::Status error ABSL_GUARDED_BY(mutex);
};

BatcherGroup::BatcherGroup(Batcher* batcher, Operation operation, Batcher::Receiver receiver,
                           size_t capacity)
    : batcher_(batcher),
      operation_(operation),
      receiver_(receiver),
      kind_(batcher->core_->kind()),
      capacity_(capacity),
      keys_(kind_),
      answered_(std::make_unique<Answered>()) {}

BatcherGroup::~BatcherGroup() = default;

absl::Status BatcherGroup::CheckRoom(size_t queries) const {
  if (queries <= capacity_ - size_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("the group is full: cannot add %d queries, since it has %d of at most %d",
                      queries, size_, capacity_));
}

absl::Status BatcherGroup::Add(const KeyBatch& keys, absl::Time deadline) try {
  RETURN_IF_ERROR(CheckRoom(keys.size()));
  if (keys.kind() != kind_ || TakesRanges(operation_) || keys.size() > kPortion) {
    SubmitKeys();
    absl::Status s = batcher_->Submit(operation_, keys, {receiver_, size_, deadline});
    if (s.ok()) submitted_ += static_cast<int32_t>(keys.size()), size_ += keys.size();
    return s;
  }
  AppendBatch(keys, &keys_);
  key_count_ += keys.size();
  size_ += keys.size();
  deadline_ = std::min(deadline_, deadline);
  if (key_count_ >= kPortion) SubmitKeys();
  return absl::OkStatus();
} catch (...) {
  SubmitKeys();  // also drops a part of the failed addition from keys_
  return StatusOfException("adding to a group");
}

absl::Status BatcherGroup::Add(const RangeBatch& ranges, const QueryOptions& options,
                               absl::Time deadline) {
  RETURN_IF_ERROR(CheckRoom(ranges.size()));
  absl::Status s = batcher_->Submit(operation_, ranges, options, {receiver_, size_, deadline});
  if (s.ok()) submitted_ += static_cast<int32_t>(ranges.size()), size_ += ranges.size();
  return s;
}

void BatcherGroup::SubmitKeys() {
  const KeyBatch keys = keys_.Batch().Slice(0, key_count_);
  const absl::Status s =
      batcher_->Submit(operation_, keys, {receiver_, size_ - key_count_, deadline_});
  if (s.ok()) {
    submitted_ += static_cast<int32_t>(key_count_);
  } else {
    Fail(s);
  }
  keys_.Clear(kind_);
  key_count_ = 0;
  deadline_ = Batcher::kNoDeadline;
}

absl::Status BatcherGroup::Wait() {
  if (key_count_ != 0) SubmitKeys();
  const int32_t submitted = std::exchange(submitted_, 0);
  std::atomic<int32_t>& balance = answered_->balance;
  if (balance.fetch_sub(submitted) != submitted) batcher_->core_->Await(&balance);
  const MutexLock lock(&answered_->mutex);
  return std::exchange(answered_->error, absl::OkStatus());
}

void BatcherGroup::Fail(const absl::Status& error) {
  const MutexLock lock(&answered_->mutex);
  answered_->error.Update(error);
}

void BatcherGroup::NoteAnswers(size_t queries) {
  const auto more = static_cast<int32_t>(queries);
  std::atomic<int32_t>& balance = answered_->balance;
  // After this line the group may be destroyed, unless another answer is outstanding. notify_one
  // needs only its address.
  const int32_t before = balance.fetch_add(more);
  if (before < 0 && before + more == 0) balance.notify_one();
}

template <Operation kOperation>
Batcher::Group<kOperation>::Group(Batcher* batcher, size_t capacity)
    : BatcherGroup(batcher, kOperation, {&Receive, this}, capacity),
      answers_(new Answer[capacity]()) {}

template <Operation kOperation>
Batcher::Group<kOperation>::~Group() {
  Wait().IgnoreError();
}

template <Operation kOperation>
void Batcher::Group<kOperation>::Receive(void* context, const Answers& answers) {
  auto* group = static_cast<Group*>(context);
  const size_t queries = answers.cookies.size();
  if (answers.status.ok()) {
    try {
      for (size_t i = 0; i < queries; ++i) {
        group->answers_[answers.cookies[i]] = AnswerTo<kOperation>(answers, i);
      }
    } catch (...) {
      group->Fail(StatusOfException("taking the answers of a group"));
    }
  } else {
    group->Fail(answers.status);
  }
  group->NoteAnswers(queries);
}

template class Batcher::Group<Operation::kFindFirst>;
template class Batcher::Group<Operation::kContains>;
template class Batcher::Group<Operation::kFind>;
template class Batcher::Group<Operation::kCount>;
template class Batcher::Group<Operation::kScan>;

}  // namespace cairn
