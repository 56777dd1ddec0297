#pragma once

#include <string>
#include <string_view>

#include "cairn/column.h"

// Values as the command line prints them.

namespace cairn::tools {

// For people: text as it is, as far as that can be read; numbers in the shortest decimal that reads
// back, null as \N.
void AppendReadableValue(const DataValue& value, std::string* text);
// For scripts: of text every byte outside '!' to '~', and the backslash, as \xHH.
void AppendTsvValue(const DataValue& value, std::string* text);
// As JSON: bytes that are not UTF-8 as {"hex":"…"}; nan, inf and -inf as strings. Other floats have
// a point or an exponent, so that readers do not make integers of them: -0.0, 5.0.
void AppendJsonValue(const DataValue& value, std::string* text);

}  // namespace cairn::tools
