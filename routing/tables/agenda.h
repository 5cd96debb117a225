// What is due when: one entry per (kind, key), taken out in the order of time, then kind, then key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/time.h"
#include "routing/tables/short_key.h"

namespace tocsin::routing {

/// Order matters where times are equal: an expiry at T is seen by the flush at T.
enum class Due : std::uint8_t {
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
  void set(Due kind, std::string_view key, core::WallTime at) {
    Items& items = of(kind);
    auto found = items.find(key);
    if (found == items.end()) {
      found = items.emplace(key, Item()).first;
      Item& item = found->second;
      item = {at, &found->first, static_cast<std::uint32_t>(heap_.size()), kind};
      heap_.push_back(&item);
      rise(item.index);
    } else if (Item& item = found->second; item.at != at) {
      item.at = at;
      rise(item.index);
      sink(item.index);
    }
  }
  void cancel(Due kind, std::string_view key) {
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
    Entry out{first.at, first.kind, first.key->text()};
    remove(first);
    return out;
  }

 private:
  struct Item {
    core::WallTime at{};
    const ShortKey* key = nullptr;  // of the map's entry
    std::uint32_t index = 0;        // in heap_
    Due kind{};
  };
  using Items = std::unordered_map<ShortKey, Item, KeyHash, std::equal_to<>>;

  Items& of(Due kind) { return items_[static_cast<std::size_t>(kind)]; }
  static bool before(const Item& a, const Item& b) {
    return std::tie(a.at, a.kind, *a.key) < std::tie(b.at, b.kind, *b.key);
  }
  void put(std::size_t index, Item* item) {
    heap_[index] = item;
    item->index = static_cast<std::uint32_t>(index);
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
