#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/key_codec.h"

namespace cairn {

// The byte order of a number.
enum class Endian : uint8_t { kLittle, kBig };

// The location of the value of a key part or an included column in a row.
struct KeySource {
  // The kind of a location, with its text in a spec.
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
  std::optional<uint64_t> length;  // kKey, kValue: number of bytes; none: up to the end
  char delimiter = 0;              // kField
  uint32_t field = 0;              // kField
  std::string name;  // kJson: the pointer; kColumn: the column; kCustom: the extractor
};

// One part of a key: where its value is, and its type.
struct KeyPart {
  KeySource source;
  DataType type = DataType::kBytes;
  // The byte order of a number in raw bytes (kKey, kValue, kColumn). Ignored for other sources and
  // for numbers of one byte.
  Endian endian = Endian::kBig;
};

// A column that is stored with an index. Queries return its values without reading the database.
struct IncludedColumn {
  std::string name;  // [A-Za-z0-9_.-]+, unique among the columns of the index
  // The source and type of the value, read like a key part. A row has at most one value. If the
  // source is an array, or a custom extractor that returns several values, the row cannot be read
  // (ErrorPolicy).
  KeyPart value;
};

// The treatment of a row with a value that cannot be read as the declared type.
enum class ErrorPolicy : uint8_t {
  kFail,  // the build, the CatchUp or the live index fails; the error names the primary key
  kSkip,  // the row has no entry; a build counts it in BuildReport
};

// How a live index treats rows that compactions of the database drop or change, through a
// compaction filter or FIFO compaction. The log does not record such changes.
enum class DroppedRows : uint8_t {
  kRefuse,  // IndexedDB rejects the index if the column family has such compactions
  // Entries of such rows stay unchanged until the row is written again or the index is rebuilt.
  // Lookup returns them. IndexedDB::LookupRows skips them, because it reads the rows. It does not
  // find a row by a key that a compaction filter wrote.
  kIgnore,
};

// Defines an index: the source and the type of each key part, and the options.
//
//   As text:  [name '='] part {',' part} {',' option}
//   part:   source ':' type, with the sources of KeySource::Kind; the types are u8 … u64, i8 … i64,
//           f32, f64, text and bytes. A number of more than one byte from raw bytes has its byte
//           order appended: u32le, f64be.
//   option: cf=NAME | unique=true | nulls=skip|first|last | on_error=fail|skip
//           | dropped_rows=refuse|ignore | include '(' column {',' column} ')'
//   column: name '=' part: include(price = value.field('|', 5):f64, quantity = value[8:4]:u32le)
//   Strings are single-quoted; \' \\ and \xHH escape. Blanks around tokens are ignored.
//
// A part is null if the row does not contain it: no such field, column or JSON member, a JSON null,
// or a byte range that starts past the end of the value, or at its end with an explicit length.
// NullPolicy applies to key parts; included columns store nulls. A byte range that ends past the
// end of the value cannot be read.
struct IndexSpec {
  std::string name;  // [A-Za-z0-9_.-]+, or empty
  std::string column_family = "default";
  std::vector<KeyPart> parts;  // 1 to 16
  // Two rows with the same key are an error: the build fails, and in a live index the write fails.
  // As in SQL, a key with a null in any part equals no other key, so any number of rows may have
  // it.
  bool unique = false;
  NullPolicy nulls = NullPolicy::kSkip;
  ErrorPolicy on_error = ErrorPolicy::kFail;
  DroppedRows dropped_rows = DroppedRows::kRefuse;
  std::vector<IncludedColumn> include;  // at most 64

  // Parses a spec. InvalidArgument, with the offset in `text` and what was expected there.
  static absl::StatusOr<IndexSpec> Parse(std::string_view text);
  // Returns the canonical text: Parse(ToString()) gives the same spec.
  std::string ToString() const;
  // Returns the codec of the keys. InvalidArgument if there are no parts or more than 16.
  absl::StatusOr<KeyCodec> Codec() const;
};

}  // namespace cairn
