// Everything that keeps people from being told of an issue now, or from being told again.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/view/topic_view.h"
#include "core/labels.h"
#include "core/time.h"
#include "core/value.h"
#include "routing/routing.h"

namespace tocsin::app {

/// What is known beside the topics of a view. Whatever is null is not told.
struct RoutingSight {
  const routing::Router* router = nullptr;  // to explain: which routes intervals mute
  const std::vector<routing::InhibitRule>* inhibit_rules = nullptr;
  const routing::RouterStanding* standing = nullptr;  // which issues flap
  core::Duration resolve_timeout = routing::Config{}.resolve_timeout;
};

/// All reasons, not only the first. Empty for an issue that is over.
struct HeldBack {
  struct Silenced {
    std::string id;
    std::string actions;  // notify, stop_training; empty: both
  };
  std::vector<Silenced> silences;
  std::vector<routing::InhibitedBy> inhibitors;
  std::vector<std::string> muted_by;  // names of time intervals; empty: some route is not muted
  std::optional<routing::Acknowledgement> ack;  // it holds back repeats and escalation
  std::optional<core::WallTime> flapping_since;

  [[nodiscard]] std::vector<std::string> silenced_by() const;
  /// Is nobody told of it at all? An acknowledgement and flapping let news through.
  [[nodiscard]] bool suppressed() const;
};

/// Who holds back which issues of a view at `now`. Keeps copies of what it compares: the view may go on.
class HeldBackView {
 public:
  HeldBackView(const TopicView& view, const RoutingSight& sight, core::WallTime now);

  /// `view`: the one that it was made of, at that time or a little later.
  [[nodiscard]] HeldBack of(const TopicView& view, const std::string& key,
                            const TopicView::SeenIssue& seen) const;
  [[nodiscard]] core::WallTime at() const noexcept { return now_; }

 private:
  struct InForce {
    HeldBack::Silenced silence;
    routing::SilenceScope scope;
  };
  [[nodiscard]] std::vector<std::string> muting(const core::Labels& labels) const;

  RoutingSight sight_;
  core::WallTime now_;
  std::vector<InForce> silences_;
  std::optional<routing::InhibitionSurvey> inhibition_;
  mutable std::map<std::string, std::vector<std::string>, std::less<>> muted_;  // by route id
};

/// Does it fire, as far as its producer, its run and `resolve_timeout` say?
[[nodiscard]] bool still_fires(const TopicView& view, const core::Issue& issue,
                               core::Duration resolve_timeout, core::WallTime now);

/// "silenced: inhibited by rule a: acknowledged by ada: "; empty: people are told.
std::string held_back_marks(const HeldBack& held);
/// One sentence per reason, each with a name: for `issues show`. (name, sentence)
std::vector<std::pair<std::string, std::string>> held_back_rows(const HeldBack& held,
                                                                const TopicView& view,
                                                                core::WallTime now);
/// silenced_by, inhibited_by, muted_by, acked_by, flapping_since: as /api/v1 and `--json` give them.
void add_held_back(core::ValueMap& out, const HeldBack& held);
/// The issue's event as JSON has it, with these.
core::ValueMap issue_with_held_back(const core::Issue& issue, const HeldBack& held);

}  // namespace tocsin::app
