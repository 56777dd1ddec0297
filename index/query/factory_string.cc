#include "index/query/factory_string.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace cairn {

absl::StatusOr<FactoryString> FactoryString::Parse(std::string_view text) {
  FactoryString parsed;
  parsed.text = text;
  std::string_view rest = text;
  const auto next = [&rest] {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma);
    return part;
  };
  const std::string_view head = next();
  const size_t colon = head.find(':');
  if (colon != std::string_view::npos) {
    parsed.device = head.substr(0, colon);
    parsed.structure = head.substr(colon + 1);
  } else if (head == "auto") {
    parsed.device = "cpu";
    parsed.structure = "auto";
  } else {
    return parsed.Bad("expected 'auto', or a device, a colon and a structure, as in 'cpu:fast'");
  }
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the comma
    const std::string_view option = next();
    const size_t equals = option.find('=');
    if (option.empty() || equals == 0 || equals + 1 == option.size()) {
      return parsed.Bad(
          absl::StrFormat("'%s' is not an option; expected name or name=value", option));
    }
    const std::string_view name = option.substr(0, equals);
    const bool has_value = equals != std::string_view::npos;
    for (const Option& other : parsed.options) {
      if (other.name == name) return parsed.Bad(absl::StrFormat("option '%s' occurs twice", name));
    }
    parsed.options.push_back(
        {name, has_value ? option.substr(equals + 1) : std::string_view(), has_value});
  }
  return parsed;
}

std::optional<std::string_view> FactoryString::Take(std::string_view name) {
  for (Option& option : options) {
    if (option.name != name) continue;
    option.taken = true;
    return option.value;
  }
  return std::nullopt;
}

absl::StatusOr<int> FactoryString::TakeNumber(std::string_view name, int least, int most,
                                              int otherwise) {
  const std::optional<std::string_view> text = Take(name);
  if (!text.has_value()) return otherwise;
  int number = 0;
  if (absl::SimpleAtoi(absl::string_view(text->data(), text->size()), &number) && number >= least &&
      number <= most) {
    return number;
  }
  return Bad(absl::StrFormat("%s: expected a whole number from %d to %d, found '%s'", name, least,
                             most, *text));
}

absl::StatusOr<bool> FactoryString::TakeFlag(std::string_view name) {
  for (Option& option : options) {
    if (option.name != name) continue;
    option.taken = true;
    if (option.has_value) return Bad(absl::StrFormat("option '%s' takes no value", name));
    return true;
  }
  return false;
}

absl::Status FactoryString::CheckAllTaken() const {
  for (const Option& option : options) {
    if (!option.taken) {
      return Bad(absl::StrFormat("%s:%s has no option '%s'", device, structure, option.name));
    }
  }
  return absl::OkStatus();
}

absl::Status FactoryString::Bad(std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrFormat("ordered index '%s': %s", text, what));
}

}  // namespace cairn
