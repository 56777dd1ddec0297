#include "engine/version/row_codes.h"

#include <algorithm>
#include <limits>

#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Where each key begins; as many as are wanted and one more at most.
std::vector<Position> KeyBegins(const SortedRun& run, size_t most) {
  std::vector<Position> begins;
  WithPhysicalKey(run.kind(), [&](auto type) {
    const auto keys = ColumnOf<typename decltype(type)::type>(run);
    for (size_t p = 0; p < run.size() && begins.size() <= most; ++p) {
      if (p == 0 || keys[p] != keys[p - 1]) begins.push_back(static_cast<Position>(p));
    }
  });
  return begins;
}

template <typename Code>
AlignedBuffer<Code> Codes(const SortedRun& run, uint64_t rows,
                          const std::vector<Position>& begins) {
  AlignedBuffer<Code> codes(rows);
  std::fill(codes.begin(), codes.end(), std::numeric_limits<Code>::max());
  for (size_t key = 0; key < begins.size(); ++key) {
    const size_t end = key + 1 < begins.size() ? begins[key + 1] : run.size();
    for (size_t p = begins[key]; p < end; ++p) codes[run.row_ids()[p]] = static_cast<Code>(key);
  }
  return codes;
}

}  // namespace

std::shared_ptr<const RowCodes> RowCodes::Build(const SortedRun& run, uint64_t rows) {
  auto built = std::make_shared<RowCodes>();
  built->begins_ = KeyBegins(run, kMax16);
  if (built->begins_.size() > kMax16) return nullptr;
  if (built->begins_.size() <= kMax8) {
    built->codes8_ = Codes<uint8_t>(run, rows, built->begins_);
  } else {
    built->codes16_ = Codes<uint16_t>(run, rows, built->begins_);
  }
  return built;
}

uint32_t RowCodes::CodeOf(Position position) const {
  return static_cast<uint32_t>(std::lower_bound(begins_.begin(), begins_.end(), position) -
                               begins_.begin());
}

}  // namespace cairn
