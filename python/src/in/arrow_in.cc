#include "python/src/in/arrow_in.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"

namespace cairn::python {
namespace {

struct NamedFormat {
  std::string_view format, name;
};
constexpr NamedFormat kFormats[] = {
    {"n", "null"},    {"b", "bool"},         {"c", "int8"},         {"C", "uint8"},
    {"s", "int16"},   {"S", "uint16"},       {"i", "int32"},        {"I", "uint32"},
    {"l", "int64"},   {"L", "uint64"},       {"e", "float16"},      {"f", "float32"},
    {"g", "float64"}, {"z", "binary"},       {"Z", "large_binary"}, {"vz", "binary_view"},
    {"u", "string"},  {"U", "large_string"}, {"vu", "string_view"}, {"+s", "struct"},
    {"+l", "list"},   {"+L", "large_list"},  {"tdD", "date32"},     {"tdm", "date64"},
};

// The format of a number of this type.
std::string_view FormatOf(KeyType type) {
  constexpr std::string_view kNumbers[] = {"C", "S", "I", "L", "c", "s", "i", "l", "f", "g"};
  return kNumbers[static_cast<size_t>(type)];
}

size_t WidthOf(KeyType type) {
  constexpr size_t kWidths[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
  return kWidths[static_cast<size_t>(type)];
}

bool IsText(KeyType type) {
  return type == KeyType::kText || type == KeyType::kBytes;
}

// One chunk of a column: an array, and where in it the column's values begin.
struct Chunk {
  const ArrowArray* array;
  size_t first;
  size_t size;
};

// Values of a number column without their type.
PartColumn NumberPart(KeyType type, const void* data, size_t size) {
  const auto span = [&](auto value) {
    return PartColumn{
        absl::Span<const decltype(value)>(static_cast<const decltype(value)*>(data), size)};
  };
  switch (type) {
    case KeyType::kU8:
      return span(uint8_t());
    case KeyType::kU16:
      return span(uint16_t());
    case KeyType::kU32:
      return span(uint32_t());
    case KeyType::kU64:
      return span(uint64_t());
    case KeyType::kI8:
      return span(int8_t());
    case KeyType::kI16:
      return span(int16_t());
    case KeyType::kI32:
      return span(int32_t());
    case KeyType::kI64:
      return span(int64_t());
    case KeyType::kF32:
      return span(float());
    case KeyType::kF64:
    case KeyType::kText:
    case KeyType::kBytes:
      break;
  }
  return span(double());
}

[[noreturn]] void Broken(const std::string& where, const std::string& what) {
  ThrowInvalid(where + ": the Arrow array breaks the rules of its format: " + what);
}

// A buffer that must be there, as there are values.
const void* BufferAt(const ArrowArray& array, int64_t i, const std::string& where) {
  if (i >= array.n_buffers) {
    Broken(where, "it has " + std::to_string(array.n_buffers) + " buffers");
  }
  if (array.buffers[i] == nullptr) Broken(where, "buffer " + std::to_string(i) + " is missing");
  return array.buffers[i];
}

// The validity bitmap; null where no value is null.
const uint8_t* ValidityOf(const ArrowArray& array) {
  return array.null_count == 0 || array.n_buffers < 1
             ? nullptr
             : static_cast<const uint8_t*>(array.buffers[0]);
}

bool IsValid(const uint8_t* bits, size_t i) {
  return bits == nullptr || (bits[i / 8] >> (i % 8) & 1) != 0;
}

// Calls work(first, last) for parts of [0, size) on as many threads as there are cores, and returns
// whether all were true. A search of a large batch runs on all cores, so that what comes before it
// must not run on one.
template <typename Work>
bool InParallel(size_t size, const Work& work) {
  constexpr size_t kGrain = size_t{1} << 16;  // takes a thread longer than to start it
  constexpr size_t kMostThreads = 16;
  if (size < 2 * kGrain) return work(0, size);  // before the cores are counted, which takes 2 us
  const size_t parts =
      std::min<size_t>({size / kGrain, std::thread::hardware_concurrency(), kMostThreads});
  if (parts <= 1) return work(0, size);
  std::atomic<bool> good{true};
  std::vector<std::jthread> threads;
  for (size_t part = 0; part < parts; ++part) {
    const auto run = [&, part] {
      if (!work(size * part / parts, size * (part + 1) / parts)) good.store(false);
    };
    if (part + 1 < parts) {
      threads.emplace_back(run);
    } else {
      run();
    }
  }
  threads.clear();  // waits
  return good.load();
}

template <typename Offset>
void WriteViews(const Chunk& chunk, const std::string& where, std::string_view* views) {
  const auto* offsets = static_cast<const Offset*>(BufferAt(*chunk.array, 1, where)) + chunk.first;
  if (chunk.array->n_buffers < 3) Broken(where, "it has no buffer of bytes");
  const auto* bytes = static_cast<const char*>(chunk.array->buffers[2]);
  if (offsets[0] < 0) Broken(where, "an offset is negative");
  const bool ascend = InParallel(chunk.size, [&](size_t first, size_t last) {
    bool good = true;
    for (size_t i = first; i < last; ++i) {
      good &= offsets[i + 1] >= offsets[i];
      views[i] = {bytes + offsets[i],
                  static_cast<size_t>(offsets[i + 1]) - static_cast<size_t>(offsets[i])};
    }
    return good;
  });
  for (size_t i = 0; !ascend && i < chunk.size; ++i) {
    if (offsets[i + 1] < offsets[i]) {
      Broken(where, "offset " + std::to_string(i + 1) + " is less than the one before");
    }
  }
  if (bytes == nullptr && offsets[chunk.size] > 0) Broken(where, "buffer 2 is missing");
}

// Arrow's views: 16 bytes each, of which short strings are a part.
void WriteStringViews(const Chunk& chunk, const std::string& where, std::string_view* views) {
  constexpr int32_t kInline = 12;
  const ArrowArray& array = *chunk.array;
  const auto* records = static_cast<const char*>(BufferAt(array, 1, where)) + 16 * chunk.first;
  if (array.n_buffers < 3) Broken(where, "it has no buffer of sizes");
  const int64_t heaps = array.n_buffers - 3;
  const auto* sizes = static_cast<const int64_t*>(array.buffers[array.n_buffers - 1]);
  const uint8_t* validity = ValidityOf(array);
  for (size_t i = 0; i < chunk.size; ++i) {
    const char* record = records + 16 * i;
    if (!IsValid(validity, chunk.first + i)) {
      views[i] = {};
      continue;
    }
    int32_t size;
    std::memcpy(&size, record, sizeof size);
    if (size < 0) Broken(where, "a length is negative");
    if (size <= kInline) {
      views[i] = {record + 4, static_cast<size_t>(size)};
      continue;
    }
    int32_t heap, offset;
    std::memcpy(&heap, record + 8, sizeof heap);
    std::memcpy(&offset, record + 12, sizeof offset);
    if (heap < 0 || heap >= heaps || offset < 0 || int64_t{offset} + size > sizes[heap]) {
      Broken(where, "view " + std::to_string(i) + " lies outside of its buffer");
    }
    views[i] = {static_cast<const char*>(array.buffers[2 + heap]) + offset,
                static_cast<size_t>(size)};
  }
}

void ReadText(std::string_view format, const std::vector<Chunk>& chunks, const std::string& where,
              ArrowColumn* column) {
  size_t size = 0;
  for (const Chunk& chunk : chunks) size += chunk.size;
  std::string_view* const views = column->views.Take(size);
  std::string_view* to = views;
  for (const Chunk& chunk : chunks) {
    if (chunk.size == 0) continue;
    if (format[0] == 'v') {
      WriteStringViews(chunk, where, to);
    } else if (format == "u" || format == "z") {
      WriteViews<int32_t>(chunk, where, to);
    } else {
      WriteViews<int64_t>(chunk, where, to);
    }
    to += chunk.size;
  }
  column->part.values = absl::MakeConstSpan(views, size);
}

void ReadNumbers(KeyType type, const std::vector<Chunk>& chunks, const std::string& where,
                 ArrowColumn* column) {
  const size_t width = WidthOf(type);
  if (chunks.size() == 1) {
    const Chunk& chunk = chunks[0];
    const auto* data = chunk.size == 0
                           ? nullptr
                           : static_cast<const unsigned char*>(BufferAt(*chunk.array, 1, where)) +
                                 width * chunk.first;
    if (reinterpret_cast<uintptr_t>(data) % width == 0) {
      column->part = NumberPart(type, data, chunk.size);
      return;
    }
  }
  for (const Chunk& chunk : chunks) {
    if (chunk.size == 0) continue;
    const auto* data =
        static_cast<const unsigned char*>(BufferAt(*chunk.array, 1, where)) + width * chunk.first;
    column->gathered.insert(column->gathered.end(), data, data + width * chunk.size);
  }
  column->part = NumberPart(type, column->gathered.data(), column->gathered.size() / width);
}

void ReadValidity(const std::vector<Chunk>& chunks, ArrowColumn* column) {
  bool nulls = false;
  for (const Chunk& chunk : chunks) nulls = nulls || ValidityOf(*chunk.array) != nullptr;
  if (!nulls) return;
  if (chunks.size() == 1) {
    column->part.validity = ValidityOf(*chunks[0].array);
    column->part.first_bit = chunks[0].first;
    return;
  }
  column->validity.resize(column->part.size() / 8 + 1);
  size_t to = 0;
  for (const Chunk& chunk : chunks) {
    const uint8_t* bits = ValidityOf(*chunk.array);
    for (size_t i = 0; i < chunk.size; ++i, ++to) {
      if (IsValid(bits, chunk.first + i)) {
        column->validity[to / 8] =
            static_cast<unsigned char>(column->validity[to / 8] | 1 << (to % 8));
      }
    }
  }
  column->part.validity = column->validity.data();
}

void CheckArray(const ArrowArray& array, const std::string& where) {
  if (array.length < 0 || array.offset < 0 || array.n_buffers < 0) {
    Broken(where, "a size is negative");
  }
}

// Moves a structure out of its capsule, so that nobody else takes or releases it.
template <typename T>
void Take(nb::handle capsule, const char* name, T* taken) {
  if (PyCapsule_IsValid(capsule.ptr(), name) == 0) {
    ThrowInvalid("expected an Arrow capsule '" + std::string(name) + "', found " +
                 Described(capsule));
  }
  auto* held = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (held->release == nullptr) ThrowInvalid("an Arrow capsule was released before it was read");
  *taken = *held;
  held->release = nullptr;
}

// A thread's spare views, and how many it keeps: 64 MB of them.
constexpr size_t kMostSpareViews = size_t{1} << 22;
thread_local std::vector<std::string_view> spare_views;

}  // namespace

ViewBuffer::~ViewBuffer() {
  if (views_.size() <= kMostSpareViews && views_.size() > spare_views.size()) {
    spare_views.swap(views_);
  }
}

std::string_view* ViewBuffer::Take(size_t size) {
  views_.swap(spare_views);
  if (views_.size() < size) views_.resize(size);
  return views_.data();
}

std::string ArrowTypeName(const ArrowSchema& schema) {
  if (schema.dictionary != nullptr) return "a dictionary of " + ArrowTypeName(*schema.dictionary);
  for (const NamedFormat& format : kFormats) {
    if (format.format == schema.format) return std::string(format.name);
  }
  return "the format '" + std::string(schema.format) + "'";
}

std::unique_ptr<ArrowIn> ArrowIn::Of(nb::handle object) {
  if (PyType_Check(object.ptr()) != 0) return nullptr;
  std::unique_ptr<ArrowIn> made(new ArrowIn);
  ArrowIn& in = *made;
  if (nb::hasattr(object, "__arrow_c_array__")) {
    const nb::object pair = object.attr("__arrow_c_array__")();
    if (!PyTuple_Check(pair.ptr()) || nb::len(pair) != 2) {
      ThrowInvalid("__arrow_c_array__ gave no pair of capsules");
    }
    Take(nb::object(pair[0]), "arrow_schema", &in.schema_);
    Take(nb::object(pair[1]), "arrow_array", &in.arrays_.emplace_back());
  } else if (nb::hasattr(object, "__arrow_c_stream__")) {
    ArrowArrayStream& stream = in.stream_;
    Take(nb::object(object.attr("__arrow_c_stream__")()), "arrow_array_stream", &stream);
    const auto check = [&](int error) {
      if (error == 0) return;
      const char* message = stream.get_last_error(&stream);
      ThrowInvalid("an Arrow stream failed: " +
                   std::string(message == nullptr ? std::strerror(error) : message));
    };
    check(stream.get_schema(&stream, &in.schema_));
    while (true) {
      ArrowArray& array = in.arrays_.emplace_back();
      check(stream.get_next(&stream, &array));
      if (array.release == nullptr) {
        in.arrays_.pop_back();
        break;
      }
    }
  } else {
    return nullptr;
  }
  return made;
}

ArrowIn::~ArrowIn() {
  for (ArrowArray& array : arrays_) {
    if (array.release != nullptr) array.release(&array);
  }
  if (schema_.release != nullptr) schema_.release(&schema_);
  if (stream_.release != nullptr) stream_.release(&stream_);
}

std::optional<KeyType> ArrowIn::TypeOf(size_t i) const {
  const ArrowSchema& schema = is_struct() ? *schema_.children[i] : schema_;
  if (schema.dictionary != nullptr) return std::nullopt;
  const std::string_view format = schema.format;
  if (format == "u" || format == "U" || format == "vu") return KeyType::kText;
  if (format == "z" || format == "Z" || format == "vz") return KeyType::kBytes;
  for (int type = 0; type <= static_cast<int>(KeyType::kF64); ++type) {
    if (format == FormatOf(static_cast<KeyType>(type))) return static_cast<KeyType>(type);
  }
  return std::nullopt;
}

ArrowColumn ArrowIn::Column(size_t i, KeyType type, const std::string& where) const {
  const ArrowSchema& schema = is_struct() ? *schema_.children[i] : schema_;
  const std::string_view format = schema.format;
  const bool text = format == "u" || format == "U" || format == "z" || format == "Z" ||
                    format == "vu" || format == "vz";
  if (schema.dictionary != nullptr || (IsText(type) ? !text : format != FormatOf(type))) {
    const std::string expected = IsText(type) ? "strings or binary" : DtypeName(type);
    ThrowKeyType(where + ": expected an Arrow array of " + expected + ", found one of " +
                 ArrowTypeName(schema) + "; convert by .cast()");
  }
  std::vector<Chunk> chunks;
  for (const ArrowArray& array : arrays_) {
    CheckArray(array, where);
    if (!is_struct()) {
      chunks.push_back(
          {&array, static_cast<size_t>(array.offset), static_cast<size_t>(array.length)});
      continue;
    }
    if (array.n_children != schema_.n_children) Broken(where, "a struct lacks children");
    if (const uint8_t* validity = ValidityOf(array)) {
      for (int64_t row = 0; row < array.length; ++row) {
        if (!IsValid(validity, static_cast<size_t>(array.offset + row))) {
          ThrowInvalid(where + ": value " + std::to_string(row) +
                       ": expected a struct, found null; parts may be null, keys not");
        }
      }
    }
    const ArrowArray& child = *array.children[i];
    CheckArray(child, where);
    if (child.length < array.offset || child.length - array.offset < array.length) {
      Broken(where, "a child is too short");
    }
    chunks.push_back({&child, static_cast<size_t>(child.offset + array.offset),
                      static_cast<size_t>(array.length)});
  }
  ArrowColumn column;
  if (IsText(type)) {
    ReadText(format, chunks, where, &column);
  } else {
    ReadNumbers(type, chunks, where, &column);
  }
  ReadValidity(chunks, &column);
  return column;
}

}  // namespace cairn::python
