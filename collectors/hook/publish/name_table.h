// Names that this worker publishes under, and which of them readers have been told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collectors/hook/capture/capture.h"
#include "core/codes.h"
#include "core/frame.h"

namespace tocsin::hook {

struct NameInfo {
  core::DictionaryType type = core::DictionaryType::tensor;
  core::Dtype dtype = core::Dtype::unknown;
  std::optional<core::Role> role;  // nullopt: by type and name
  std::vector<std::int64_t> dims;
  std::string attrs;       // JSON object or empty
  std::string collection;  // further collection; empty: none
};

struct Name {
  core::DictionaryType type{};
  core::Dtype dtype{};
  core::Role role{};
  std::uint64_t hash = 0;
  std::vector<std::int64_t> dims;
  std::string text;
  std::string given_attrs;  // as the caller gave them
  std::string op_type;      // that they name; empty: none
  std::string attrs;        // with collections
  CollectionMask own = 0;   // the collection that the caller named
  CollectionMask collections = 0;
  bool sent = false;
  bool used = true;  // since names were last told again
};

/// Which names readers are told.
enum class Tell {
  fresh,  // new ones, changed ones, and those that are used again after a long time
  used,   // also those used since they were last told: for readers that came later
  all,
};

/// The role of a name for which none is stated.
core::Role role_by_name(core::DictionaryType type, std::string_view name);

/// Not thread-safe.
class NameTable {
 public:
  /// The first name is the worker's.
  NameTable(std::string_view worker, std::string worker_attrs);

  /// `text` as readers take it, at most `most` bytes; a change is counted.
  std::string fit(std::string_view text, std::size_t most);
  /// Names that fit() has changed.
  [[nodiscard]] std::uint64_t cut() const noexcept { return cut_; }

  /// Registers a name, or replaces what was known of it. A name that is too long, or no text, is
  /// made to fit (core/limits.h). Its id, XXH64 of the text.
  std::uint64_t put(std::string_view text, const NameInfo& info, CapturePlan& plan);
  /// Null: not registered.
  [[nodiscard]] const Name* find(std::uint64_t id) const;
  [[nodiscard]] std::uint64_t worker() const { return names_.front().hash; }
  void each(const std::function<void(const Name&)>& visit) const {
    for (const Name& name : names_) visit(name);
  }
  /// The same for a row that is about to be written: from now on the name is in use.
  const Name* use(std::uint64_t id);
  /// The plan has changed: tensors that belong to other collections now are to be sent again.
  void regroup(const CapturePlan& plan);
  /// Calls `send` with the entries of as many names as fit a frame, until all of `which` are told.
  /// The entries borrow from the table.
  void tell(Tell which, const std::function<void(const std::vector<core::DictionaryEntry>&)>& send);

 private:
  std::vector<Name> names_;
  std::unordered_map<std::uint64_t, std::size_t> by_hash_;
  bool unsent_ = true;
  std::uint64_t cut_ = 0;
};

}  // namespace tocsin::hook
