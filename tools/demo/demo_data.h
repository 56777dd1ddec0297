#pragma once

#include <cstdint>
#include <string>

namespace cairn::tools {

// The rows of the demo database: customers and their orders, delimited as in TPC-H, and customers'
// profiles as JSON. A row depends only on the seed and its number.
class DemoData {
 public:
  explicit DemoData(uint64_t seed) : seed_(seed) {}

  // Primary keys: ten digits for a customer and its profile, twelve for an order. They are in the
  // order of the numbers, which start at 1.
  static std::string CustomerKey(uint64_t number);
  static std::string OrderKey(uint64_t number);

  // key|name|address|nation|phone|balance|segment|comment. A version above 0 is a later version of
  // the customer, with a new address and phone.
  std::string Customer(uint64_t number, uint64_t version = 0) const;
  // key|customer|status|total|date|priority|clerk|comment
  std::string Order(uint64_t number, uint64_t customers) const;
  // {"name":…,"age":…,"address":{"city":…,"country":…,"zip":…},"tags":[…],"score":…}; one in twenty
  // has no address, one in ten no tags.
  std::string Profile(uint64_t number) const;

 private:
  const uint64_t seed_;
};

}  // namespace cairn::tools
