#include "engine/extract/json_row.h"

#include <charconv>
#include <cstring>
#include <system_error>

#include "absl/strings/str_format.h"
#include "engine/extract/key_part.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_number.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using simdjson::dom::element_type;

// Returns the array index that a reference token denotes: 0, or digits without a leading zero.
std::optional<size_t> ArrayIndex(std::string_view token) {
  size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, index);
  if (error != std::errc() || stop != end || (token[0] == '0' && token.size() > 1)) {
    return std::nullopt;
  }
  return index;
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Returns whether `token` is a JSON integer that fits neither int64_t nor uint64_t.
bool IsBigInteger(std::string_view token) {
  const std::string_view digits = token.substr(token[0] == '-' ? 1 : 0);
  if (digits.size() < 19 || digits[0] == '0') return false;
  for (const char c : digits) {
    if (!IsDigit(c)) return false;
  }
  const char* const end = token.data() + token.size();
  int64_t number;
  uint64_t natural;
  return std::from_chars(token.data(), end, number).ec != std::errc() &&
         std::from_chars(token.data(), end, natural).ec != std::errc();
}

// Copies `json` with {} in place of every integer beyond 64 bits. Returns false if there is none.
// Only looks at integers outside of strings. A text that is not JSON remains one that is not.
bool ReplaceBigIntegers(std::string_view json, std::string* rewritten) {
  rewritten->clear();
  bool replaced = false;
  size_t i = 0;
  while (i < json.size()) {
    size_t end = i + 1;
    if (json[i] == '"') {
      while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, json.size());
    } else if (json[i] == '-' || IsDigit(json[i])) {
      end = std::min(json.find_first_not_of("0123456789+-.eE", i), json.size());
      if (IsBigInteger(json.substr(i, end - i))) {
        rewritten->append("{}");
        replaced = true;
        i = end;
        continue;
      }
    }
    rewritten->append(json.substr(i, end - i));
    i = end;
  }
  return replaced;
}

// Passes one value that is not an array to the sink.
absl::Status AddScalar(const simdjson::dom::element& element, DataType type, bool has_big_integers,
                       KeySink* sink) {
  const bool wants_text = FixedWidth(type) == 0;
  const auto expected = [type](std::string_view found) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected %s, found %s", DataTypeName(type), found));
  };
  // Adds an integer, as text if required.
  const auto add_integer = [wants_text, sink](auto number) {
    if (!wants_text) return sink->Add(number);
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), number);
    sink->Add(std::string_view(digits, static_cast<size_t>(end - digits)));
  };
  switch (element.type()) {
    case element_type::NULL_VALUE:
      sink->Add(std::monostate());
      return absl::OkStatus();
    case element_type::INT64:
      add_integer(element.get_int64().value_unsafe());
      return absl::OkStatus();
    case element_type::UINT64:
      add_integer(element.get_uint64().value_unsafe());
      return absl::OkStatus();
    case element_type::DOUBLE:
      if (wants_text) return expected("a JSON number with a fraction or an exponent");
      sink->Add(element.get_double().value_unsafe());
      return absl::OkStatus();
    case element_type::STRING: {
      const std::string_view text = element.get_string().value_unsafe();
      if (!wants_text) return expected(absl::StrFormat("the JSON string %s", Described(text)));
      sink->Add(text);
      return absl::OkStatus();
    }
    case element_type::BOOL: {
      const bool value = element.get_bool().value_unsafe();
      if (IsFloat(type)) return expected("a JSON boolean");
      if (wants_text) {
        sink->Add(std::string_view(value ? "true" : "false"));
      } else {
        sink->Add(uint64_t{value});
      }
      return absl::OkStatus();
    }
    case element_type::ARRAY:
      return expected("a JSON array in an array");
    case element_type::OBJECT:
      return expected(has_big_integers && element.get_object().value_unsafe().size() == 0
                          ? "an empty JSON object or an integer beyond 64 bits"
                          : "a JSON object");
    default:  // a newer simdjson may have more types
      return expected("a JSON value of an unknown kind");
  }
}

}  // namespace

absl::StatusOr<JsonPointer> JsonPointer::Parse(std::string_view text) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(SplitJsonPointer(text, &names));
  JsonPointer pointer;
  for (std::string& name : names) {
    const std::optional<size_t> index = ArrayIndex(name);
    pointer.tokens_.push_back({std::move(name), index});
  }
  return pointer;
}

simdjson::error_code JsonRow::ParseCopy(std::string_view json) {
  if (copy_capacity_ < json.size() + simdjson::SIMDJSON_PADDING) {
    copy_capacity_ = 2 * json.size() + simdjson::SIMDJSON_PADDING;
    copy_.reset(new uint8_t[copy_capacity_]);
  }
  std::memcpy(copy_.get(), json.data(), json.size());
  std::memset(copy_.get() + json.size(), 0, simdjson::SIMDJSON_PADDING);
  return parser_.parse(copy_.get(), json.size(), /*realloc_if_needed=*/false).get(root_);
}

absl::Status JsonRow::Parse(std::string_view json) {
  if (json.empty()) return absl::InvalidArgumentError("expected JSON, found an empty value");
  has_big_integers_ = false;
  simdjson::error_code error = ParseCopy(json);
  // simdjson rejects a whole document for one integer beyond 64 bits, even if no key uses that
  // integer.
  if (error != simdjson::SUCCESS && ReplaceBigIntegers(json, &rewritten_)) {
    has_big_integers_ = true;
    error = ParseCopy(rewritten_);
  }
  if (error == simdjson::SUCCESS) return absl::OkStatus();
  if (error == simdjson::MEMALLOC) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("no memory to parse %d bytes of JSON", json.size()));
  }
  return absl::InvalidArgumentError(absl::StrFormat("expected JSON, found %s (%s)", Quoted(json),
                                                    simdjson::error_message(error)));
}

absl::Status JsonRow::Values(const JsonPointer& pointer, DataType type, KeySink* sink) const {
  simdjson::dom::element element = root_;
  for (const JsonPointer::Token& token : pointer.tokens_) {
    simdjson::error_code error = simdjson::NO_SUCH_FIELD;
    if (element.is_object()) {
      error = element.get_object().value_unsafe().at_key(token.name).get(element);
    } else if (element.is_array() && token.index.has_value()) {
      error = element.get_array().value_unsafe().at(*token.index).get(element);
    }
    if (error != simdjson::SUCCESS) return absl::OkStatus();  // no such member
  }
  if (!element.is_array()) return AddScalar(element, type, has_big_integers_, sink);
  const simdjson::dom::array array = element.get_array().value_unsafe();
  for (const simdjson::dom::element item : array) {
    RETURN_IF_ERROR(AddScalar(item, type, has_big_integers_, sink));
  }
  return absl::OkStatus();
}

}  // namespace cairn
