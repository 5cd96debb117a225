// What a person asks for of a silence on the command line, as a silence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/view/topic_view.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"

namespace tocsin::app {

/// Of `silence add`, `update` and `preview`. What is not given: a default when it is added, and as it was
/// when it is updated.
struct SilenceTerms {
  std::vector<std::string> matchers;  // all of them hold
  std::vector<std::string> or_sets;   // or one of these texts holds
  std::string run;                    // of this run, as which_run.h finds it
  std::string job;                    // of this job, or the job of `run`
  std::optional<core::Duration> lasts;
  std::string until;        // RFC 3339, instead of `lasts`
  core::Duration begins{};  // from now
  std::string comment;
  std::string author;                    // empty: user and host
  std::string actions;                   // notify, stop_training, all; empty: both
  std::vector<std::string> annotations;  // name=text
  std::string time_interval;             // recurs: of the configuration
  std::vector<std::string> times;        // recurs: 20:00-24:00
  std::vector<std::string> weekdays;     // recurs: monday:friday
  std::string location;                  // recurs: time zone
  bool until_resolved = false;
  std::optional<core::Duration> quiet_for;
  std::optional<core::Duration> auto_expire_unmatched;
  std::string announce;  // never, reminder
};

/// The texts of the sets of matchers that were given; empty: none. Errors: as which_run(), and
/// invalid_argument.
core::Result<std::vector<std::string>> asked_sets(const SilenceTerms& terms, const TopicView& view);

/// A new silence, from `now`. Errors: as asked_sets(), and as named_interval().
core::Result<routing::Silence> asked_silence(const SilenceTerms& terms, const TopicView& view,
                                             const std::string& config_file, core::WallTime now);

/// `old` with what was given.
core::Result<routing::Silence> asked_change(const SilenceTerms& terms, const routing::Silence& old,
                                            const TopicView& view, const std::string& config_file,
                                            core::WallTime now);

}  // namespace tocsin::app
