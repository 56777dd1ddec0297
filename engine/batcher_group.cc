#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/batcher.h"
#include "engine/batcher_answer.h"
#include "engine/batcher_core.h"

namespace cairn {

absl::Status BatcherGroup::Wait() {
  const int32_t submitted = std::exchange(submitted_, 0);
  if (balance_.fetch_sub(submitted) != submitted) batcher_->core_->Await(&balance_);
  absl::MutexLock lock(&mutex_);
  return std::exchange(error_, absl::OkStatus());
}

absl::Status BatcherGroup::Submit(Operation operation, const KeyBatch& keys,
                                  const Batcher::Request& request) {
  absl::Status s = batcher_->Submit(operation, keys, request);
  if (s.ok()) submitted_ += static_cast<int32_t>(keys.size());
  return s;
}

absl::Status BatcherGroup::Submit(Operation operation, const RangeBatch& ranges,
                                  const QueryOptions& options, const Batcher::Request& request) {
  absl::Status s = batcher_->Submit(operation, ranges, options, request);
  if (s.ok()) submitted_ += static_cast<int32_t>(ranges.size());
  return s;
}

void BatcherGroup::Fail(const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  error_.Update(error);
}

void BatcherGroup::Answered(size_t queries) {
  const auto more = static_cast<int32_t>(queries);
  // Behind this the group may be gone, unless somebody is still to answer: waking up needs no more
  // of it than its address.
  const int32_t before = balance_.fetch_add(more);
  if (before < 0 && before + more == 0) balance_.notify_one();
}

template <Operation kOperation>
Batcher::Group<kOperation>::Group(Batcher* batcher, size_t capacity)
    : BatcherGroup(batcher), capacity_(capacity), answers_(new Answer[capacity]()) {}

template <Operation kOperation>
Batcher::Group<kOperation>::~Group() {
  Wait().IgnoreError();
}

template <Operation kOperation>
absl::Status Batcher::Group<kOperation>::CheckRoom(size_t queries) const {
  if (queries <= capacity_ - size_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%d more queries in a group that has %d of at most %d", queries, size_, capacity_));
}

template <Operation kOperation>
absl::Status Batcher::Group<kOperation>::Add(const Key& key, BatcherTime deadline) {
  return Add(key.batch(), deadline);
}

template <Operation kOperation>
absl::Status Batcher::Group<kOperation>::Add(const KeyBatch& keys, BatcherTime deadline) {
  absl::Status s = CheckRoom(keys.size());
  if (s.ok()) s = Submit(kOperation, keys, {{&Receive, this}, size_, deadline});
  if (s.ok()) size_ += keys.size();
  return s;
}

template <Operation kOperation>
absl::Status Batcher::Group<kOperation>::Add(const RangeBatch& ranges, const QueryOptions& options,
                                             BatcherTime deadline) {
  absl::Status s = CheckRoom(ranges.size());
  if (s.ok()) s = Submit(kOperation, ranges, options, {{&Receive, this}, size_, deadline});
  if (s.ok()) size_ += ranges.size();
  return s;
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
    } catch (const std::bad_alloc&) {
      group->Fail(absl::ResourceExhaustedError("no memory for the answers of a group"));
    }
  } else {
    group->Fail(answers.status);
  }
  group->Answered(queries);
}

template class Batcher::Group<Operation::kFindFirst>;
template class Batcher::Group<Operation::kContains>;
template class Batcher::Group<Operation::kFind>;
template class Batcher::Group<Operation::kCount>;
template class Batcher::Group<Operation::kScan>;

}  // namespace cairn
