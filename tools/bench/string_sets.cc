#include "tools/bench/string_sets.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cstdint>

#include "tools/bench/data.h"

namespace cairn::bench {
namespace {

constexpr size_t kMaxHard = size_t{1} << 20;

const char* const kDomains[] = {".com", ".org", ".net", ".de", ".io", ".co.uk"};

std::string Word(Random* random, size_t shortest, size_t longest) {
  std::string word(shortest + random->Below(longest - shortest + 1), ' ');
  for (char& c : word) c = static_cast<char>('a' + random->Below(26));
  return word;
}

std::string Digits(Random* random, size_t count) {
  std::string digits(count, ' ');
  for (char& c : digits) c = static_cast<char>('0' + random->Below(10));
  return digits;
}

// A number of `count` digits that does not start with 0.
std::string Number(Random* random, size_t count) {
  return static_cast<char>('1' + random->Below(9)) + Digits(random, count - 1);
}

// Makes keys of one data set, one after the other.
class KeyMaker {
 public:
  KeyMaker(std::string_view set, size_t n) : set_(set) {
    for (size_t i = 0; i < n / 100 + 1; ++i) {
      hosts_.push_back(Word(&random_, 4, 14) + kDomains[random_.Below(std::size(kDomains))]);
    }
    for (size_t i = 0; i < 2000; ++i) words_.push_back(Word(&random_, 3, 10));
  }

  std::string Key(size_t i) {
    if (set_ == "dig16") return Digits(&random_, 16);
    if (set_ == "d64") return Digits(&random_, 64);
    if (set_ == "d128") return Digits(&random_, 128);
    if (set_ == "phone") return Phone();
    if (set_ == "email") return Email();
    if (set_ == "url") return Url();
    if (set_ == "prefix100") return std::string(100, 'p') + Word(&random_, 12, 12);
    if (set_ == "prefix1k") return std::string(1000, 'p') + Bytes(3);
    if (set_ == "equal") return "the one key there is";
    if (set_ == "chains") return std::to_string(10000 + i / 200) + std::string(i % 200, 'x');
    if (set_ == "sparse") return Sparse();
    if (set_ == "bytes16") return Bytes(16);
    if (set_ == "composite") {
      return BigEndian(random_.Below(1 << 20)) + BigEndian(random_.Below(uint64_t{1} << 40));
    }
    if (set_ == "uuid") return Uuid();
    if (set_ == "syllables") return Syllables();
    if (i % 30 == 0) repeated_ = Digits(&random_, 16);
    return repeated_;
  }

 private:
  std::string Phone() {
    return std::to_string(10 + random_.Below(25)) + "-" + Number(&random_, 3) + "-" +
           Number(&random_, 3) + "-" + Number(&random_, 4);
  }
  // The product of two uniform numbers favors the first hosts.
  const std::string& Host() { return hosts_[random_.Below(random_.Below(hosts_.size()) + 1)]; }
  const std::string& AnyWord() { return words_[random_.Below(words_.size())]; }
  std::string Email() {
    std::string key = AnyWord() + "." + AnyWord();
    if (random_.Below(2) == 0) key += Number(&random_, 1 + random_.Below(4));
    return key + "@" + Host();
  }
  std::string Url() {
    std::string key = random_.Below(2) == 0 ? "https://www." : "https://";
    key += Host();
    for (int k = 0; k < 2; ++k) key += "/" + AnyWord();
    return key + "/" + Digits(&random_, 1 + random_.Below(8));
  }
  std::string Bytes(size_t count) {
    std::string bytes(count, '\0');
    uint64_t drawn = 0;
    for (size_t i = 0; i < count; ++i, drawn >>= 8) {
      if (i % sizeof(drawn) == 0) drawn = random_();
      bytes[i] = static_cast<char>(drawn);
    }
    return bytes;
  }
  static std::string BigEndian(uint64_t number) {
    std::string bytes(sizeof(number), '\0');
    for (size_t i = bytes.size(); i-- > 0; number >>= 8) bytes[i] = static_cast<char>(number);
    return bytes;
  }
  std::string Uuid() {
    std::string uuid(36, '-');
    for (size_t i = 0; i < uuid.size(); ++i) {
      if (i != 8 && i != 13 && i != 18 && i != 23) uuid[i] = "0123456789abcdef"[random_.Below(16)];
    }
    return uuid;
  }
  // As TPC-C's C_LAST.
  std::string Syllables() {
    static constexpr const char* kSyllables[] = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                                 "ESE", "ANTI",  "CALLY", "ATION", "EING"};
    std::string name;
    for (size_t left = 2 + random_.Below(4); left > 0; --left)
      name += kSyllables[random_.Below(10)];
    return name + Digits(&random_, 1 + random_.Below(3));
  }
  std::string Sparse() {
    std::string key(200, 'a');
    for (int k = 0; k < 3; ++k) key[random_.Below(key.size())] = 'b';
    return key;
  }

  const std::string_view set_;
  Random random_{kSeed};
  std::vector<std::string> hosts_, words_;
  std::string repeated_;
};

bool IsHard(std::string_view set) {
  return std::find(std::begin(kHardStringSets), std::end(kHardStringSets), set) !=
         std::end(kHardStringSets);
}

Strings MakeStrings(std::string_view set, size_t n) {
  if (IsHard(set)) n = std::min(n, set == "prefix1k" ? kMaxHard / 16 : kMaxHard);
  const bool repeats = set == "equal" || set == "repeated";
  const size_t surplus = repeats ? 0 : n / 1000 + 10;  // some are equal by chance
  KeyMaker maker(set, n);
  Strings strings;
  std::vector<uint64_t> ends;
  for (size_t i = 0; i < n + surplus; ++i) {
    strings.heap += maker.Key(i);
    ends.push_back(strings.heap.size());
  }
  uint64_t begin = 0;
  for (uint64_t end : ends) {
    strings.keys.emplace_back(strings.heap.data() + begin, end - begin);
    begin = end;
  }
  tbb::parallel_sort(strings.keys.begin(), strings.keys.end());
  if (!repeats) {
    strings.keys.erase(std::unique(strings.keys.begin(), strings.keys.end()), strings.keys.end());
  }
  strings.keys.resize(std::min(n, strings.keys.size()));
  return strings;
}

}  // namespace

const Strings& StringSet(std::string_view name, size_t n) {
  static std::string made;
  static Strings strings;
  const std::string wanted = std::string(name) + "/" + std::to_string(n);
  if (made != wanted) {
    strings = Strings();
    strings = MakeStrings(name, n);
    made = wanted;
  }
  return strings;
}

}  // namespace cairn::bench
