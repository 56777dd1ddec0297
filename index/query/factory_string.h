#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn {

// A parsed factory string of an ordered index: "cpu:fast,page=4k" is a device, a structure, and
// options, each a name with or without a value. The parts are views of the text, which must outlive
// this. A builder of a structure takes the options that it supports, then calls CheckAllTaken.
struct FactoryString {
  std::string_view text;
  std::string_view device;  // "cpu" for "auto", which means "cpu:auto"
  std::string_view structure;
  struct Option {
    std::string_view name, value;
    bool has_value = true;
    bool taken = false;
  };
  std::vector<Option> options;

  // InvalidArgument, with the text, if it does not have that form.
  static absl::StatusOr<FactoryString> Parse(std::string_view text);

  // Returns the value of an option and marks it as taken; nothing if it is missing.
  std::optional<std::string_view> Take(std::string_view name);
  // Returns the value of an option that must be a whole number from `least` to `most`, or
  // `otherwise` if it is missing.
  absl::StatusOr<int> TakeNumber(std::string_view name, int least, int most, int otherwise);
  // Whether there is an option of this name, which must have no value. Marks it as taken.
  absl::StatusOr<bool> TakeFlag(std::string_view name);
  // InvalidArgument if an option was not taken.
  absl::Status CheckAllTaken() const;
  // InvalidArgument, with the text.
  absl::Status Bad(std::string_view what) const;
};

}  // namespace cairn
