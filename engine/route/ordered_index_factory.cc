#include "engine/route/ordered_index_factory.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/fast/compressed_tree.h"
#include "cpu_fast/fast/fast_tree.h"
#include "cpu_fast/packed/packed_index.h"
#include "cpu_fast/simd/simd_level.h"
#include "cpu_fast/strings/partial_key_tree.h"
#include "cpu_fast/strings/string_search.h"
#include "gpu/api/gpu_factory.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/factory_string.h"
#include "index/query/sorted_array.h"

namespace cairn {
namespace {

absl::StatusOr<std::optional<SimdLevel>> TakeSimd(FactoryString* factory) {
  const std::optional<std::string_view> name = factory->Take("simd");
  if (!name.has_value()) return std::optional<SimdLevel>();
  absl::StatusOr<SimdLevel> level = ParseSimdLevel(*name);
  if (!level.ok()) return factory->Bad(std::string(level.status().message()));
  return std::optional<SimdLevel>(*level);
}

absl::StatusOr<PageBlocking> TakePage(FactoryString* factory) {
  const std::string_view page = factory->Take("page").value_or("none");
  if (page == "none") return PageBlocking::kNone;
  if (page == "4k") return PageBlocking::k4K;
  if (page == "2m") return PageBlocking::k2M;
  return factory->Bad(absl::StrFormat("expected page=none, 4k or 2m, got '%s'", page));
}

absl::StatusOr<PackedIndexOptions> TakePackedOptions(FactoryString* factory) {
  PackedIndexOptions options;
  ASSIGN_OR_RETURN(const std::optional<SimdLevel> simd, TakeSimd(factory));
  options.simd = simd;
  const std::string_view directory = factory->Take("directory").value_or("auto");
  if (directory == "cells") {
    options.directory = LeafDirectory::kCells;
  } else if (directory == "tree") {
    options.directory = LeafDirectory::kTree;
  } else if (directory != "auto") {
    return factory->Bad(
        absl::StrFormat("expected directory=auto, cells or tree, got '%s'", directory));
  }
  const std::string_view bits = factory->Take("bits").value_or("auto");
  options.bits = bits == "16" ? 16 : bits == "32" ? 32 : bits == "64" ? 64 : 0;
  if (options.bits == 0 && bits != "auto") {
    return factory->Bad(absl::StrFormat("expected bits=auto, 16, 32 or 64, got '%s'", bits));
  }
  return options;
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeCompressed(FactoryString factory, SortedRun run) {
  ASSIGN_OR_RETURN(const std::optional<SimdLevel> simd, TakeSimd(&factory));
  if (factory.Take("page").has_value()) {
    return factory.Bad("expected only one of page and compressed");
  }
  RETURN_IF_ERROR(factory.CheckAllTaken());
  return MakeCompressedTree(std::move(run), simd);
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOnCpu(FactoryString factory, SortedRun run,
                                                        const UsableLeaves* leaves) {
  if (factory.structure == "auto") {
    factory.structure = run.kind() == PhysicalType::kBytes ? "partial_key"
                        : run.size() < kMinPackedEntries   ? "fast"
                                                           : "packed";
  }
  if (factory.structure == "sorted_array") {
    RETURN_IF_ERROR(factory.CheckAllTaken());
    return std::make_unique<SortedArray>(std::move(run));
  }
  if (factory.structure == "fast") {
    ASSIGN_OR_RETURN(const bool compressed, factory.TakeFlag("compressed"));
    if (compressed) return MakeCompressed(std::move(factory), std::move(run));
    ASSIGN_OR_RETURN(const PageBlocking page, TakePage(&factory));
    ASSIGN_OR_RETURN(const std::optional<SimdLevel> simd, TakeSimd(&factory));
    RETURN_IF_ERROR(factory.CheckAllTaken());
    return MakeFastTree(std::move(run), {page, simd});
  }
  if (factory.structure == "packed") {
    ASSIGN_OR_RETURN(const PackedIndexOptions options, TakePackedOptions(&factory));
    RETURN_IF_ERROR(factory.CheckAllTaken());
    if (leaves != nullptr && AreLeavesOf(leaves->stored, options)) {
      return OpenPackedIndex(std::move(run), options, leaves->stored, leaves->memory);
    }
    return MakePackedIndex(std::move(run), options);
  }
  if (factory.structure == "partial_key") {
    PartialKeyTree::Options options;
    ASSIGN_OR_RETURN(options.simd, TakeSimd(&factory));
    ASSIGN_OR_RETURN(options.hash, factory.TakeFlag("hash"));
    RETURN_IF_ERROR(factory.CheckAllTaken());
    return PartialKeyTree::Build(std::move(run), options);
  }
  if (factory.structure == "strings") {
    ASSIGN_OR_RETURN(const std::optional<SimdLevel> simd, TakeSimd(&factory));
    RETURN_IF_ERROR(factory.CheckAllTaken());
    return StringSearch::Build(std::move(run), simd);
  }
  return factory.Bad(
      absl::StrFormat("unknown structure cpu:%s; expected cpu:auto, cpu:fast, "
                      "cpu:packed, cpu:partial_key, cpu:sorted_array or cpu:strings",
                      factory.structure));
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> Make(std::string_view text, SortedRun run,
                                                   const UsableLeaves* leaves,
                                                   absl::Span<const int> devices) {
  ASSIGN_OR_RETURN(FactoryString factory, FactoryString::Parse(text));
  if (factory.device == "gpu") {
    return gpu::MakeGpuIndex(std::move(factory), std::move(run), devices);
  }
  if (factory.device == "cpu") return MakeOnCpu(std::move(factory), std::move(run), leaves);
  return factory.Bad(absl::StrFormat("unknown device '%s'; expected cpu or gpu", factory.device));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOrderedIndex(std::string_view factory,
                                                               SortedRun run) {
  return MakeOrderedIndex(factory, std::move(run), nullptr, {});
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOrderedIndex(std::string_view factory,
                                                               SortedRun run,
                                                               const UsableLeaves* leaves,
                                                               absl::Span<const int> devices) {
  return Guarded("making an ordered index",
                 [&] { return Make(factory, std::move(run), leaves, devices); });
}

}  // namespace cairn
