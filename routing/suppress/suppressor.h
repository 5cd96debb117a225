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

/// Whom a suppression holds back.
enum class Reach : std::uint8_t { all, notify, stop };

/// Reasons of inhibition begin so.
inline constexpr std::string_view kInhibition = "inhibition:";

/// Why an issue must not be told ("silence:<id>", "inhibition:<name>", "mute_time:<name>"), and whom.
struct Suppression {
  std::string reason;
  Reach reach = Reach::all;
  Cause cause = Cause::silence;

  [[nodiscard]] bool holds_back(const Integration& integration) const noexcept {
    if (!integration.respects(cause)) return false;
    return reach == Reach::all || (reach == Reach::stop) == (integration.purpose == Purpose::stop);
  }
};

/// Is there an issue of a group of which `is` says true?
using AnyMember = core::FunctionRef<bool(core::FunctionRef<bool(const core::Issue&)> is)>;

/// One kind of suppression. Lives on the router's thread.
class Suppressor {
 public:
  virtual ~Suppressor() = default;
  /// False: it holds nothing back and reminds of nothing at present, and is not asked.
  [[nodiscard]] virtual bool holds_any() const noexcept { return true; }
  /// Adds why the issue must not be told at `tick`; nothing: it may be.
  virtual void reasons(const core::Issue& issue, core::WallTime tick,
                       std::vector<Suppression>& out) const = 0;
  /// May an answer for some issue of a group be another one at `now` than it was at `since`, although
  /// nothing has happened to the group itself? While not, a group with no news is passed over.
  [[nodiscard]] virtual bool may_differ(const AnyMember& any_member, core::WallTime since,
                                        core::WallTime now) const = 0;
  /// Has it held the issue back at `since`, does so no more at `now`, and is to be told of that?
  [[nodiscard]] virtual bool reminds(const core::Issue& /*issue*/, core::WallTime /*since*/,
                                     core::WallTime /*now*/) const {
    return false;
  }
};

}  // namespace tocsin::routing
