// What is due when: one entry per (kind, key), taken out in the order of time, then kind, then key.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/time.h"

namespace tocsin::routing {

/// Order matters where times are equal: an expiry at T is seen by the flush at T.
enum class Due {
  expire_issue,
  lose_run,
  end_ack,
  flush_group,
  forget_group,
  forget_issue,
  forget_run
};
inline constexpr std::size_t kDues = 7;

/// A heap whose entries know their place in it: nothing is searched, and a time that moves costs
/// neither memory nor a copy of its key.
class Agenda {
 public:
  struct Entry {
    core::WallTime at;
    Due kind;
    std::string key;
  };

  /// Replaces the entry of (kind, key).
  void set(Due kind, const std::string& key, core::WallTime at) {
    const auto [found, fresh] = of(kind).try_emplace(key);
    Item& item = found->second;
    if (fresh) {
      item = {at, kind, &found->first, heap_.size()};
      heap_.push_back(&item);
      rise(item.index);
    } else if (item.at != at) {
      item.at = at;
      rise(item.index);
      sink(item.index);
    }
  }
  void cancel(Due kind, const std::string& key) {
    const auto found = of(kind).find(key);
    if (found != of(kind).end()) remove(found->second);
  }
  [[nodiscard]] std::optional<core::WallTime> next() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front()->at;
  }
  /// Takes out the first entry due at or before `now`.
  std::optional<Entry> pop(core::WallTime now) {
    if (heap_.empty() || heap_.front()->at > now) return std::nullopt;
    const Item& first = *heap_.front();
    Entry out{first.at, first.kind, *first.key};
    remove(first);
    return out;
  }

 private:
  struct Item {
    core::WallTime at{};
    Due kind{};
    const std::string* key = nullptr;  // of the map's entry
    std::size_t index = 0;             // in heap_
  };
  using Items = std::unordered_map<std::string, Item>;

  Items& of(Due kind) { return items_[static_cast<std::size_t>(kind)]; }
  static bool before(const Item& a, const Item& b) {
    return std::tie(a.at, a.kind, *a.key) < std::tie(b.at, b.kind, *b.key);
  }
  void put(std::size_t index, Item* item) {
    heap_[index] = item;
    item->index = index;
  }
  void rise(std::size_t index) {
    Item* const item = heap_[index];
    for (; index > 0 && before(*item, *heap_[(index - 1) / 2]); index = (index - 1) / 2) {
      put(index, heap_[(index - 1) / 2]);
    }
    put(index, item);
  }
  void sink(std::size_t index) {
    Item* const item = heap_[index];
    for (;;) {
      std::size_t child = 2 * index + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
      if (!before(*heap_[child], *item)) break;
      put(index, heap_[child]);
      index = child;
    }
    put(index, item);
  }
  void remove(const Item& item) {
    const std::size_t index = item.index;
    Item* const last = heap_.back();
    heap_.pop_back();
    if (last != &item) {
      put(index, last);
      rise(index);
      sink(last->index);
    }
    Items& items = of(item.kind);
    items.erase(items.find(*item.key));
  }

  std::array<Items, kDues> items_;
  std::vector<Item*> heap_;
};

}  // namespace tocsin::routing
