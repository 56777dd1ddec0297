#include "index/machine/guard.h"

#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

absl::Status Describe(std::string_view doing) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrFormat("out of memory while %s", doing));
  } catch (const std::length_error&) {  // of a container: more than any memory could hold
    return absl::ResourceExhaustedError(absl::StrFormat("out of memory while %s", doing));
  } catch (const std::system_error& e) {
    return absl::UnavailableError(absl::StrFormat("while %s: %s", doing, e.what()));
  } catch (const std::exception& e) {  // of a caller's extractor or file system
    return absl::InternalError(absl::StrFormat("while %s: %s", doing, e.what()));
  } catch (...) {
    return absl::InternalError(absl::StrFormat("while %s: an exception of unknown type", doing));
  }
}

}  // namespace

absl::Status StatusOfException(std::string_view doing) noexcept {
  try {
    return Describe(doing);
  } catch (...) {  // no memory for the message; a Status without one allocates nothing
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

}  // namespace cairn
