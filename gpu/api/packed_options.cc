#include "gpu/api/packed_options.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

absl::StatusOr<PackedIndexOptions> TakePackedOptions(FactoryString* factory) {
  PackedIndexOptions options;
  const std::string_view directory = factory->Take("directory").value_or("auto");
  if (directory == "bitmap") {
    options.directory = LeafDirectory::kBitmap;
  } else if (directory == "tree") {
    options.directory = LeafDirectory::kTree;
  } else if (directory != "auto") {
    return factory->Bad(
        absl::StrFormat("directory: expected auto, bitmap or tree, got '%s'", directory));
  }
  constexpr std::string_view kBits[] = {"auto", "16", "32", "48", "64", "128"};
  const std::string_view bits = factory->Take("bits").value_or("auto");
  const auto* const known = std::find(std::begin(kBits), std::end(kBits), bits);
  if (known == std::end(kBits)) {
    return factory->Bad(
        absl::StrFormat("bits: expected auto, 16, 32, 48, 64 or 128, got '%s'", bits));
  }
  if (bits != "auto") {
    (void)absl::SimpleAtoi(absl::string_view(bits.data(), bits.size()), &options.bits);
  }
  ASSIGN_OR_RETURN(options.row_column, factory->TakeFlag("rows"));
  return options;
}

}  // namespace cairn::gpu
