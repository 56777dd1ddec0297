#include "cpu_fast/strings/partial_key_builder.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(partial_key_builder_test)
namespace {

// Keys of 16 bytes, in one heap.
struct Heap {
  std::string bytes;
  std::vector<uint32_t> offsets = {0};

  explicit Heap(size_t keys) {
    for (size_t i = 0; i < keys; ++i) {
      bytes += absl::StrFormat("%016d", i * 7);
      offsets.push_back(static_cast<uint32_t>(bytes.size()));
    }
  }
  BytesColumn column() const { return {bytes.data(), absl::MakeConstSpan(offsets)}; }
};

// For any keys, every element of the root leads to a node, and every node to later nodes or to
// entries of the column.
void CheckLinks(const PartialKeyNodes& tree, size_t keys) {
  const size_t nodes = tree.nodes.size();
  for (size_t i = 0; i < tree.root.size(); ++i) BOOST_REQUIRE(tree.root[i] < nodes);
  for (size_t i = 0; i < nodes; ++i) {
    const PartialKeyNode& node = tree.nodes[i];
    if (node.is_leaf()) {
      BOOST_REQUIRE(size_t{node.base} + node.entries <= keys);
    } else {
      BOOST_REQUIRE(node.base > i && node.Next(63) < nodes);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_in_a_key_ends_in_a_tree) {
  Heap heap(20000);
  CheckLinks(BuildPartialKeyNodes(heap.column(), 2), 20000);
  heap.bytes[16 * 9000] ^= 0x40;
  CheckLinks(BuildPartialKeyNodes(heap.column(), 2), 20000);
}

BOOST_AUTO_TEST_CASE(keys_in_any_order_end_in_a_tree) {
  auto random = TestRandom();
  for (const size_t keys : {2, 45, 500, 1801, 30000}) {
    for (const size_t damaged : {size_t{1}, size_t{7}, keys}) {
      Heap heap(keys);
      for (size_t i = 0; i < damaged; ++i) {
        heap.bytes[random() % heap.bytes.size()] = static_cast<char>(random());
      }
      CheckLinks(BuildPartialKeyNodes(heap.column(), 2), keys);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
