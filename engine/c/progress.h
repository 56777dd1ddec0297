#pragma once

#include <functional>

#include "cairn/c/base.h"
#include "cairn/options.h"

namespace cairn {

// What calls a C function, if there is one.
std::function<void(const Progress&)> OnProgress(cairn_on_progress on_progress, void* context);

}  // namespace cairn
