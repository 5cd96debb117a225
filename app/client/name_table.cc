#include "app/client/name_table.h"

#include <algorithm>
#include <span>
#include <utility>

#include "app/client/attrs.h"
#include "core/identity.h"

namespace tocsin::app::client {
namespace {

using core::Role;

// Dictionary frames end well before the size a record may have.
constexpr std::size_t kFrameBytes = core::kTargetFrameBytes;
constexpr std::size_t kFrameNames = 500;

Role role_by_name(core::DictionaryType type, std::string_view name) {
  if (type == core::DictionaryType::scalar) return core::scalar_role(name);
  if (type != core::DictionaryType::tensor) return Role::other;
  if (name.starts_with("gradient/")) return Role::gradient;
  if (name.ends_with("bias")) return Role::bias;
  return name.find("weight") != std::string_view::npos ? Role::weight : Role::other;
}

core::DictionaryEntry entry_of(const Name& name) {
  core::DictionaryEntry entry;
  entry.hash = name.hash;
  entry.type = name.type;
  entry.dtype = name.dtype;
  entry.role = name.role;
  entry.dims_bytes = std::as_bytes(std::span<const std::int64_t>(name.dims));
  entry.name = name.text;
  entry.attrs = name.attrs;
  return entry;
}

}  // namespace

NameTable::NameTable(std::string_view worker, std::string worker_attrs) {
  Name name;
  name.type = core::DictionaryType::worker;
  name.text = std::string(worker);
  name.hash = core::name_hash(worker);
  name.attrs = std::move(worker_attrs);
  by_hash_[name.hash] = 0;
  names_.push_back(std::move(name));
}

std::uint64_t NameTable::put(std::string_view text, const NameInfo& info, CapturePlan& plan) {
  Name made;
  made.type = info.type;
  made.dtype = info.dtype;
  made.text = std::string(text);
  made.hash = core::name_hash(text);
  made.dims = info.dims;
  made.role = info.role.value_or(role_by_name(info.type, text));
  made.given_attrs = info.attrs;
  if (info.type == core::DictionaryType::tensor) {
    if (!info.collection.empty()) made.own = plan.bit(info.collection);
    made.collections = made.own | plan.collections_of(text, made.role);
  }
  made.attrs = name_attrs(info.attrs, plan.names(made.collections));
  unsent_ = true;
  const std::uint64_t hash = made.hash;
  const auto [at, fresh] = by_hash_.try_emplace(hash, names_.size());
  if (fresh) {
    names_.push_back(std::move(made));
  } else {
    names_[at->second] = std::move(made);
  }
  return hash;
}

const Name* NameTable::find(std::uint64_t id) const {
  const auto at = by_hash_.find(id);
  return at == by_hash_.end() ? nullptr : &names_[at->second];
}

const Name* NameTable::use(std::uint64_t id) {
  const auto at = by_hash_.find(id);
  if (at == by_hash_.end()) return nullptr;
  Name& name = names_[at->second];
  if (!name.used) {
    name.used = true;
    unsent_ = unsent_ || !name.sent;
  }
  return &name;
}

void NameTable::regroup(const CapturePlan& plan) {
  for (Name& name : names_) {
    if (name.type != core::DictionaryType::tensor) continue;
    const CollectionMask mask = name.own | plan.collections_of(name.text, name.role);
    if (mask == name.collections) continue;
    name.collections = mask;
    name.attrs = name_attrs(name.given_attrs, plan.names(mask));
    name.sent = false;
    unsent_ = true;
  }
}

void NameTable::tell(Tell which,
                     const std::function<void(const std::vector<core::DictionaryEntry>&)>& send) {
  if (!unsent_ && which == Tell::fresh) return;
  std::vector<core::DictionaryEntry> entries;
  entries.reserve(std::min(names_.size(), kFrameNames));
  std::size_t bytes = 0;
  for (Name& name : names_) {
    if (which == Tell::fresh && (name.sent || !name.used)) continue;
    if (which == Tell::used) {
      const bool worker = &name == &names_.front();
      // What nobody writes any more is told when it is written again.
      name.sent = std::exchange(name.used, worker);
      if (!name.sent) continue;
    }
    name.sent = true;
    const core::DictionaryEntry& entry = entries.emplace_back(entry_of(name));
    bytes += 32 + entry.dims_bytes.size() + entry.name.size() + entry.attrs.size();
    if (bytes < kFrameBytes && entries.size() < kFrameNames) continue;
    send(entries);
    entries.clear();
    bytes = 0;
  }
  if (!entries.empty()) send(entries);
  unsent_ = false;
}

}  // namespace tocsin::app::client
