#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn {

// Files and directories in memory, each as programs see it and as a power loss leaves it. The
// contents of a file survive after the file was synced, and the creation or removal of a name after
// its directory was synced. A random part of the other changes survives. Not thread-safe.
class SimulatedDisk {
 public:
  struct Change {
    uint64_t offset = 0;
    std::string bytes;
    bool truncates = false;  // at the offset
  };
  struct Node {
    bool is_directory = false;
    std::string bytes;             // of a file, as programs read it
    std::string synced;            // the contents that have survived so far
    std::vector<Change> unsynced;  // later changes
  };
  using NodePtr = std::shared_ptr<Node>;
  // The new meaning of a path: null if it no longer exists.
  using Binding = std::pair<std::string, NodePtr>;

  SimulatedDisk() { names_["/"] = durable_["/"] = MakeNode(/*is_directory=*/true); }

  SimulatedDisk Copy() const {
    SimulatedDisk copy;
    std::map<Node*, NodePtr> nodes;
    const auto copied = [&nodes](const NodePtr& node) {
      if (node == nullptr) return node;
      NodePtr& its_copy = nodes[node.get()];
      if (its_copy == nullptr) its_copy = std::make_shared<Node>(*node);
      return its_copy;
    };
    for (const auto& [path, node] : names_) copy.names_[path] = copied(node);
    for (const auto& [path, node] : durable_) copy.durable_[path] = copied(node);
    for (const std::vector<Binding>& bindings : unsynced_names_) {
      std::vector<Binding>& of_copy = copy.unsynced_names_.emplace_back();
      for (const auto& [path, node] : bindings) of_copy.emplace_back(path, copied(node));
    }
    return copy;
  }

  static NodePtr MakeNode(bool is_directory) {
    auto node = std::make_shared<Node>();
    node->is_directory = is_directory;
    return node;
  }
  static std::string ParentOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
  }

  // Null if there is no such path.
  NodePtr Find(const std::string& path) const {
    const auto found = names_.find(path);
    return found == names_.end() ? nullptr : found->second;
  }
  std::vector<std::string> Children(const std::string& directory) const {
    std::vector<std::string> children;
    const std::string prefix = directory == "/" ? "/" : directory + "/";
    for (auto i = names_.lower_bound(prefix); i != names_.end(); ++i) {
      if (i->first.compare(0, prefix.size(), prefix) != 0) break;
      const std::string name = i->first.substr(prefix.size());
      if (!name.empty() && name.find('/') == name.npos) children.push_back(name);
    }
    return children;
  }

  // Sets all names at once; they survive together.
  void Bind(std::vector<Binding> bindings) {
    Apply(bindings, &names_);
    unsynced_names_.push_back(std::move(bindings));
  }
  static void Write(Node* node, uint64_t offset, std::string_view bytes) {
    node->unsynced.push_back({offset, std::string(bytes), false});
    Apply(node->unsynced.back(), bytes.size(), &node->bytes);
  }
  static void Truncate(Node* node, uint64_t size) {
    node->unsynced.push_back({size, "", true});
    node->bytes.resize(size);
  }

  static void Sync(Node* node) {
    for (const Change& change : node->unsynced) Apply(change, change.bytes.size(), &node->synced);
    node->unsynced.clear();
  }
  void SyncDirectory(const std::string& path) {
    std::vector<std::vector<Binding>> left;
    for (std::vector<Binding>& bindings : unsynced_names_) {
      if (!IsAbout(bindings, path)) {
        left.push_back(std::move(bindings));
        continue;
      }
      Apply(bindings, &durable_);
      for (const Binding& binding : bindings) Supersede(binding, &left);
    }
    unsynced_names_ = std::move(left);
  }
  // The effect of a failed sync: treated as synced, although nothing survives.
  static void Forget(Node* node) { node->unsynced.clear(); }

  void SyncAll() {
    durable_ = names_;
    unsynced_names_.clear();
    for (const auto& [path, node] : names_) Sync(node.get());
  }

  // Reduces the contents to those that survive. Names in `ordered_directory` survive in order.
  void LosePower(const std::string& ordered_directory, std::mt19937_64* random) {
    // Most file systems log names in order; some keep any subset, but RocksDB relies on the order.
    const bool in_order = (*random)() % 4 == 0;
    const size_t kept = (*random)() % (unsynced_names_.size() + 1);
    const uint64_t odds = 1 + (*random)() % 3;  // out of 4
    for (size_t i = 0; i < unsynced_names_.size(); ++i) {
      const bool ordered = in_order || IsAbout(unsynced_names_[i], ordered_directory);
      if (ordered ? i < kept : (*random)() % 4 < odds) Apply(unsynced_names_[i], &durable_);
    }
    unsynced_names_.clear();
    names_.clear();
    for (const auto& [path, node] : durable_) {
      const NodePtr parent = Find(ParentOf(path));
      if (path == "/" || (parent != nullptr && parent->is_directory)) names_[path] = node;
    }
    durable_ = names_;
    std::set<Node*> nodes;
    for (const auto& [path, node] : names_) {
      if (nodes.insert(node.get()).second && !node->is_directory) Survive(node.get(), random);
    }
  }

 private:
  using Names = std::map<std::string, NodePtr>;
  static constexpr uint64_t kPageBytes = 4096;

  static bool IsAbout(const std::vector<Binding>& bindings, const std::string& directory) {
    return std::any_of(bindings.begin(), bindings.end(),
                       [&](const Binding& b) { return ParentOf(b.first) == directory; });
  }
  static bool IsWithin(const std::string& path, const std::string& directory) {
    return path.size() > directory.size() && path.compare(0, directory.size(), directory) == 0 &&
           path[directory.size()] == '/';
  }
  static void Apply(const std::vector<Binding>& bindings, Names* names) {
    for (const auto& [path, node] : bindings) {
      if (node != nullptr) {
        (*names)[path] = node;
        continue;
      }
      names->erase(path);
      for (auto i = names->lower_bound(path + "/");
           i != names->end() && IsWithin(i->first, path);) {
        i = names->erase(i);
      }
    }
  }
  // Changes before `binding`, which has survived, have no effect any more.
  static void Supersede(const Binding& binding, std::vector<std::vector<Binding>>* before) {
    for (std::vector<Binding>& bindings : *before) {
      bindings.erase(
          std::remove_if(bindings.begin(), bindings.end(),
                         [&](const Binding& b) {
                           return b.first == binding.first ||
                                  (binding.second == nullptr && IsWithin(b.first, binding.first));
                         }),
          bindings.end());
    }
  }

  static void Apply(const Change& change, size_t count, std::string* bytes) {
    if (change.truncates) {
      bytes->resize(change.offset);
      return;
    }
    if (bytes->size() < change.offset + count) bytes->resize(change.offset + count);
    bytes->replace(change.offset, count, change.bytes, 0, count);
  }

  static void Survive(Node* node, std::mt19937_64* random) {
    std::string survived = node->synced;
    switch ((*random)() % 4) {
      case 0:  // only synced data
        break;
      case 1:  // everything
        survived = node->bytes;
        break;
      case 2: {  // the first writes
        const size_t whole = node->unsynced.empty() ? 0 : (*random)() % node->unsynced.size();
        for (size_t i = 0; i < whole; ++i) {
          Apply(node->unsynced[i], node->unsynced[i].bytes.size(), &survived);
        }
        if (whole < node->unsynced.size()) {
          const Change& torn = node->unsynced[whole];
          Apply(torn, torn.truncates ? 0 : (*random)() % (torn.bytes.size() + 1), &survived);
        }
        break;
      }
      case 3:  // any pages
        if (node->unsynced.empty()) break;
        survived.resize(node->bytes.size());
        for (size_t page = 0; page < survived.size(); page += kPageBytes) {
          if ((*random)() % 2 == 0) continue;
          survived.replace(page, kPageBytes, node->bytes, page, kPageBytes);
        }
        break;
    }
    node->bytes = node->synced = survived;
    node->unsynced.clear();
  }

  Names names_;    // all current names
  Names durable_;  // names that have survived so far
  // Later changes, in order: each element survives as a whole or not at all.
  std::vector<std::vector<Binding>> unsynced_names_;
};

}  // namespace cairn
