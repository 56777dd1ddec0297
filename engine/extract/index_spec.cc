#include "cairn/index_spec.h"

#include <algorithm>
#include <string>

#include "engine/extract/key_part.h"
#include "index/machine/guard.h"

namespace cairn {
namespace {

// Returns a column family's name as an option's value: unquoted if possible.
std::string NameText(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), IsNameByte);
  return bare ? name : QuotedString(name);
}

}  // namespace

std::string IndexSpec::ToString() const {
  std::string text;
  if (!name.empty()) {
    text += name;
    text += '=';
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) text += ',';
    text += PartText(parts[i]);
  }
  for (size_t i = 0; i < include.size(); ++i) {
    text += i == 0 ? ",include(" : ",";
    text += include[i].name;
    text += '=';
    text += PartText(include[i].value);
  }
  if (!include.empty()) text += ')';
  if (column_family != "default") {
    text += ",cf=";
    text += NameText(column_family);
  }
  if (unique) text += ",unique=true";
  if (nulls != NullPolicy::kSkip)
    text += nulls == NullPolicy::kFirst ? ",nulls=first" : ",nulls=last";
  if (on_error == ErrorPolicy::kSkip) text += ",on_error=skip";
  if (dropped_rows == DroppedRows::kIgnore) text += ",dropped_rows=ignore";
  return text;
}

absl::StatusOr<KeyCodec> IndexSpec::Codec() const try {
  std::vector<DataType> types;
  for (const KeyPart& part : parts) types.push_back(part.type);
  return KeyCodec::Create(types, nulls);
} catch (...) {
  return StatusOfException("making a key codec");
}

}  // namespace cairn
