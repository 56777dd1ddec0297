#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/extractor.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"

namespace cairn {
namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, std::shared_ptr<const KeyExtractor>, std::less<>> extractors
      ABSL_GUARDED_BY(mutex);
};

// Never destroyed, so that extractors can be looked up while the process ends.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

}  // namespace

absl::Status RegisterExtractor(std::string name,
                               std::shared_ptr<const KeyExtractor> extractor) try {
  if (name.empty()) {
    return absl::InvalidArgumentError("expected a name for the extractor, found none");
  }
  if (extractor == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected an extractor to register as '%s', found null", name));
  }
  Registry& registry = TheRegistry();
  const MutexLock lock(&registry.mutex);
  const auto [place, inserted] = registry.extractors.emplace(std::move(name), std::move(extractor));
  if (inserted) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrFormat("an extractor is already registered as '%s'", place->first));
} catch (...) {
  return StatusOfException("registering an extractor");
}

absl::StatusOr<std::shared_ptr<const KeyExtractor>> FindExtractor(std::string_view name) try {
  Registry& registry = TheRegistry();
  const MutexLock lock(&registry.mutex);
  const auto found = registry.extractors.find(name);
  if (found != registry.extractors.end()) return found->second;
  std::string known;
  for (const auto& [other, extractor] : registry.extractors) {
    absl::StrAppendFormat(&known, "%s'%s'", known.empty() ? "" : ", ", other);
  }
  return absl::NotFoundError(absl::StrFormat("no extractor is registered as '%s'; known: %s", name,
                                             known.empty() ? "none" : known));
} catch (...) {
  return StatusOfException("looking for an extractor");
}

}  // namespace cairn
