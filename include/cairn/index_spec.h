#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/key_codec.h"

namespace cairn {

enum class Endian : uint8_t { kLittle, kBig };

// Where in a row one part of a secondary key is found.
struct KeySource {
  enum class Kind : uint8_t {
    kKey,     // key            the row's primary key, or bytes of it: key[4:8]
    kValue,   // value          the row's value, or bytes of it: value[8:4], value[8:]
    kField,   // value.field('|', 4)         a delimited field, counted from 0
    kJson,    // value.json('/address/city') a JSON pointer; an array gives one entry per element
    kColumn,  // column('city')              a wide-column entity's column
    kCustom,  // custom('name')              a registered KeyExtractor (extractor.h)
  };
  Kind kind = Kind::kValue;
  uint64_t offset = 0;             // kKey, kValue: first byte
  std::optional<uint64_t> length;  // kKey, kValue: bytes; none: up to the end
  char delimiter = 0;              // kField
  uint32_t field = 0;              // kField
  std::string name;  // kJson: the pointer; kColumn: the column; kCustom: the extractor
};

struct KeyPart {
  KeySource source;
  DataType type = DataType::kBytes;
  // Of a number read from raw bytes (kKey, kValue, kColumn); not looked at elsewhere, nor for one
  // byte.
  Endian endian = Endian::kBig;
};

// A column that is stored with an index: answers have its values, and the database is not asked.
struct IncludedColumn {
  std::string name;  // [A-Za-z0-9_.-]+, of its own among an index's columns
  // Read as a part of a key is. A row has one value at most: an array, or a custom extractor that
  // gives several, makes it a row that cannot be read (ErrorPolicy).
  KeyPart value;
};

// What becomes of a row whose value cannot be read as its part's declared type.
enum class ErrorPolicy : uint8_t {
  kFail,  // the build, the CatchUp or the index of an IndexedDB fails and names the primary key
  kSkip,  // the row gives no entry; a build counts it in BuildReport
};

// Rows that compactions of the database drop or change: by a compaction filter, or by FIFO
// compaction. The log does not record them.
enum class DroppedRows : uint8_t {
  kRefuse,  // an IndexedDB refuses the index if the column family has such compactions
  // The entries of such rows stay, as they were, until the rows are written again or the index is
  // rebuilt. Lookup returns them. IndexedDB::LookupRows leaves them out, as it reads the rows; it
  // does not find a row by a key that a compaction filter gave it.
  kIgnore,
};

// What to index: which rows' which bytes, as which type.
//
// As text:  [name '='] part {',' part} {',' option}
//   part:   source ':' type, the sources as above; types u8 … u64, i8 … i64, f32, f64, text, bytes.
//           A number of more than one byte from raw bytes says its byte order: u32le, f64be.
//   option: cf=NAME | unique=true | nulls=skip|first|last | on_error=fail|skip
//           | dropped_rows=refuse|ignore | include '(' column {',' column} ')'
//   column: name '=' part: include(price = value.field('|', 5):f64, quantity = value[8:4]:u32le)
//   Strings stand between single quotes; \' \\ and \xHH escape. Blanks around tokens are ignored.
// A part that is missing in a row (no such field, column or JSON member, a JSON null, a byte range
// that starts behind the end, or at it and has a length) is null: see NullPolicy, which is for
// keys; an included column has nulls always. A byte range that ends too early cannot be read.
struct IndexSpec {
  std::string name;  // [A-Za-z0-9_.-]+, or empty
  std::string column_family = "default";
  std::vector<KeyPart> parts;  // 1 to 16
  // Two rows with one key are an error. As in SQL, a key with a null in any part is equal to no
  // other: any number of rows may have it.
  bool unique = false;
  NullPolicy nulls = NullPolicy::kSkip;
  ErrorPolicy on_error = ErrorPolicy::kFail;
  DroppedRows dropped_rows = DroppedRows::kRefuse;
  std::vector<IncludedColumn> include;  // up to 64

  // InvalidArgument, with the offset in `text` and what was expected there.
  static absl::StatusOr<IndexSpec> Parse(std::string_view text);
  // The canonical text: Parse(ToString()) gives the same spec.
  std::string ToString() const;
  // The codec of this spec's keys. InvalidArgument for a spec without parts or with too many.
  absl::StatusOr<KeyCodec> Codec() const;
};

}  // namespace cairn
