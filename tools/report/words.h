#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"
#include "cairn/index_spec.h"

namespace cairn::tools {

// Converts arbitrary bytes to the text of an XML document. Bytes that are not text, control a
// terminal or change the direction of writing become \xHH. Text is cut to `most` characters.
std::string Escape(std::string_view bytes, size_t most = 400);

// 1234567 as "1.23 M".
std::string ShortNumber(double number);
// The size of a batch: 65536 as "66 k".
std::string BatchText(uint64_t queries);
// 24300000 as "24.3 MB".
std::string ByteText(double bytes);
// 0.0000000794 as "79.4 ns".
std::string TimeText(double seconds);
// 0.123 as "12%"; a small share that is not zero as "under 0.1%".
std::string PercentText(double share);
// A number on an axis or in a sentence: up to `digits` digits, with commas.
std::string PlainNumber(double number, int digits = 6);
// 1 as "1 row", 2000 as "2,000 rows".
std::string Counted(uint64_t number, absl::string_view one, absl::string_view many);

// Describes the source and the type of a part of a key; not escaped.
std::string SourceWords(const KeySource& source);
std::string TypeWords(DataType type);

}  // namespace cairn::tools
