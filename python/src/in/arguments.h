#pragma once

// Arguments of bound functions that name themselves in errors. If a conversion of nanobind fails,
// its error has only the whole signature.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"

namespace cairn::python {

namespace nb = nanobind;

// Convert Python objects to C++ values. Each throws ArgumentTypeError for another type and
// InvalidArgument for another value; the message begins with `name`, that of the argument.
bool ReadBool(nb::handle object, const char* name);
// Reads an integer, including NumPy's.
int64_t ReadSigned(nb::handle object, const char* name, int64_t least, int64_t most);
uint64_t ReadNatural(nb::handle object, const char* name, uint64_t least, uint64_t most);
double ReadFloat(nb::handle object, const char* name);
std::string ReadText(nb::handle object, const char* name);
std::string ReadBytes(nb::handle object, const char* name);
// Reads a sequence of str, but not a single str.
std::vector<std::string> ReadNames(nb::handle object, const char* name);
// InvalidArgument if a name occurs twice, since the names identify the columns of a result.
void RequireDistinct(const std::vector<std::string>& names, const char* name);
std::vector<int> ReadIntegers(nb::handle object, const char* name);

// A name as a template argument.
template <size_t kSize>
struct Name {
  constexpr Name(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }  // NOLINT
  char text[kSize];
};

// Types of arguments that have their own limits.
struct Threads {
  int number;                              // 0: one per core
  operator int() const { return number; }  // NOLINT
};
// `timeout`: seconds from now until a query must have ended; None: no limit.
struct Timeout {
  absl::Time deadline = absl::InfiniteFuture();
};
struct Limit {
  uint64_t most;  // rows, groups or pairs
};

template <typename T>
struct ArgumentOf;

template <>
struct ArgumentOf<bool> {
  static bool Get(nb::handle object, const char* name) { return ReadBool(object, name); }
  static constexpr auto kType = nb::detail::const_name("bool");
};
template <typename T>
requires std::is_integral_v<T>
struct ArgumentOf<T> {
  static T Get(nb::handle object, const char* name) {
    using Range = std::numeric_limits<T>;
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(ReadSigned(object, name, Range::min(), Range::max()));
    } else {
      return static_cast<T>(ReadNatural(object, name, 0, Range::max()));
    }
  }
  static constexpr auto kType = nb::detail::const_name("int");
};
template <>
struct ArgumentOf<Threads> {
  static Threads Get(nb::handle object, const char* name) {
    return {static_cast<int>(ReadSigned(object, name, 0, 4096))};
  }
  static constexpr auto kType = nb::detail::const_name("int");
};
template <>
struct ArgumentOf<Limit> {
  static Limit Get(nb::handle object, const char* name) {
    return {ReadNatural(object, name, 0, std::numeric_limits<uint64_t>::max())};
  }
  static constexpr auto kType = nb::detail::const_name("int");
};
template <>
struct ArgumentOf<double> {
  static double Get(nb::handle object, const char* name) { return ReadFloat(object, name); }
  static constexpr auto kType = nb::detail::const_name("float");
};
template <>
struct ArgumentOf<Timeout> {
  // InvalidArgument for a negative number or NaN.
  static Timeout Get(nb::handle object, const char* name);
  static constexpr auto kType = nb::detail::const_name("float | None");
};
template <>
struct ArgumentOf<std::string> {
  static std::string Get(nb::handle object, const char* name) { return ReadText(object, name); }
  static constexpr auto kType = nb::detail::const_name("str");
};
template <>
struct ArgumentOf<std::vector<std::string>> {
  static std::vector<std::string> Get(nb::handle object, const char* name) {
    return ReadNames(object, name);
  }
  static constexpr auto kType = nb::detail::const_name("collections.abc.Sequence[str]");
};
template <>
struct ArgumentOf<std::vector<int>> {
  static std::vector<int> Get(nb::handle object, const char* name) {
    return ReadIntegers(object, name);
  }
  static constexpr auto kType = nb::detail::const_name("collections.abc.Sequence[int]");
};
template <typename T>
struct ArgumentOf<std::optional<T>> {
  static std::optional<T> Get(nb::handle object, const char* name) {
    if (object.is_none()) return std::nullopt;
    return ArgumentOf<T>::Get(object, name);
  }
  static constexpr auto kType = ArgumentOf<T>::kType + nb::detail::const_name(" | None");
};

// An argument of a bound function: converts the caller's object to a T on use. Its nb::arg accepts
// None, which T may reject.
template <typename T, Name kName>
struct Argument {
  nb::handle object;
  T operator*() const { return ArgumentOf<T>::Get(object, kName.text); }
  operator T() const { return **this; }  // NOLINT
};
template <Name kName>
using BoolArg = Argument<bool, kName>;
template <Name kName>
using TextArg = Argument<std::string, kName>;
template <Name kName>
using NamesArg = Argument<std::vector<std::string>, kName>;
template <Name kName>
using LimitArg = Argument<std::optional<Limit>, kName>;
using TimeoutArg = Argument<Timeout, "timeout">;
template <Name kName>
using ThreadsArg = Argument<Threads, kName>;
template <Name kName>
using NaturalArg = Argument<uint64_t, kName>;

}  // namespace cairn::python

namespace nanobind::detail {

// Makes nanobind pass None on.
template <typename T, cairn::python::Name kName>
struct has_arg_defaults<cairn::python::Argument<T, kName>> : std::true_type {};

template <typename T, cairn::python::Name kName>
struct type_caster<cairn::python::Argument<T, kName>> {
  using Given = cairn::python::Argument<T, kName>;
  NB_TYPE_CASTER(Given, cairn::python::ArgumentOf<T>::kType)

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    value.object = source;
    return true;
  }
};

}  // namespace nanobind::detail
