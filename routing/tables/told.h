// The notification log follows the deliveries: what a far side knows is what has reached it, or
// still may.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/notification.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

/// Does the far side have an open incident, counting what is on its way?
bool incident_open(const TellLog& log);

/// Writes down that a message was decided; `log.seq` is its number, `over` the ends it tells of.
void remember_sent(TellLog& log, const core::Notification& notification,
                   std::vector<std::pair<std::string, TellLog::Told>> over);

struct Settled {
  bool changed = false;
  std::uint64_t forgotten = 0;  // episodes that are not told any more
  /// Issues whose end the far side has not heard: they are in `log.told` again.
  std::vector<std::string> open_again;
};

/// A final state of one of its messages. What was told only by a message that never arrived is not
/// told any more, so that it is news again; an end that only it told is still to be told. A message
/// that was refused for good (dead) would be refused again at every tick: its issues wait for the
/// next reason or repeat.
Settled settle(TellLog& log, const core::Delivery& delivery);

}  // namespace tocsin::routing
