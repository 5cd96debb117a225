#include "app/stages/stop_feed.h"

#include <string>

namespace tocsin::app {

void log_transition(core::Log& log, const actions::StopTransition& transition,
                    std::string_view by) {
  const std::string run = core::to_text(transition.run);
  const std::string from(actions::to_string(transition.from));
  const std::string to(actions::to_string(transition.to));
  const std::string at = core::to_rfc3339(transition.at);
  const std::int64_t attempt{transition.attempt};
  if (by.empty()) {
    log.info("stop_state_changed", {{"command_id", transition.command_id},
                                    {"run", run},
                                    {"attempt", attempt},
                                    {"from", from},
                                    {"to", to},
                                    {"reason", transition.reason},
                                    {"at", at}});
    return;
  }
  log.info("stop_state_changed", {{"command_id", transition.command_id},
                                  {"run", run},
                                  {"attempt", attempt},
                                  {"from", from},
                                  {"to", to},
                                  {"reason", transition.reason},
                                  {"by", std::string(by)},
                                  {"at", at}});
}

}  // namespace tocsin::app
