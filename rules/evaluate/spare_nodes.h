// Entries of a map that come and go, one in for one out: what leaves is kept for what comes, so that
// nothing is allocated.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace tocsin::rules {

/// Keeps so many entries at most.
template <typename Map, std::size_t kMost = 16>
class SpareNodes {
 public:
  /// The value of `key`; an empty one where there was none.
  typename Map::mapped_type& at(Map& map, const typename Map::key_type& key) {
    const auto [value, fresh] = reused(map, key);
    if (fresh) *value = {};
    return *value;
  }
  /// The same, and whether there was none: the value is then what whoever left last held, with its
  /// memory, and the caller writes all of it.
  std::pair<typename Map::mapped_type*, bool> reused(Map& map, const typename Map::key_type& key) {
    const auto where = map.lower_bound(key);
    if (where != map.end() && !map.key_comp()(key, where->first)) return {&where->second, false};
    if (spares_.empty()) return {&map.try_emplace(where, key)->second, true};
    typename Map::node_type node = std::move(spares_.back());
    spares_.pop_back();
    node.key() = key;
    return {&map.insert(where, std::move(node))->second, true};
  }
  /// Takes an entry out, and with it its key and value.
  std::pair<typename Map::key_type, typename Map::mapped_type> take(Map& map,
                                                                    typename Map::iterator at) {
    std::pair<typename Map::key_type, typename Map::mapped_type> out(at->first,
                                                                     std::move(at->second));
    erase(map, at);
    return out;
  }
  /// The entry behind it.
  typename Map::iterator erase(Map& map, typename Map::iterator at) {
    const auto next = std::next(at);
    if (spares_.size() == kMost) {
      map.erase(at);
    } else {
      spares_.push_back(map.extract(at));
    }
    return next;
  }

 private:
  std::vector<typename Map::node_type> spares_;
};

}  // namespace tocsin::rules
