// Who is told: what routing knows of an action.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"

namespace tocsin::routing {

/// What an integration does with an issue.
enum class Purpose : std::uint8_t {
  notify,  // people or programs hear of it
  stop,    // its run is stopped
  show,    // its state is shown, and stays true whatever is suppressed
};

/// What keeps an issue from being told.
enum class Cause : std::uint8_t { silence, inhibition, time };

/// What becomes of the end of an issue that was told, while the issue is suppressed.
enum class SuppressedEnd : std::uint8_t {
  send,   // it is told all the same
  defer,  // it is owed, and told once the suppression is over
  drop,   // it is never told
};

/// Which causes hold an integration back. Unset: as its purpose has it: notifications respect all,
/// stops all but inhibition (a run is stopped whatever else fires), what shows a state none.
struct Respect {
  std::optional<bool> silences;
  std::optional<bool> inhibition;
  std::optional<bool> time;
};

/// One action config of one receiver, as far as deciding needs it; filled from `receivers`.
struct Integration {
  std::string id;        // stable; unique
  std::string receiver;  // several integrations may share one
  std::string type;      // webhook, email, …
  std::size_t index = 0;
  bool send_resolved = true;
  std::size_t max_alerts = 100;  // issues listed in one message; 0 = no limit
  core::Duration max_age = std::chrono::hours(24);
  std::string when;  // matchers: which members this action is told of
  bool enabled = true;
  bool shadow = false;  // decided and recorded as usual; the deliverer does not send
  /// The far side keeps an incident open until told otherwise: one that is lost sight of is closed
  /// there.
  bool stateful = true;
  /// Unset: an incident that the far side keeps open is closed at once, else people hear of the end
  /// when the suppression is over.
  std::optional<SuppressedEnd> resolve_when_suppressed;
  /// The action acts on each issue by itself (a topic, an alert, a series, a run to stop): a flush
  /// tells it all issues, in as many messages as that takes. Else a message lists what fits and
  /// counts the rest.
  bool every_issue = false;
  Purpose purpose = Purpose::notify;  // what of it a suppression holds back
  /// The receiver that is told when a message of this one does not arrive; empty: nobody.
  std::string fallback;
  core::Duration fallback_after = std::chrono::minutes(5);  // and has not arrived for so long
  bool acknowledges = false;  // the far side takes "somebody has acknowledged this" (propagate_ack)
  Respect respect;

  [[nodiscard]] SuppressedEnd suppressed_end() const noexcept {
    return resolve_when_suppressed.value_or(stateful ? SuppressedEnd::send : SuppressedEnd::defer);
  }
  [[nodiscard]] bool respects(Cause cause) const noexcept {
    switch (cause) {
      case Cause::silence:
        return respect.silences.value_or(purpose != Purpose::show);
      case Cause::inhibition:
        return respect.inhibition.value_or(purpose == Purpose::notify);
      case Cause::time:
        return respect.time.value_or(purpose != Purpose::show);
    }
    return true;
  }
};

}  // namespace tocsin::routing
