// What may happen when: what is due, the hold while the input is behind, and how much one call does
// (docs/routing.md, Backlogs).
#pragma once

#include <cstddef>
#include <optional>

#include "core/time.h"
#include "routing/flush/teller.h"
#include "routing/settling.h"
#include "routing/suppress/inhibition.h"
#include "routing/tables/agenda.h"
#include "routing/tables/catchup.h"
#include "routing/tables/intake.h"
#include "routing/tables/limits.h"
#include "routing/tables/tables.h"

namespace tocsin::routing {

/// Nothing happens before start().
class Schedule {
 public:
  Schedule(const Config& limits, Tables& tables, Intake& intake, Teller& teller,
           const Inhibition& inhibition)
      : tables_(tables),
        intake_(intake),
        teller_(teller),
        inhibition_(inhibition),
        catchup_(limits.catchup_hold_max),
        settling_(limits.inhibit_settle) {}

  void start();
  [[nodiscard]] bool started() const noexcept { return started_; }
  /// Is some input not read to its end?
  void set_behind(bool behind, core::WallTime now);
  /// What was published before `at` has been read.
  void set_read_until(core::WallTime at) { settling_.set_read_until(at); }
  /// Does what is due until `now`, as Router::tick().
  bool run(core::WallTime now);
  /// Tells groups that the last event has made due: a resolve further on in the same poll must not
  /// hide a firing that a route without group_wait tells immediately.
  void tell_at_once(core::WallTime now);
  /// When run() is next needed.
  [[nodiscard]] std::optional<core::WallTime> next() const;
  /// What waits for the end of a catch-up.
  [[nodiscard]] std::size_t waiting() const noexcept { return catchup_.parked(); }

 private:
  [[nodiscard]] bool waits(const Agenda::Entry& due) const;
  [[nodiscard]] bool waits(const Group& group, core::WallTime at) const;
  [[nodiscard]] bool settles(const Agenda::Entry& due, core::WallTime now) const;
  void release();
  void carry_out(const Agenda::Entry& due, core::WallTime now);

  Tables& tables_;
  Intake& intake_;
  Teller& teller_;
  const Inhibition& inhibition_;
  Catchup catchup_;
  Settling settling_;
  bool started_ = false;
};

}  // namespace tocsin::routing
