// What people ask of the router: records of the topic `router-control`, one kind per key prefix. A
// new kind is a file of its own here and a row of control_kinds().
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/tables.h"

namespace tocsin::routing {

/// The records of one kind as the router keeps them, also in its state: `<prefix>/<id>` there as in
/// `router-control`.
class ControlRecords {
 public:
  virtual ~ControlRecords() = default;
  /// A record's value; nullopt: its tombstone, written by a person or left by compaction.
  /// invalid_argument, resource_exhausted: refused; what stood there before stays.
  virtual core::Status apply(std::string_view id, std::optional<std::string_view> value,
                             core::WallTime now) = 0;
  /// What is over for long enough goes.
  virtual void forget(core::WallTime now) = 0;
  /// Sets the figures of this kind.
  virtual void count(Stats& stats, core::WallTime now) const = 0;
  /// What it holds back, for the flush; null: nothing.
  [[nodiscard]] virtual const Suppressor* suppressor() const { return nullptr; }

  virtual core::Status restore(std::string_view id, std::string_view value) = 0;
  virtual void take(std::vector<StateRecord>& out) = 0;
  virtual void snapshot(std::vector<StateRecord>& out) const = 0;
};

struct ControlKind {
  std::string_view prefix;     // of its keys, before the slash
  std::string_view key;        // in words: "silence/<id>"
  std::string_view writers;    // who may write such a record
  std::string_view tombstone;  // what a null value means
  std::unique_ptr<ControlRecords> (*make)(Tables& tables);
};

/// Ascending by prefix.
std::span<const ControlKind> control_kinds() noexcept;

/// All kinds together.
class Controls {
 public:
  /// What records mean for the tables, which outlive it.
  explicit Controls(Tables& tables);

  /// A record of `router-control`. invalid_argument: its key is of no kind, or its value is refused.
  core::Status apply(std::string_view key, std::optional<std::string_view> value,
                     core::WallTime now);
  void forget(core::WallTime now);
  void count(Stats& stats, core::WallTime now) const;
  [[nodiscard]] std::vector<const Suppressor*> suppressors() const;
  /// The records of this kind. Records: the class that control_kinds() makes for `prefix`.
  template <typename Records>
  [[nodiscard]] Records& of(std::string_view prefix) const {
    return static_cast<Records&>(*find(prefix));
  }

  /// A record of the state, its key before and behind the slash. nullopt: of no kind here.
  std::optional<core::Status> restore(std::string_view prefix, std::string_view id,
                                      std::string_view value);
  void take(std::vector<StateRecord>& out);
  void snapshot(std::vector<StateRecord>& out) const;

 private:
  [[nodiscard]] ControlRecords* find(std::string_view prefix) const;

  std::vector<std::unique_ptr<ControlRecords>> records_;  // as control_kinds()
};

}  // namespace tocsin::routing
