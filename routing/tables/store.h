// The router's state: tables of entities. A table knows its entities by key, which of them have
// changed since the last take(), and how one becomes a record `<kind>/<key>` of the changelog.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result.h"
#include "routing/routing.h"
#include "routing/tables/short_key.h"

namespace tocsin::routing {

/// Entities of one kind by key; an entity stays where it is until it is erased. Entity has
/// `std::string encode(const Entity&)` and `core::Status decode(std::string_view, Entity&)`.
template <typename Entity>
class Table {
 public:
  /// `kind` is the part of a record's key before the slash, a literal.
  explicit Table(std::string_view kind) : kind_(kind) {}

  /// null: there is none.
  [[nodiscard]] Entity* find(std::string_view key) const {
    const auto found = slots_.find(key);
    return found == slots_.end() ? nullptr : found->second.entity.get();
  }
  /// The entity of this key, made where there is none; it has changed only after touch().
  Entity& make(std::string_view key) {
    auto& entity = slot(key)->second.entity;
    if (!entity) {
      entity = std::make_unique<Entity>();
      ++size_;
    }
    return *entity;
  }
  /// The entity of this key, which is there.
  [[nodiscard]] Entity& at(std::string_view key) const { return *slots_.find(key)->second.entity; }
  void touch(std::string_view key) {
    const auto found = slot(key);
    if (std::exchange(found->second.changed, true)) return;
    changed_.push_back(&found->first);
  }
  void erase(std::string_view key) {
    touch(key);
    auto& entity = slots_.find(key)->second.entity;
    size_ -= entity ? 1 : 0;
    entity.reset();  // the place is given up with the record
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// All of them, ascending by key.
  [[nodiscard]] std::vector<std::pair<std::string_view, Entity*>> in_order() const {
    std::vector<std::pair<std::string_view, Entity*>> out;
    out.reserve(size_);
    for (const auto& [key, slot] : slots_) {
      if (slot.entity) out.emplace_back(key, slot.entity.get());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  /// All of them, in any order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [key, slot] : slots_) {
      if (slot.entity) visit(*slot.entity);
    }
  }

  /// data_loss: the value cannot be read, and the entity is not there.
  core::Status restore(std::string_view key, std::string_view value) {
    return restore(key, [&](Entity& entity) { return decode(value, entity); });
  }
  /// The same; `read(Entity&)` reads it, and returns a status.
  template <typename Read>
  requires std::invocable<Read, Entity&> core::Status restore(std::string_view key, Read&& read) {
    auto entity = std::make_unique<Entity>();
    if (const core::Status done = read(*entity); !done) return done;
    auto& kept = slot(key)->second.entity;
    size_ += kept ? 0 : 1;
    kept = std::move(entity);
    return core::ok();
  }
  /// Before the first change: it is not there, and no record has to say so.
  void restore_gone(std::string_view key) {
    const auto found = slots_.find(key);
    if (found == slots_.end()) return;
    size_ -= found->second.entity ? 1 : 0;
    slots_.erase(found);
  }
  /// The records of what has changed, ascending.
  void take(std::vector<StateRecord>& out) {
    std::sort(changed_.begin(), changed_.end(),
              [](const ShortKey* a, const ShortKey* b) { return *a < *b; });
    for (const ShortKey* key : std::exchange(changed_, {})) {
      const auto found = slots_.find(*key);
      Slot& slot = found->second;
      slot.changed = false;
      out.push_back(
          {record_key(*key), slot.entity ? std::optional(encode(*slot.entity)) : std::nullopt});
      if (!slot.entity) slots_.erase(found);
    }
  }
  /// All records, ascending.
  void snapshot(std::vector<StateRecord>& out) const {
    for (const auto& [key, entity] : in_order()) out.push_back({record_key(key), encode(*entity)});
  }

 private:
  struct Slot {
    std::unique_ptr<Entity> entity;  // null: gone, and the record has still to say it
    bool changed = false;
  };
  using Slots = std::unordered_map<ShortKey, Slot, KeyHash, std::equal_to<>>;

  /// Made where there is none.
  typename Slots::iterator slot(std::string_view key) {
    const auto found = slots_.find(key);
    return found != slots_.end() ? found : slots_.emplace(key, Slot()).first;
  }

  [[nodiscard]] std::string record_key(std::string_view key) const {
    std::string out;
    out.reserve(kind_.size() + 1 + key.size());
    return out.append(kind_).append(1, '/').append(key);
  }

  std::string_view kind_;
  Slots slots_;
  std::size_t size_ = 0;                  // entities that are there
  std::vector<const ShortKey*> changed_;  // keys of slots_, each once
};

}  // namespace tocsin::routing
