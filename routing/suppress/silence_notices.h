// Tells people of silences: an issue `silence_notice` fires as long as one is there (docs/silences.md).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/issue.h"
#include "core/time.h"
#include "routing/suppress/silences.h"
#include "routing/tables/intake.h"
#include "routing/tables/issues.h"

namespace tocsin::routing {

/// Looks at all silences and issues, now and then. It keeps nothing: what was told is in the state of the
/// issues, so that a restart tells nothing twice.
class SilenceNotices {
 public:
  /// `wanted`: some route asks for such issues. All outlive it.
  SilenceNotices(const RouterOptions& options, bool wanted, const Silences& silences,
                 const Issues& issues, Intake& intake)
      : options_(options), wanted_(wanted), silences_(silences), issues_(issues), intake_(intake) {}

  /// Looks, if it is time to.
  void look(core::WallTime now);
  /// When it has to look next; nullopt: nobody wants to hear, or there is no silence.
  [[nodiscard]] std::optional<core::WallTime> next() const;

 private:
  struct Hidden {
    std::size_t count = 0;
    std::vector<std::string> some;  // what they are, of the first few
  };
  void look_at_issues(std::vector<Hidden>& hidden, std::set<std::string>& told) const;
  void follow(std::string_view id, const Silence& silence, const Hidden& hidden,
              core::WallTime now);
  void end(const std::string& id, const Silence* silence, const Hidden& hidden, core::WallTime now);

  const RouterOptions& options_;
  const bool wanted_;
  const Silences& silences_;
  const Issues& issues_;
  Intake& intake_;
  std::optional<core::WallTime> looked_at_;
  core::Duration period_{};
};

}  // namespace tocsin::routing
