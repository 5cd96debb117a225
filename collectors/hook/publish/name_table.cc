#include "collectors/hook/publish/name_table.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "collectors/hook/publish/attrs.h"
#include "core/collections.h"
#include "core/identity.h"
#include "core/limits.h"

namespace tocsin::hook {
namespace {

using core::Role;

// Dictionary frames end well before the size a record may have.
constexpr std::size_t kFrameBytes = core::kTargetFrameBytes;
constexpr std::size_t kFrameNames = 500;

/// The role that a tensor's name gives away, by the patterns of the collections.
class RolesByName {
 public:
  RolesByName() {
    for (const core::Collection& one : core::builtin_collections()) {
      if (one.roles.empty() || one.include.empty()) continue;
      Entry& entry = entries_.emplace_back();
      entry.role = one.roles.front();
      entry.include = pattern(one.include);
      if (!one.exclude.empty()) entry.exclude = pattern(one.exclude);
    }
    // Weights take what nobody else does: their word stands in names of many things.
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return (a.role == Role::weight) < (b.role == Role::weight);
    });
  }

  [[nodiscard]] Role of(std::string_view name) const {
    const re2::StringPiece text(name.data(), name.size());
    for (const Entry& entry : entries_) {
      if (!re2::RE2::PartialMatch(text, *entry.include)) continue;
      if (entry.exclude == nullptr || !re2::RE2::PartialMatch(text, *entry.exclude)) {
        return entry.role;
      }
    }
    return Role::other;
  }

 private:
  using Pattern = std::unique_ptr<re2::RE2>;
  struct Entry {
    Role role = Role::other;
    Pattern include;
    Pattern exclude;
  };
  static Pattern pattern(std::string_view text) {
    return std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), re2::RE2::Quiet);
  }
  std::vector<Entry> entries_;
};

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

Role role_by_name(core::DictionaryType type, std::string_view name) {
  if (type == core::DictionaryType::scalar) return core::scalar_role(name);
  if (type != core::DictionaryType::tensor) return Role::other;
  static const RolesByName kRoles;
  return kRoles.of(name);
}

NameTable::NameTable(std::string_view worker, std::string worker_attrs) {
  Name name;
  name.type = core::DictionaryType::worker;
  name.text = std::string(worker);
  name.hash = core::name_hash(worker);
  name.attrs = std::move(worker_attrs);
  by_hash_[name.hash] = 0;
  names_.push_back(std::move(name));
}

std::string NameTable::fit(std::string_view text, std::size_t most) {
  std::string name(text);
  if (core::bound_name(name, most)) ++cut_;
  return name;
}

std::uint64_t NameTable::put(std::string_view text, const NameInfo& info, CapturePlan& plan) {
  // The arguments of a span are JSON, and have limits of their own.
  const bool bounded = info.type != core::DictionaryType::span_args;
  Name made;
  made.type = info.type;
  made.dtype = info.dtype;
  made.text = bounded ? fit(text, core::limit::kNameBytes) : std::string(text);
  made.hash = core::name_hash(made.text);
  made.dims = info.dims;
  made.role = info.role.value_or(role_by_name(info.type, made.text));
  made.given_attrs = info.attrs;
  made.op_type = op_type_of(info.attrs);
  std::string collection = info.collection;
  if (bounded && collection.size() > core::limit::kHostBytes) {
    collection = fit(collection, core::limit::kHostBytes);
  }
  if (info.type == core::DictionaryType::tensor) {
    if (!collection.empty()) made.own = plan.bit(collection);
    made.collections = made.own | plan.collections_of(made.text, made.role);
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

}  // namespace tocsin::hook
