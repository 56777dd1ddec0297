#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn {

// What names an ordered index, in its parts: "cpu:fast,page=4k" is a device, a structure, and
// options, each a name with or without a value. The parts are views of the text, which must outlive
// this. Whoever builds the structure takes the options that it knows, then calls CheckAllTaken.
struct FactoryString {
  std::string_view text;
  std::string_view device;  // "cpu" for "auto", which is "cpu:auto"
  std::string_view structure;
  struct Option {
    std::string_view name, value;
    bool has_value = true;
    bool taken = false;
  };
  std::vector<Option> options;

  // InvalidArgument, quoting the text, where it is not of that form.
  static absl::StatusOr<FactoryString> Parse(std::string_view text);

  // The value of an option, which counts as known from here on; none where it is not there.
  std::optional<std::string_view> Take(std::string_view name);
  // The value of an option that is a whole number from `least` to `most`, or `otherwise` where it
  // is not there.
  absl::StatusOr<int> TakeNumber(std::string_view name, int least, int most, int otherwise);
  // Whether an option without a value is there, which counts as known from here on.
  absl::StatusOr<bool> TakeFlag(std::string_view name);
  // InvalidArgument if there is an option that nothing took.
  absl::Status CheckAllTaken() const;
  // InvalidArgument, quoting the text.
  absl::Status Bad(std::string_view what) const;
};

}  // namespace cairn
