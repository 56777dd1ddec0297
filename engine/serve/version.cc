#include "cairn/version.h"

#define CAIRN_AS_TEXT(number) #number
#define CAIRN_DOTTED(major, minor, patch) \
  CAIRN_AS_TEXT(major) "." CAIRN_AS_TEXT(minor) "." CAIRN_AS_TEXT(patch)

namespace cairn {

const char* Version() {
  return CAIRN_DOTTED(CAIRN_VERSION_MAJOR, CAIRN_VERSION_MINOR, CAIRN_VERSION_PATCH);
}

}  // namespace cairn
