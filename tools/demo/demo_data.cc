#include "tools/demo/demo_data.h"

#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "index/machine/splitmix.h"

namespace cairn::tools {
namespace {

// The tables' salts, so that rows with the same number differ.
enum TableSeed : uint64_t { kCustomer = 1, kOrder = 2, kProfile = 3 };

// Random numbers of one row, by splitmix64.
class RowRandom {
 public:
  RowRandom(uint64_t seed, uint64_t table, uint64_t row)
      : state_(MixBits(seed + MixBits(row * 0x9E3779B97F4A7C15ull + table))) {}

  uint64_t Next() { return NextRandom(&state_); }
  // Uniform in [0, n), for small n.
  uint64_t Below(uint64_t n) { return (Next() >> 32) * n >> 32; }
  template <size_t kSize>
  std::string_view Any(const std::string_view (&choices)[kSize]) {
    return choices[Below(kSize)];
  }

 private:
  uint64_t state_;
};

constexpr std::string_view kWords[] = {
    "final",       "pending",     "express",   "regular",   "ironic",   "bold",      "quiet",
    "silent",      "deposits",    "requests",  "accounts",  "packages", "ideas",     "platelets",
    "theodolites", "pinto beans", "sleep",     "haggle",    "nag",      "wake",      "cajole",
    "boost",       "detect",      "integrate", "carefully", "quickly",  "furiously", "slyly",
    "blithely",    "above the",   "among the", "along the"};
constexpr std::string_view kSegments[] = {"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD",
                                          "MACHINERY"};
constexpr std::string_view kPriorities[] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED",
                                            "5-LOW"};
constexpr std::string_view kFirstNames[] = {"Ana",   "Bo",   "Chidi", "Dilnoza", "Eva",  "Farid",
                                            "Gül",   "Hana", "Igor",  "João",    "Kofi", "Lin",
                                            "María", "Nina", "Omar",  "Priya",   "Qi",   "Rosa",
                                            "Søren", "Tala", "Uwe",   "Vera",    "Wei",  "Zoë"};
constexpr std::string_view kLastNames[] = {"Almeida", "Berg",  "Chen",   "Diallo",   "Eriksen",
                                           "Fischer", "Gupta", "Haddad", "Ivanova",  "Jansen",
                                           "Kim",     "López", "Mensah", "Nakamura", "Okafor",
                                           "Pereira", "Rossi", "Silva",  "Tanaka",   "Öztürk"};
constexpr std::string_view kTags[] = {"vip", "newsletter", "trial", "wholesale", "loyal"};

struct City {
  std::string_view name, country;
};
constexpr City kCities[] = {
    {"Lisbon", "PT"},      {"Porto", "PT"},    {"Oslo", "NO"},    {"Bergen", "NO"},
    {"Accra", "GH"},       {"Kumasi", "GH"},   {"Lagos", "NG"},   {"Nairobi", "KE"},
    {"Cairo", "EG"},       {"Istanbul", "TR"}, {"Ankara", "TR"},  {"Berlin", "DE"},
    {"Hamburg", "DE"},     {"München", "DE"},  {"Paris", "FR"},   {"Lyon", "FR"},
    {"Madrid", "ES"},      {"Sevilla", "ES"},  {"Rome", "IT"},    {"Milan", "IT"},
    {"Tokyo", "JP"},       {"Osaka", "JP"},    {"Seoul", "KR"},   {"Busan", "KR"},
    {"Shanghai", "CN"},    {"Chengdu", "CN"},  {"Mumbai", "IN"},  {"Delhi", "IN"},
    {"Lahore", "PK"},      {"Hanoi", "VN"},    {"Jakarta", "ID"}, {"Sydney", "AU"},
    {"São Paulo", "BR"},   {"Recife", "BR"},   {"Lima", "PE"},    {"Bogotá", "CO"},
    {"Mexico City", "MX"}, {"New York", "US"}, {"Chicago", "US"}, {"Toronto", "CA"}};

// printf to the end of a string.
template <typename... Arguments>
void Append(std::string* text, const char* format, Arguments... arguments) {
  char buffer[128];
  const int length = std::snprintf(buffer, sizeof buffer, format, arguments...);
  text->append(buffer, static_cast<size_t>(length));
}

void AppendWords(RowRandom* random, uint64_t words, std::string* text) {
  for (uint64_t i = 0; i < words; ++i) {
    if (i != 0) text->push_back(' ');
    text->append(random->Any(kWords));
  }
}

void AppendLetters(RowRandom* random, uint64_t letters, std::string* text) {
  static constexpr char kLetters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789,. ";
  for (uint64_t i = 0; i < letters; ++i) text->push_back(kLetters[random->Below(65)]);
}

// An amount in hundredths.
void AppendAmount(int64_t hundredths, std::string* text) {
  const int64_t positive = hundredths < 0 ? -hundredths : hundredths;
  Append(text, "%s%" PRId64 ".%02" PRId64, hundredths < 0 ? "-" : "", positive / 100,
         positive % 100);
}

}  // namespace

std::string DemoData::CustomerKey(uint64_t number) {
  std::string key;
  Append(&key, "%010" PRIu64, number);
  return key;
}

std::string DemoData::OrderKey(uint64_t number) {
  std::string key;
  Append(&key, "%012" PRIu64, number);
  return key;
}

std::string DemoData::Customer(uint64_t number, uint64_t version) const {
  RowRandom random(seed_ + version, kCustomer, number);
  std::string value;
  Append(&value, "%" PRIu64 "|Customer#%09" PRIu64 "|", number, number);
  AppendLetters(&random, 10 + random.Below(20), &value);
  const uint64_t nation = random.Below(25);
  Append(&value, "|%" PRIu64 "|%02" PRIu64 "-%03" PRIu64 "-%03" PRIu64 "-%04" PRIu64 "|", nation,
         nation + 10, 100 + random.Below(900), 100 + random.Below(900), 1000 + random.Below(9000));
  AppendAmount(static_cast<int64_t>(random.Below(1099999)) - 99999, &value);
  value.push_back('|');
  value.append(random.Any(kSegments));
  value.push_back('|');
  AppendWords(&random, 3 + random.Below(6), &value);
  return value;
}

std::string DemoData::Order(uint64_t number, uint64_t customers) const {
  RowRandom random(seed_, kOrder, number);
  std::string value;
  // As in TPC-H, a third of the customers never order.
  const uint64_t customer =
      customers < 3 ? 1 : 1 + random.Below(customers / 3) * 3 + random.Below(2);
  Append(&value, "%" PRIu64 "|%" PRIu64 "|%c|", number, customer, "OFP"[random.Below(3)]);
  AppendAmount(static_cast<int64_t>(100000 + random.Below(50000000)), &value);
  Append(&value, "|%04" PRIu64 "-%02" PRIu64 "-%02" PRIu64 "|", 1992 + random.Below(7),
         1 + random.Below(12), 1 + random.Below(28));
  value.append(random.Any(kPriorities));
  Append(&value, "|Clerk#%09" PRIu64 "|", 1 + random.Below(1000));
  AppendWords(&random, 2 + random.Below(5), &value);
  return value;
}

std::string DemoData::Profile(uint64_t number) const {
  RowRandom random(seed_, kProfile, number);
  std::string value = "{\"name\":\"";
  value.append(random.Any(kFirstNames)).append(1, ' ').append(random.Any(kLastNames));
  Append(&value, "\",\"age\":%" PRIu64, 18 + random.Below(70));
  if (random.Below(20) != 0) {
    // The first cities are the largest.
    const City& city = kCities[random.Below(1 + random.Below(40))];
    value.append(",\"address\":{\"city\":\"").append(city.name);
    value.append("\",\"country\":\"").append(city.country);
    Append(&value, "\",\"zip\":\"%05" PRIu64 "\"}", random.Below(100000));
  }
  if (random.Below(10) != 0) {
    value.append(",\"tags\":[");
    const uint64_t first = random.Below(5);
    const uint64_t tags = random.Below(4);
    for (uint64_t i = 0; i < tags; ++i) {
      if (i != 0) value.push_back(',');
      value.append(1, '"').append(kTags[(first + i) % 5]).append(1, '"');
    }
    value.push_back(']');
  }
  Append(&value, ",\"score\":0.%03" PRIu64 "}", random.Below(1000));
  return value;
}

}  // namespace cairn::tools
