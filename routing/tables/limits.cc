#include "routing/tables/limits.h"

#include <cstdint>

namespace tocsin::routing {

void read(config::Reader& in, Config& cfg) {
  in.optional("resolve_timeout", cfg.resolve_timeout, config::positive(),
              "an issue whose producer sends no resolve ends this long after its last report");
  in.optional("dedup_window", cfg.dedup_window, config::positive(),
              "events with the same source and id are dropped for this long");
  in.optional("retention", cfg.retention, config::positive(),
              "resolved issues and ended runs are remembered this long");
  in.optional("job_lost_after", cfg.job_lost_after,
              "raise job_lost when a run has shown no sign of life for this long; 0s = never");
  in.optional("max_future", cfg.max_future, config::positive(),
              "an issue that begins further ahead than this counts as begun on arrival");
  in.optional("catchup_hold_max", cfg.catchup_hold_max, config::positive(),
              "at the start and while the input is behind, messages wait this long for the backlog "
              "to be read, so that it makes one message per group");
  in.optional("inhibit_settle", cfg.inhibit_settle,
              config::between(core::Duration::zero(), core::Duration(std::chrono::minutes(5))),
              "a target of an inhibit rule waits this long for issues that are still to be read");
  std::string on_regroup = cfg.close_regrouped ? "close_and_reopen" : "leave";
  in.optional("on_regroup", on_regroup, config::one_of({"close_and_reopen", "leave"}),
              "what becomes of an open incident whose route or grouping a new configuration takes "
              "away: it is closed there, or left to people");
  cfg.close_regrouped = on_regroup == "close_and_reopen";
  in.optional("ack_timeout", cfg.ack_timeout, config::positive(),
              "an acknowledgement without an end of its own lasts this long; then people are "
              "reminded");
  in.section("limits", "past them issues share an overflow group; nothing is dropped",
             [&](config::Reader& limits) {
               limits.optional("max_groups", cfg.max_groups, config::at_least<std::uint64_t>(1),
                               "groups at one time");
               limits.optional("max_groups_per_route", cfg.max_groups_per_route,
                               config::at_least<std::uint64_t>(1), "groups of one route");
               limits.optional("max_members_per_group", cfg.max_members_per_group,
                               config::at_least<std::uint64_t>(1), "issues in one group");
               limits.optional("dedup_max", cfg.dedup_max, config::at_least<std::uint64_t>(1),
                               "events remembered for dedup_window");
               limits.optional("owed_max_age", cfg.owed_max_age, config::positive(),
                               "a resolve that could not be told is dropped after this long");
             });
}

}  // namespace tocsin::routing
