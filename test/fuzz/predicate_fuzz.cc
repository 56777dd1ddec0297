// Text of predicates: every accepted predicate parses again from its written form, with the same
// meaning except for added parentheses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cairn/predicate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto predicate = cairn::Predicate::Parse(text);
  if (!predicate.ok()) return 0;
  const std::string written = predicate->ToString();
  const auto again = cairn::Predicate::Parse(written);
  if (!again.ok()) {
    if (again.status().message().find("nested deeper") == std::string_view::npos) std::abort();
    return 0;
  }
  if (again->ToString() != written) std::abort();
  return 0;
}
