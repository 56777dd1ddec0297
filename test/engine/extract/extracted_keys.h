#pragma once

#include <boost/test/unit_test.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "engine/extract/row_extractor.h"
#include "test/require_ok.h"

namespace cairn {

using std::string_literals::operator""s;
using std::string_view_literals::operator""sv;

inline RowExtractor Compiled(std::string_view text) {
  auto spec = RequireOk(IndexSpec::Parse(text));
  return RequireOk(RowExtractor::Create(spec));
}

inline RowView Row(std::string_view value, std::string_view primary_key = "pk") {
  return {primary_key, value, {}};
}

// The keys as text separated by blanks, or the error after "! ".
inline std::string Keys(const RowExtractor& extractor, const RowView& row) {
  RowExtractor::Scratch scratch;
  EncodedKeys keys(extractor.codec().kind());
  const absl::Status status = extractor.Extract(row, &scratch, &keys);
  if (!status.ok()) {
    BOOST_TEST(keys.empty());
    BOOST_CHECK(absl::IsInvalidArgument(status));
    return absl::StrFormat("! %s", status.message());
  }
  std::string text;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto key = RequireOk(extractor.codec().Format(keys, i));
    text += i == 0 ? "" : " ";
    text += key;
  }
  return text;
}
inline std::string Keys(std::string_view spec, const RowView& row) {
  return Keys(Compiled(spec), row);
}
inline std::string Keys(std::string_view spec, std::string_view value) {
  return Keys(spec, Row(value));
}

// Checks that the row is unreadable, and that the error names the part and contains `mention`.
inline void Unreadable(std::string_view spec, std::string_view value, std::string_view mention) {
  const std::string found = Keys(spec, value);
  BOOST_CHECK_MESSAGE(found.rfind("! part ", 0) == 0, spec << ": " << found);
  BOOST_CHECK_MESSAGE(found.find(mention) != std::string::npos, spec << ": " << found);
}

}  // namespace cairn
