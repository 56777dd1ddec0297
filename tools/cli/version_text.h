#pragma once

#include <string>

namespace cairn::tools {

// What `cairn --version` prints, without the last newline. The first line is "cairn " and the
// version.
std::string VersionText();

}  // namespace cairn::tools
