#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <charconv>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "test/require_ok.h"
#include "test/test_random.h"
#include "test/tools/run_tool.h"

namespace cairn {

// An entry in a full scan; `order` compares like the keys.
struct Entry {
  std::string order;
  std::string primary_key;
  std::string key;   // as tsv shows it
  std::string json;  // as json shows it
  std::string value;
};

inline std::string BigEndian(uint64_t number) {
  std::string bytes(8, '\0');
  for (size_t i = 8; i-- > 0; number >>= 8) bytes[i] = static_cast<char>(number);
  return bytes;
}

// A double as 8 bytes in numerical order.
inline std::string Ordered(double number) {
  uint64_t bits;
  static_assert(sizeof bits == sizeof number);
  std::memcpy(&bits, &number, sizeof bits);
  return BigEndian(bits >> 63 != 0 ? ~bits : bits | uint64_t{1} << 63);
}

inline std::string Shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

using Entries = std::vector<Entry>;

inline Entries Sorted(Entries entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.order, a.primary_key) < std::tie(b.order, b.primary_key);
  });
  return entries;
}

inline Entries Where(const Entries& entries, const std::function<bool(const Entry&)>& wanted) {
  Entries result;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(result), wanted);
  return result;
}

inline std::string Tsv(const Entries& entries, bool with_values) {
  std::string text;
  for (const Entry& entry : entries) {
    text += entry.key + "\t" + Escaped(entry.primary_key);
    if (with_values) text += "\t" + Escaped(entry.value);
    text += "\n";
  }
  return text;
}

// A demo database with three indexes over its customers, and the expected entries from a scan.
struct Demo {
  explicit Demo(const std::string& rows) {
    MustRun({"demo", db(), "--rows=" + rows, "--seed=" + std::to_string(TestSeed() % 1000)});
    MustRun({"build", "--db=" + db(), "--cf=customer", "--out=" + directory / "indexes",
             "--spec=phone=value.field('|',4):text", "--spec=nation=value.field('|',3):u8",
             "--spec=nation_balance=value.field('|',3):u8,value.field('|',5):f64"});
    for (const auto& [primary_key, value] : ReadRows(db(), "customer")) {
      const std::string phone_text = Field(value, 4);
      phone.push_back({phone_text, primary_key, phone_text, '"' + phone_text + '"', value});
      const std::string nation_text = Field(value, 3);
      const std::string nation_order = BigEndian(std::stoull(nation_text));
      nation.push_back({nation_order, primary_key, nation_text, nation_text, value});
      const double number = std::stod(Field(value, 5));
      const std::string both = nation_text + "," + Shortest(number);
      // A float in JSON must not look like an integer.
      const bool is_whole = both.find_first_of(".e") == std::string::npos;
      balance.push_back({nation_order + Ordered(number), primary_key, both,
                         "[" + both + (is_whole ? ".0]" : "]"), value});
    }
    phone = Sorted(std::move(phone));
    nation = Sorted(std::move(nation));
    balance = Sorted(std::move(balance));
  }

  std::string db() const { return directory / "db"; }
  std::string index(const std::string& name) const { return directory / "indexes/" + name; }
  ToolResult Query(const std::string& name, std::vector<std::string> more) const {
    more.insert(more.begin(), {"query", index(name)});
    return MustRun(more);
  }

  TemporaryDirectory directory;
  Entries phone, nation, balance;
};

// Compares long texts without printing them.
inline void CheckEqual(const std::string& found, const std::string& expected) {
  const auto [a, b] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  BOOST_TEST((a == found.end() && b == expected.end()),
             "differ at byte " << a - found.begin() << ": found '"
                               << found.substr(static_cast<size_t>(a - found.begin()), 80)
                               << "', expected '"
                               << expected.substr(static_cast<size_t>(b - expected.begin()), 80)
                               << "'");
}

}  // namespace cairn
