#pragma once

#include <string>
#include <string_view>

#include "cairn/column.h"

// Values as the command line prints them.

namespace cairn::tools {

// Human-readable: text as by AppendReadable, numbers as the shortest decimal that parses to the
// same value, null as \N.
void AppendReadableValue(const DataValue& value, std::string* text);
// For scripts: in text, every byte outside '!' to '~', and the backslash, as \xHH.
void AppendTsvValue(const DataValue& value, std::string* text);
// As JSON: bytes that are not UTF-8 as {"hex":"…"}; nan, inf and -inf as strings. Other floats have
// a point or an exponent, so that parsers do not read integers: -0.0, 5.0.
void AppendJsonValue(const DataValue& value, std::string* text);

}  // namespace cairn::tools
