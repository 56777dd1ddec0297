#include "gpu/api/bytes_factory.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/api/packed_options.h"
#include "gpu/packed/packed_index.h"
#include "gpu/packed/packed_size.h"
#include "gpu/strings/string_index.h"
#include "gpu/text/text_code.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// The structure to build: packed leaves if there is a code, otherwise a tree of partial keys.
struct Choice {
  std::optional<TextCode> code;
  PackedIndexOptions packed;
  StringIndexOptions strings;
};

// Reads the run's keys. Throws std::bad_alloc.
absl::StatusOr<Choice> Choose(FactoryString factory, const SortedRun& run, int threads) {
  RETURN_IF_ERROR(CheckForBytes(factory));
  Choice choice;
  const bool any = factory.structure == "auto";
  if (any || factory.structure == "partial_key") {
    ASSIGN_OR_RETURN(choice.strings.hash, factory.TakeFlag("hash"));
  }
  if (!choice.strings.hash && factory.structure != "partial_key") {
    ASSIGN_OR_RETURN(choice.packed, TakePackedOptions(&factory));
    RETURN_IF_ERROR(factory.CheckAllTaken());
    choice.code = TextCode::Of(run.bytes(), threads);
    if (!any && !choice.code.has_value()) {
      return absl::UnimplementedError(absl::StrFormat(
          "ordered index '%s': gpu:packed expects byte-string keys of at most %d bytes that can be "
          "encoded in 128 bits; use gpu:auto or gpu:partial_key",
          factory.text, TextCode::kMaxPositions));
    }
  }
  RETURN_IF_ERROR(factory.CheckAllTaken());
  return choice;
}

}  // namespace

absl::Status CheckForBytes(const FactoryString& factory) {
  for (const char* structure : {"auto", "packed", "partial_key"}) {
    if (factory.structure == structure) return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrFormat(
      "ordered index '%s': byte-string keys: expected gpu:auto, gpu:packed or gpu:partial_key",
      factory.text));
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFromBytes(FactoryString factory,
                                                            const SortedRun& run, int threads,
                                                            cudaStream_t stream) {
  return Guarded("building an index of byte-string keys",
                 [&]() -> absl::StatusOr<std::unique_ptr<DeviceIndex>> {
                   ASSIGN_OR_RETURN(const Choice choice, Choose(std::move(factory), run, threads));
                   return choice.code.has_value()
                              ? BuildPackedTextIndex(run, *choice.code, choice.packed, threads,
                                                     stream)
                              : BuildStringIndex(run, choice.strings, threads, stream);
                 });
}

absl::StatusOr<DeviceBytes> PredictFromBytes(FactoryString factory, const SortedRun& run,
                                             int threads) {
  return Guarded("reading keys", [&]() -> absl::StatusOr<DeviceBytes> {
    ASSIGN_OR_RETURN(const Choice choice, Choose(std::move(factory), run, threads));
    if (choice.code.has_value()) {
      const PackedBounds bounds = BoundPackedText(run, *choice.code, choice.packed, threads);
      return DeviceBytes{bounds.max_building, bounds.max_resident};
    }
    ASSIGN_OR_RETURN(const StringIndexBytes bytes, BoundStringIndex(run, choice.strings, threads));
    return DeviceBytes{bytes.building, bytes.resident};
  });
}

}  // namespace cairn::gpu
