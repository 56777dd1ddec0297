#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "test/engine/live/stateful/program.h"

namespace cairn::stateful {

// Returns the smallest program found that fails like `program`: removes commands and lowers numbers
// while `fails` holds. `may_go_on` ends it early.
inline Program Shrink(Program program, const std::function<bool(const Program&)>& fails,
                      const std::function<bool()>& may_go_on) {
  const auto take_if_fails = [&](const Program& smaller) {
    if (!Allows(smaller) || !may_go_on() || !fails(smaller)) return false;
    program = smaller;
    return true;
  };
  bool smaller = true;
  while (smaller && may_go_on()) {
    smaller = false;
    // Halves, then quarters, … then single commands.
    for (size_t length = program.commands.size(); length > 0; length /= 2) {
      for (size_t begin = 0; begin < program.commands.size();) {
        Program without = program;
        const size_t end = std::min(begin + length, without.commands.size());
        without.commands.erase(without.commands.begin() + static_cast<std::ptrdiff_t>(begin),
                               without.commands.begin() + static_cast<std::ptrdiff_t>(end));
        if (take_if_fails(without)) {
          smaller = true;
        } else {
          begin += length;
        }
      }
    }
    for (size_t i = 0; i < kFields; ++i) {
      Program plainer = program;
      plainer.world[i] = 0;
      if (program.world[i] != 0) smaller |= take_if_fails(plainer);
    }
    for (uint32_t bit = 1; bit <= program.indexes; bit <<= 1) {
      Program fewer = program;
      fewer.indexes &= ~bit;
      if (fewer.indexes != program.indexes) smaller |= take_if_fails(fewer);
    }
    for (size_t i = 0; i < program.commands.size(); ++i) {
      for (size_t arg = 0; arg < OpInfos()[program.commands[i].op].args.size(); ++arg) {
        for (const uint32_t lower : {0u, 1u, program.commands[i].args[arg] / 2}) {
          if (lower >= program.commands[i].args[arg]) continue;
          Program lowered = program;
          lowered.commands[i].args[arg] = lower;
          if (take_if_fails(lowered)) {
            smaller = true;
            break;
          }
        }
      }
    }
  }
  return program;
}

}  // namespace cairn::stateful
