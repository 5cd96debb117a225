// What a Reader can be asked of its map: what stands where, by key or by path.
#include <algorithm>
#include <charconv>

#include "config/tree.h"

namespace tocsin::config {
namespace {

// The longest key that `path` begins with: a name of the user's may hold dots.
const Entry* first_entry(const Node& node, std::string_view path) {
  for (std::size_t end = path.size(); end > 0; --end) {
    if (end < path.size() && path[end] != '.' && path[end] != '[') continue;
    if (const Entry* entry = node.find(path.substr(0, end)); entry != nullptr) return entry;
  }
  return nullptr;
}

// nullptr: nothing stands there.
const Node* look_up(const Node& root, std::string_view path) {
  const Node* at = &root;
  while (!path.empty()) {
    if (path.front() == '[') {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(path.data() + 1, path.data() + path.size(), index);
      if (error != std::errc{} || index >= at->items.size()) return nullptr;
      at = &at->items[index];
      path.remove_prefix(std::min(static_cast<std::size_t>(end - path.data()) + 1, path.size()));
    } else {
      if (path.front() == '.') path.remove_prefix(1);
      const Entry* entry = first_entry(*at, path);
      if (entry == nullptr) return nullptr;
      at = &entry->value;
      path.remove_prefix(entry->key.size());
    }
  }
  return at;
}

}  // namespace

bool Reader::has(std::string_view key) const {
  return impl_->node != nullptr && impl_->node->find(key) != nullptr;
}

bool Reader::describing() const noexcept { return impl_->schema != nullptr; }

Location Reader::location(std::string_view key) const {
  if (impl_->node == nullptr) return {};
  const Node* found = look_up(*impl_->node, key);
  return found != nullptr ? found->location : impl_->node->location;
}

std::optional<core::Value> Reader::value(std::string_view key) const {
  if (impl_->node == nullptr) return std::nullopt;
  const Node* found = look_up(*impl_->node, key);
  if (found == nullptr) return std::nullopt;
  return to_value(*found);
}

std::optional<core::Value> Document::value(std::string_view path) const {
  const Node* found = look_up(tree_->root, path);
  if (found == nullptr) return std::nullopt;
  return to_value(*found);
}

void Reader::error(std::string_view key, std::string message) const {
  impl_->report(location(key), Grade::error, key, std::move(message));
}

void Reader::error_at(std::string_view key, std::size_t offset, std::string message) const {
  const Node* found = impl_->node == nullptr ? nullptr : look_up(*impl_->node, key);
  const bool text = found != nullptr && found->kind == Node::Kind::scalar;
  impl_->report(text ? found->location_of(offset) : location(key), Grade::error, key,
                std::move(message));
}

void Reader::warning(std::string_view key, std::string message) const {
  impl_->report(location(key), Grade::warning, key, std::move(message));
}

void Reader::note(std::string_view key, std::string message) const {
  impl_->report(location(key), Grade::note, key, std::move(message));
}

}  // namespace tocsin::config
