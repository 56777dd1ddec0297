#include "index/strings/pilot_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "index/machine/parallel.h"

namespace cairn {
namespace {

constexpr size_t kPilots = 256;
constexpr size_t kHashesAPart = 10240;  // on average: 2.5 per bucket
// Random deviations from the average stay below this number of standard deviations.
constexpr double kDeviations = 17;
constexpr size_t kMaxInPart = 12000;  // if parts have kHashesAPart on average
// The used part of the slots: the larger, the more often buckets use slots of others.
constexpr double kLoad = 0.87;
constexpr double kMaxLoad = 0.95;  // of the fullest part
// Larger buckets result from equal hashes, or from hashes that are far from random.
constexpr size_t kMaxInBucket = 64;
// The number of placements per bucket, including repeated ones, after which the build gives up.
constexpr size_t kMaxPlaced = 100;

constexpr uint32_t kNoBucket = UINT32_MAX;

size_t PartsFor(size_t hashes) {
  return std::max<size_t>(1, (hashes + kHashesAPart - 1) / kHashesAPart);
}

struct Entry {
  uint64_t hash;
  uint32_t value;
};

}  // namespace

// The hashes of one part, and the positions of its buckets.
struct PilotTable::Part {
  // Orders entries by their bucket.
  Part(const PilotTable& table, absl::Span<Entry> entries) : begins(kBucketsAPart + 1) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.hash < b.hash; });
    hashes.reserve(entries.size());
    for (const Entry& entry : entries) {
      ++begins[table.Bucket(entry.hash) % kBucketsAPart + 1];
      hashes.push_back(entry.hash);
    }
    for (size_t b = 0; b < kBucketsAPart; ++b) begins[b + 1] += begins[b];
  }

  absl::Span<const uint64_t> HashesOf(uint32_t bucket) const {
    return absl::MakeConstSpan(hashes).subspan(begins[bucket], size(bucket));
  }
  size_t size(uint32_t bucket) const { return begins[bucket + 1] - begins[bucket]; }

  // Chooses pilots. Returns false if there are none.
  bool Place(uint32_t slots, uint8_t* pilots);
  // Gives `bucket` the pilot with the least cost for others, and collects buckets that lost slots.
  bool PlaceOne(uint32_t bucket, uint32_t slots, uint8_t* pilots);

  std::vector<uint32_t> begins;  // of each bucket's hashes, and the end
  std::vector<uint64_t> hashes;  // bucket after bucket
  std::vector<uint32_t> owners;  // the bucket of each slot
  std::array<std::vector<uint32_t>, kMaxInBucket + 1> waiting;  // buckets, by their size
  std::minstd_rand random;
};

bool PilotTable::Part::PlaceOne(uint32_t bucket, uint32_t slots, uint8_t* pilots) {
  const absl::Span<const uint64_t> of_bucket = HashesOf(bucket);
  uint32_t wanted[kMaxInBucket];
  int best = -1;
  size_t best_cost = SIZE_MAX;
  const size_t first = random() % kPilots;  // otherwise two buckets could alternate forever
  for (size_t i = 0; i < kPilots && best_cost > 0; ++i) {
    const auto pilot = static_cast<uint8_t>((first + i) % kPilots);
    size_t cost = 0;
    bool taken_twice = false;
    for (size_t h = 0; h < of_bucket.size() && cost < best_cost && !taken_twice; ++h) {
      wanted[h] = SlotInPart(of_bucket[h], pilot, slots);
      taken_twice = std::find(wanted, wanted + h, wanted[h]) != wanted + h;
      const uint32_t owner = owners[wanted[h]];
      // Larger buckets are much harder to place again.
      if (owner != kNoBucket) cost += size(owner) * size(owner);
    }
    if (taken_twice || cost >= best_cost) continue;
    best = pilot;
    best_cost = cost;
  }
  if (best < 0) return false;
  const auto pilot = static_cast<uint8_t>(best);
  for (const uint64_t hash : of_bucket) {
    const uint32_t slot = SlotInPart(hash, pilot, slots);
    const uint32_t owner = owners[slot];
    if (owner != kNoBucket) {
      for (const uint64_t other : HashesOf(owner)) {
        owners[SlotInPart(other, pilots[owner], slots)] = kNoBucket;
      }
      waiting[size(owner)].push_back(owner);
    }
  }
  pilots[bucket] = pilot;
  for (const uint64_t hash : of_bucket) owners[SlotInPart(hash, pilot, slots)] = bucket;
  return true;
}

bool PilotTable::Part::Place(uint32_t slots, uint8_t* pilots) {
  owners.assign(slots, kNoBucket);
  for (uint32_t b = 0; b < kBucketsAPart; ++b) {
    if (size(b) > kMaxInBucket) return false;
    if (size(b) > 0) waiting[size(b)].push_back(b);
  }
  size_t placed = 0;
  // The largest first, also among those that lost their slots.
  for (size_t most = kMaxInBucket; most > 0;) {
    if (waiting[most].empty()) {
      --most;
      continue;
    }
    const uint32_t bucket = waiting[most].back();
    waiting[most].pop_back();
    if (++placed > kMaxPlaced * kBucketsAPart || !PlaceOne(bucket, slots, pilots)) return false;
    for (size_t size = kMaxInBucket; size > most; --size) {
      if (!waiting[size].empty()) most = size;
    }
  }
  return true;
}

size_t PilotTable::SlotsFor(size_t hashes) {
  return static_cast<size_t>(static_cast<double>(hashes) / kLoad) + 1;
}

uint64_t PilotTable::MostBytesFor(size_t hashes) {
  // All parts have the number of slots that the average or the fullest one needs.
  const double most = std::max(kHashesAPart / kLoad, kMaxInPart / kMaxLoad);
  return PartsFor(hashes) * (kBucketsAPart + (static_cast<uint64_t>(most) + 1) * sizeof(uint32_t));
}

std::optional<PilotTable> PilotTable::Build(absl::Span<const uint64_t> hashes,
                                            absl::Span<const uint32_t> values, int threads) {
  PilotTable table;
  const size_t parts = PartsFor(hashes.size());
  table.pilots_ = AlignedBuffer<uint8_t>(parts * kBucketsAPart);
  std::fill(table.pilots_.begin(), table.pilots_.end(), uint8_t{0});

  const auto part_of = [&](uint64_t hash) { return table.Bucket(hash) / kBucketsAPart; };
  std::vector<size_t> begins(parts + 1);
  for (const uint64_t hash : hashes) ++begins[part_of(hash) + 1];
  const size_t most = *std::max_element(begins.begin(), begins.end());
  const double average = static_cast<double>(hashes.size()) / static_cast<double>(parts);
  if (static_cast<double>(most) > average + kDeviations * std::sqrt(average)) return std::nullopt;
  for (size_t p = 0; p < parts; ++p) begins[p + 1] += begins[p];
  AlignedBuffer<Entry> entries(hashes.size());
  {
    std::vector<size_t> next(begins.begin(), begins.end() - 1);
    for (size_t i = 0; i < hashes.size(); ++i) {
      entries[next[part_of(hashes[i])]++] = {hashes[i], values[i]};
    }
  }

  const double slots = std::max(average / kLoad, static_cast<double>(most) / kMaxLoad);
  table.part_slots_ = static_cast<uint32_t>(slots) + 1;
  table.slots_ = AlignedBuffer<uint32_t>(parts * table.part_slots_);
  std::atomic<bool> placed{true};
  ParallelFor(threads, parts, [&](size_t p) {
    if (!placed) return;
    const absl::Span<Entry> of_part = entries.span().subspan(begins[p], begins[p + 1] - begins[p]);
    uint8_t* const pilots = table.pilots_.data() + p * kBucketsAPart;
    uint32_t* const slots_of_part = table.slots_.data() + p * table.part_slots_;
    Part part(table, of_part);
    if (!part.Place(table.part_slots_, pilots)) {
      placed = false;
      return;
    }
    for (const Entry& entry : of_part) {
      const uint32_t bucket = table.Bucket(entry.hash) % kBucketsAPart;
      slots_of_part[SlotInPart(entry.hash, pilots[bucket], table.part_slots_)] = entry.value;
    }
    uint32_t nearby = of_part.empty() ? (values.empty() ? 0 : values[0]) : of_part[0].value;
    for (uint32_t slot = 0; slot < table.part_slots_; ++slot) {
      if (part.owners[slot] == kNoBucket) slots_of_part[slot] = nearby;
      nearby = slots_of_part[slot];
    }
  });
  if (!placed) return std::nullopt;
  return table;
}

}  // namespace cairn
