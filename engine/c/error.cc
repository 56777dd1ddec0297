#include "engine/c/error.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "absl/strings/string_view.h"
#include "engine/c/handles.h"

// The message follows in memory and ends with a zero byte.
struct cairn_error {
  int32_t code;
};

namespace cairn {
namespace {

// Errors without a message, by code. They are used if there is no memory for the message.
constexpr int32_t kCodes = CAIRN_UNAUTHENTICATED + 1;
constexpr cairn_error kWithoutMessage[kCodes] = {
    {0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16},
};

bool HasNoMessage(const cairn_error* error) {
  return std::any_of(std::begin(kWithoutMessage), std::end(kWithoutMessage),
                     [&](const cairn_error& known) { return &known == error; });
}

}  // namespace

cairn_error* ToError(const absl::Status& status) noexcept {
  if (status.ok()) return nullptr;
  int32_t code = static_cast<int32_t>(status.code());
  if (code <= 0 || code >= kCodes) code = CAIRN_UNKNOWN;
  const absl::string_view message = status.message();
  void* const memory = message.empty()
                           ? nullptr
                           : ::operator new(sizeof(cairn_error) + message.size() + 1, std::nothrow);
  // Never written to, so the const_cast is safe.
  if (memory == nullptr) return const_cast<cairn_error*>(&kWithoutMessage[code]);
  cairn_error* const error = new (memory) cairn_error{code};
  char* const text = reinterpret_cast<char*>(error + 1);
  std::memcpy(text, message.data(), message.size());
  text[message.size()] = '\0';
  return error;
}

char* NewText(std::string_view text) {
  char* const copy = static_cast<char*>(::operator new(text.size() + 1));
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

absl::Status CheckNotNull(const void* pointer, std::string_view name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s: expected a pointer, found NULL", name));
}

absl::Status CheckOptionsSize(const void* options, size_t given, size_t known,
                              std::string_view name) {
  // Structures begin with a size_t, and later versions add whole multiples of its size. So no field
  // is cut in two.
  if (given < sizeof(size_t) || given > size_t{1} << 16 || given % sizeof(size_t) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: expected the structure's size, found %d", name, given));
  }
  const char* const bytes = static_cast<const char*>(options);
  for (size_t i = known; i < given; ++i) {
    if (bytes[i] == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: found an option at byte %d, from a later version than %s, whose "
                        "structure has %d bytes",
                        name, i, cairn_version(), known));
  }
  return absl::OkStatus();
}

absl::Status ReadThreads(int32_t given, int* threads) {
  constexpr int32_t kMax = 4096;
  if (given < 0 || given > kMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("threads: expected 0 to %d, found %d", kMax, given));
  }
  *threads = given;
  return absl::OkStatus();
}

}  // namespace cairn

int32_t cairn_error_code(const cairn_error* error) {
  return error == nullptr ? CAIRN_OK : error->code;
}

const char* cairn_error_message(const cairn_error* error) {
  if (error == nullptr) return "";
  if (!cairn::HasNoMessage(error)) return reinterpret_cast<const char*>(error + 1);
  return error->code == CAIRN_RESOURCE_EXHAUSTED ? "out of memory"
                                                 : "no memory for the error message";
}

void cairn_error_free(cairn_error* error) {
  if (error != nullptr && !cairn::HasNoMessage(error)) ::operator delete(error);
}

void cairn_text_free(char* text) {
  ::operator delete(text);
}

cairn_error* cairn_cancel_new(cairn_cancel** cancel) {
  return cairn::CFunction("making a flag", [&] {
    absl::Status status = cairn::CheckNotNull(cancel, "cancel");
    if (status.ok()) *cancel = new cairn_cancel;
    return status;
  });
}

void cairn_cancel_set(cairn_cancel* cancel) {
  if (cancel != nullptr) cancel->set.store(true, std::memory_order_relaxed);
}

void cairn_cancel_free(cairn_cancel* cancel) {
  delete cancel;
}
