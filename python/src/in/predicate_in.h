#pragma once

// Predicates from Python: the text, and the values of its parameters.

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "cairn/predicate.h"

namespace cairn::python {

namespace nb = nanobind;

// The predicate of `where`. `parameters`, a sequence or None, are the values of '?' in order.
// Without text, it is true for all rows. A tuple is a key of several parts. Throws InvalidArgument,
// ArgumentTypeError.
Predicate PredicateOf(const std::optional<std::string>& where, nb::handle parameters);

}  // namespace cairn::python
