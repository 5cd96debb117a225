// What keeps an issue from being told although it fires: silences, inhibition, an acknowledgement.
// Each kind is a file here; the flush asks them all and collects their reasons.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/time.h"
#include "routing/tree/integration.h"

namespace tocsin::routing {

/// The issues that the router knows, for a suppressor that looks at others (inhibition).
class KnownIssues {
 public:
  virtual ~KnownIssues() = default;
  /// null: not known.
  [[nodiscard]] virtual const core::Issue* find(std::string_view issue_key) const = 0;
  /// Calls `visit` for every issue that fires, ascending by key.
  virtual void for_each_firing(core::FunctionRef<void(const core::Issue&)> visit) const = 0;
};

/// Whom a suppression holds back.
enum class Reach : std::uint8_t { all, notify, stop };

/// Why an issue must not be told ("silence:<id>", "inhibition:<name>"), and whom.
struct Suppression {
  std::string reason;
  Reach reach = Reach::all;

  [[nodiscard]] bool holds_back(Purpose purpose) const noexcept {
    if (purpose == Purpose::show) return false;
    return reach == Reach::all || (reach == Reach::stop) == (purpose == Purpose::stop);
  }
};

/// One kind of suppression. Lives on the router's thread.
class Suppressor {
 public:
  virtual ~Suppressor() = default;
  /// Adds why the issue must not be told at `tick`; nothing: it may be.
  virtual void reasons(const core::Issue& issue, const KnownIssues& others, core::WallTime tick,
                       std::vector<Suppression>& out) const = 0;
  /// May an answer for some issue of the group with these labels be another one at `now` than it
  /// was at `since`, although nothing has happened to the group itself? While not, a group with no
  /// news is passed over.
  [[nodiscard]] virtual bool may_differ(const core::Labels& group_labels, core::WallTime since,
                                        core::WallTime now) const = 0;
};

}  // namespace tocsin::routing
