#pragma once

#include <functional>

#include "cairn/c/base.h"
#include "cairn/options.h"

namespace cairn {

// Wraps a C function, which may be null.
std::function<void(const Progress&)> OnProgress(cairn_on_progress on_progress, void* context);

}  // namespace cairn
