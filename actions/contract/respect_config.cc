#include "actions/contract/respect_config.h"

namespace tocsin::actions {

void read(config::Reader& in, RespectConfig& cfg) {
  in.section(
      "respect", "what holds this action back; default: by its type", [&](config::Reader& respect) {
        respect.optional("silences", cfg.silences, "false: act although a silence mutes the issue");
        respect.optional("inhibition", cfg.inhibition,
                         "false: act although an inhibit rule mutes the issue (stops: false "
                         "by default)");
        respect.optional("time", cfg.time, "false: act although a time interval mutes the route");
      });
  in.optional(
      "resolve_when_suppressed", cfg.resolve_when_suppressed,
      config::one_of({"send", "defer", "drop"}),
      "the end of an issue that was told and is suppressed by now: send it at once, defer it "
      "until the suppression is over, or drop it; default: send where the far side keeps an "
      "incident open, else defer");
}

}  // namespace tocsin::actions
