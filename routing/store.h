// The router's state: tables of entities. A table knows its entities by key, which of them have
// changed since the last take(), and how one becomes a record `<kind>/<key>` of the changelog.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "routing/routing.h"

namespace tocsin::routing {

/// Entities of one kind, ascending by key; an entity stays where it is until it is erased. Entity
/// has `std::string encode(const Entity&)` and `core::Status decode(std::string_view, Entity&)`.
template <typename Entity>
class Table {
 public:
  using Map = std::map<std::string, std::unique_ptr<Entity>, std::less<>>;

  /// `kind` is the part of a record's key before the slash, a literal.
  explicit Table(std::string_view kind) : kind_(kind) {}

  /// null: there is none.
  [[nodiscard]] Entity* find(std::string_view key) const {
    const auto found = entities_.find(key);
    return found == entities_.end() ? nullptr : found->second.get();
  }
  /// The entity of this key, made where there is none; it has changed only after touch().
  Entity& make(const std::string& key) {
    auto& slot = entities_[key];
    if (!slot) slot = std::make_unique<Entity>();
    return *slot;
  }
  /// The entity of this key, which is there.
  [[nodiscard]] Entity& at(std::string_view key) const { return *entities_.find(key)->second; }
  void touch(const std::string& key) { changed_.insert(key); }
  void erase(const std::string& key) {
    touch(key);
    entities_.erase(key);
  }

  [[nodiscard]] std::size_t size() const noexcept { return entities_.size(); }
  [[nodiscard]] auto begin() const { return entities_.begin(); }
  [[nodiscard]] auto end() const { return entities_.end(); }

  /// data_loss: the value cannot be read, and the entity is not there.
  core::Status restore(std::string_view key, std::string_view value) {
    auto entity = std::make_unique<Entity>();
    if (const core::Status read = decode(value, *entity); !read) return read;
    entities_[std::string(key)] = std::move(entity);
    return core::ok();
  }
  /// The records of what has changed, ascending.
  void take(std::vector<StateRecord>& out) {
    for (const std::string& key : std::exchange(changed_, {})) {
      const Entity* entity = find(key);
      out.push_back(
          {record_key(key), entity == nullptr ? std::nullopt : std::optional(encode(*entity))});
    }
  }
  /// All records, ascending.
  void snapshot(std::vector<StateRecord>& out) const {
    for (const auto& [key, entity] : entities_) out.push_back({record_key(key), encode(*entity)});
  }

 private:
  [[nodiscard]] std::string record_key(const std::string& key) const {
    std::string out;
    out.reserve(kind_.size() + 1 + key.size());
    return out.append(kind_).append(1, '/').append(key);
  }

  std::string_view kind_;
  Map entities_;
  std::set<std::string> changed_;
};

}  // namespace tocsin::routing
