#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "index/machine/utf8.h"

namespace cairn {

// Reads a document like an XML parser. Returns the first fault, or nothing. Accepts what a page of
// the report may contain: elements, attributes in double quotes, character data, five entities.
class XmlCheck {
 public:
  explicit XmlCheck(std::string_view text) : all_(text), rest_(text) {}

  std::string Fault() {
    constexpr std::string_view kDoctype = "<!DOCTYPE html>";
    if (rest_.substr(0, kDoctype.size()) == kDoctype) rest_.remove_prefix(kDoctype.size());
    while (fault_.empty() && !rest_.empty()) rest_[0] == '<' ? Tag() : Character();
    if (fault_.empty() && !open_.empty()) Fail("'" + open_.back() + "' is not closed");
    if (fault_.empty() && roots_ != 1) Fail("there are " + std::to_string(roots_) + " roots");
    return fault_;
  }

 private:
  void Fail(const std::string& what) {
    if (!fault_.empty()) return;
    const size_t at = all_.size() - rest_.size();
    fault_ = what + " at " + std::to_string(at) + ": " + std::string(rest_.substr(0, 60));
  }

  void Character() {
    if (rest_[0] == '&') {
      for (const std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
        if (rest_.substr(0, entity.size()) == entity) return rest_.remove_prefix(entity.size());
      }
      return Fail("an unknown entity");
    }
    const size_t length = Utf8Length(rest_);
    const auto byte = static_cast<uint8_t>(rest_[0]);
    if (length == 0) return Fail("no UTF-8");
    if (byte < 0x20 && byte != '\n' && byte != '\t') return Fail("a control character");
    if (rest_.substr(0, 3) == "\xef\xbf\xbe" || rest_.substr(0, 3) == "\xef\xbf\xbf") {
      return Fail("no character of XML");
    }
    if (open_.empty() && !std::isspace(byte)) return Fail("text outside of all elements");
    rest_.remove_prefix(length);
  }

  std::string Name() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ':';
    });
    const std::string name(rest_.substr(0, static_cast<size_t>(end - rest_.begin())));
    if (name.empty()) Fail("a name is missing");
    rest_.remove_prefix(name.size());
    return name;
  }

  bool Take(std::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void Tag() {
    rest_.remove_prefix(1);
    if (Take("/")) {
      const std::string name = Name();
      if (open_.empty() || open_.back() != name) return Fail("'" + name + "' is not open");
      if (!Take(">")) return Fail("'>' is missing");
      return open_.pop_back();
    }
    const std::string name = Name();
    if (open_.empty()) ++roots_;
    open_.push_back(name);
    std::set<std::string> attributes;
    while (fault_.empty()) {
      if (Take("/>")) return open_.pop_back();
      if (Take(">")) return;
      if (!Take(" ")) return Fail("no blank before an attribute");
      const std::string attribute = Name();
      if (!attributes.insert(attribute).second) return Fail("'" + attribute + "' comes twice");
      if (!Take("=\"")) return Fail("'=\"' is missing");
      while (fault_.empty() && !rest_.empty() && rest_[0] != '"') {
        rest_[0] == '<' ? Fail("'<' in an attribute") : Character();
      }
      if (!Take("\"")) return Fail("an attribute does not end");
    }
  }

  const std::string_view all_;
  std::string_view rest_;
  std::string fault_;
  std::vector<std::string> open_;
  int roots_ = 0;
};

}  // namespace cairn
