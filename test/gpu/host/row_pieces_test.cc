#include "gpu/host/row_pieces.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "test/test_random.h"

// Needs no device.
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(row_pieces_test)
namespace {

// Cuts ranges into pieces, and puts together the positions that they name.
void CheckPieces(size_t ranges, uint64_t longest, uint64_t limit, Order order,
                 const PieceLayout& layout) {
  auto random = TestRandom(ranges + longest + layout.rows);
  std::vector<Position> begin(ranges), end(ranges);
  std::vector<uint64_t> offsets = {0};
  std::vector<Position> expected;
  for (size_t i = 0; i < ranges; ++i) {
    const uint64_t size = random() % 3 == 0 ? 0 : random() % (longest + 1);
    begin[i] = static_cast<Position>(random() % 1000000);
    end[i] = static_cast<Position>(begin[i] + size);
    const uint64_t rows = std::min(size, limit);
    for (uint64_t k = 0; k < rows; ++k) {
      expected.push_back(
          static_cast<Position>(order == Order::kAscending ? begin[i] + k : end[i] - 1 - k));
    }
    offsets.push_back(offsets.back() + rows);
  }
  const RangesOfBatch batch{begin, end, offsets, order};
  RowPieces pieces(batch, layout);
  std::vector<uint64_t> memory(layout.bytes() / sizeof(uint64_t) + 1);
  char* const block = reinterpret_cast<char*>(memory.data());
  std::vector<Position> found;
  for (auto piece = pieces.Next(block); piece.rows > 0; piece = pieces.Next(block)) {
    BOOST_REQUIRE(piece.first == found.size());
    BOOST_REQUIRE(piece.ranges <= layout.ranges && piece.rows <= layout.rows);
    const uint64_t* const at = layout.offsets(block);
    BOOST_REQUIRE(at[0] == 0 && at[piece.ranges] == piece.rows);
    for (size_t i = 0; i < piece.ranges; ++i) {
      const uint64_t rows = at[i + 1] - at[i];
      BOOST_REQUIRE(rows > 0);
      for (uint64_t k = 0; k < rows; ++k) {
        const uint64_t step = order == Order::kAscending ? k : rows - 1 - k;
        found.push_back(static_cast<Position>(layout.begin(block)[i] + step));
      }
    }
  }
  BOOST_TEST((found == expected), found.size() << " rows of " << expected.size());
  BOOST_TEST(pieces.Next(block).rows == 0u);
}

BOOST_AUTO_TEST_CASE(pieces_hold_all_rows_in_order_and_nothing_else) {
  for (Order order : {Order::kAscending, Order::kDescending}) {
    for (uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{7}, UINT64_MAX}) {
      for (uint64_t longest : {0, 1, 5, 300}) {
        for (size_t ranges : {0, 1, 100}) {
          for (PieceLayout layout : {PieceLayout{1, 1}, PieceLayout{1, 1000}, PieceLayout{1000, 1},
                                     PieceLayout{10, 33}, PieceLayout{1000, 100000}}) {
            CheckPieces(ranges, longest, limit, order, layout);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_block_do_not_overlap) {
  for (size_t ranges : {1, 2, 31, 1000}) {
    const PieceLayout layout{ranges, 77};
    BOOST_TEST(layout.begin_at() >= (ranges + 1) * sizeof(uint64_t));
    BOOST_TEST(layout.rows_at() >= layout.begin_at() + ranges * sizeof(Position));
    BOOST_TEST(layout.rows_at() % 256 == 0u);
    BOOST_TEST(layout.bytes() == layout.rows_at() + 77 * sizeof(RowId));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
