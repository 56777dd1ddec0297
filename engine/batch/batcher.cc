#include "cairn/batcher.h"

#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/batch/batcher_answer.h"
#include "engine/batch/batcher_core.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status CheckOptions(const BatcherOptions& options) {
  if (options.default_deadline < absl::Nanoseconds(1) ||
      options.default_deadline > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("default_deadline: expected more than 0 and at most 24 h, got %s",
                        absl::FormatDuration(options.default_deadline)));
  }
  if (options.max_batch_time < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("max_batch_time: expected 0 or more, got %s",
                        absl::FormatDuration(options.max_batch_time)));
  }
  if (options.max_waiting == 0) {
    return absl::InvalidArgumentError("max_waiting: expected 1 or more, got 0");
  }
  if (options.threads < 0 || options.shards < 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "expected 0 or more threads and shards, got %d and %d", options.threads, options.shards));
  }
  if (options.clock != nullptr && options.threads > 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("with BatcherOptions::clock: expected 0 threads, got %d", options.threads));
  }
  return absl::OkStatus();
}

// A single query whose answer is passed to `done`. It is a receiver that deletes itself.
template <Operation kOperation, typename Done>
struct Caller {
  using Answer = Batcher::AnswerOf<kOperation>;

  Done done;

  static void Receive(void* context, const Batcher::Answers& answers) {
    const std::unique_ptr<Caller> caller(static_cast<Caller*>(context));
    if (!answers.status.ok()) return std::move(caller->done)(answers.status);
    std::move(caller->done)(Guarded("taking an answer out of its batch", [&] {
      return absl::StatusOr<Answer>(AnswerTo<kOperation>(answers, 0));
    }));
  }
};

template <Operation kOperation, typename Done>
void Ask(Batcher* batcher, const KeyBatch& keys, absl::Time deadline, Done done) {
  using Asker = Caller<kOperation, Done>;
  auto caller = std::make_unique<Asker>(Asker{std::move(done)});
  if (absl::Status s =
          batcher->Submit(kOperation, keys, {{&Asker::Receive, caller.get()}, 0, deadline});
      !s.ok()) {
    return std::move(caller->done)(s);
  }
  (void)caller.release();  // Receive owns it now
}

template <Operation kOperation, typename Done>
void Ask(Batcher* batcher, const RangeBatch& range, const QueryOptions& options,
         absl::Time deadline, Done done) {
  using Asker = Caller<kOperation, Done>;
  if (range.size() != 1) {
    return std::move(done)(
        absl::InvalidArgumentError(absl::StrFormat("expected 1 range, got %d", range.size())));
  }
  auto caller = std::make_unique<Asker>(Asker{std::move(done)});
  if (absl::Status s = batcher->Submit(kOperation, range, options,
                                       {{&Asker::Receive, caller.get()}, 0, deadline});
      !s.ok()) {
    return std::move(caller->done)(s);
  }
  (void)caller.release();  // Receive owns it now
}

// Passes the answer to a future.
template <Operation kOperation>
struct Promise {
  using Answer = Batcher::AnswerOf<kOperation>;

  std::promise<absl::StatusOr<Answer>> promise;

  void operator()(absl::StatusOr<Answer> answer) && { promise.set_value(std::move(answer)); }
};

template <Operation kOperation, typename... Arguments>
Batcher::Future<Batcher::AnswerOf<kOperation>> Promised(Batcher* batcher,
                                                        const Arguments&... arguments) {
  Promise<kOperation> promise;
  auto future = promise.promise.get_future();
  Ask<kOperation>(batcher, arguments..., std::move(promise));
  return future;
}

}  // namespace

KeyBatch Batcher::Key::batch() const {
  switch (kind_) {
    case PhysicalType::kU32:
      return absl::MakeConstSpan(&u32_, 1);
    case PhysicalType::kU64:
      return absl::MakeConstSpan(&u64_, 1);
    case PhysicalType::kBytes:
      return absl::MakeConstSpan(&bytes_, 1);
  }
  return KeyBatch();
}

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Make(const BatchIndex* index,
                                                       const BatcherOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  return Guarded("starting a batcher's threads", [&]() -> absl::StatusOr<std::unique_ptr<Batcher>> {
    auto core = std::make_unique<BatcherCore>(index, options);
    core->StartThreads();
    return std::unique_ptr<Batcher>(new Batcher(std::move(core)));
  });
}

Batcher::Batcher(std::unique_ptr<BatcherCore> core) : core_(std::move(core)) {}
Batcher::~Batcher() = default;

Batcher::Future<RowId> Batcher::FindFirst(const Key& key, absl::Time deadline) {
  return Promised<Operation::kFindFirst>(this, key.batch(), deadline);
}
Batcher::Future<bool> Batcher::Contains(const Key& key, absl::Time deadline) {
  return Promised<Operation::kContains>(this, key.batch(), deadline);
}
Batcher::Future<std::vector<RowId>> Batcher::Find(const Key& key, absl::Time deadline) {
  return Promised<Operation::kFind>(this, key.batch(), deadline);
}
Batcher::Future<uint64_t> Batcher::Count(const RangeBatch& range, absl::Time deadline) {
  return Promised<Operation::kCount>(this, range, QueryOptions(), deadline);
}
Batcher::Future<Batcher::Entries> Batcher::Scan(const RangeBatch& range,
                                                const QueryOptions& options, absl::Time deadline) {
  return Promised<Operation::kScan>(this, range, options, deadline);
}

void Batcher::FindFirst(const Key& key, absl::Time deadline, Callback<RowId> done) {
  Ask<Operation::kFindFirst>(this, key.batch(), deadline, std::move(done));
}
void Batcher::Contains(const Key& key, absl::Time deadline, Callback<bool> done) {
  Ask<Operation::kContains>(this, key.batch(), deadline, std::move(done));
}
void Batcher::Find(const Key& key, absl::Time deadline, Callback<std::vector<RowId>> done) {
  Ask<Operation::kFind>(this, key.batch(), deadline, std::move(done));
}
void Batcher::Count(const RangeBatch& range, absl::Time deadline, Callback<uint64_t> done) {
  Ask<Operation::kCount>(this, range, QueryOptions(), deadline, std::move(done));
}
void Batcher::Scan(const RangeBatch& range, const QueryOptions& options, absl::Time deadline,
                   Callback<Entries> done) {
  Ask<Operation::kScan>(this, range, options, deadline, std::move(done));
}

absl::Status Batcher::Submit(Operation operation, const KeyBatch& keys, const Request& request) {
  if (TakesRanges(operation)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s takes ranges, not keys", OperationName(operation)));
  }
  return core_->Submit({operation, &keys, nullptr, nullptr, &request});
}

absl::Status Batcher::Submit(Operation operation, const RangeBatch& ranges,
                             const QueryOptions& options, const Request& request) {
  if (!TakesRanges(operation)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s takes keys, not ranges", OperationName(operation)));
  }
  if (!options.columns.empty()) {
    return absl::InvalidArgumentError("a Batcher returns no included columns");
  }
  const QueryOptions* scan = operation == Operation::kScan ? &options : nullptr;
  return core_->Submit({operation, nullptr, &ranges, scan, &request});
}

void Batcher::Flush() {
  core_->Flush();
}
void Batcher::Shutdown() {
  core_->Shutdown();
}
absl::Time Batcher::Poll() {
  return core_->Poll();
}
BatcherStats Batcher::Stats() const {
  return core_->Stats();
}

}  // namespace cairn
