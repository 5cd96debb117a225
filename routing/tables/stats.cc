#include "routing/tables/stats.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace tocsin::routing {
namespace {

struct Item {
  std::string_view name;
  std::string_view help;
  std::uint64_t Stats::*value;
};

constexpr std::array kCounters{
    Item{"tocsin_router_events_duplicate_total", "issue events seen before", &Stats::duplicates},
    Item{"tocsin_router_events_stale_total", "events older than what is known", &Stats::stale},
    Item{"tocsin_router_events_clamped_total", "issues that began too far in the future",
         &Stats::clamped},
    Item{"tocsin_router_events_unlabelled_total", "issue events without labels", &Stats::rejected},
    Item{"tocsin_router_events_late_total",
         "issues of a run that had ended, or of an earlier attempt", &Stats::late_issues},
    Item{"tocsin_router_dedup_evicted_total",
         "event ids forgotten within dedup_window because there were more than dedup_max",
         &Stats::seen_evicted},
    Item{"tocsin_router_orphan_resolves_total", "resolves of what nobody was told",
         &Stats::orphan_resolves},
    Item{"tocsin_router_inhibited_total", "inhibited members, per flush and inhibit rule",
         &Stats::inhibited},
    Item{"tocsin_router_muted_total", "members muted by time, per flush and time interval",
         &Stats::muted},
    Item{"tocsin_router_notifications_decided_total", "messages decided", &Stats::notifications},
    Item{"tocsin_router_issues_truncated_total", "issues that a message counts and does not list",
         &Stats::truncated},
    Item{"tocsin_router_untold_total", "episodes whose message never arrived: they are told again",
         &Stats::untold},
};

constexpr std::array kGauges{
    Item{"tocsin_router_issues_known", "issues in the state", &Stats::issues},
    Item{"tocsin_router_runs", "runs in the state", &Stats::runs},
    Item{"tocsin_router_dedup_ids", "event ids remembered", &Stats::seen},
    Item{"tocsin_router_undelivered", "messages decided and not yet delivered or given up",
         &Stats::undelivered},
    Item{"tocsin_router_silences_matching_nothing", "silences in force that match no firing issue",
         &Stats::silences_unmatched},
    Item{"tocsin_router_inhibit_sources", "sources of inhibit rules, per issue and rule",
         &Stats::inhibitors},
    Item{"tocsin_router_held_back", "flushes and expiries that wait for the end of a catch-up",
         &Stats::waiting},
};

double seconds_since(const std::optional<core::WallTime>& then, core::WallTime now) {
  if (!then) return 0;
  return std::max(0.0, std::chrono::duration<double>(now - *then).count());
}

}  // namespace

void for_each_counter(
    const Stats& stats,
    core::FunctionRef<void(std::string_view, std::string_view, std::uint64_t)> each) {
  for (const Item& item : kCounters) each(item.name, item.help, stats.*item.value);
}

void for_each_gauge(const Stats& stats, core::WallTime now,
                    core::FunctionRef<void(std::string_view, std::string_view, double)> each) {
  for (const Item& item : kGauges) {
    each(item.name, item.help, static_cast<double>(stats.*item.value));
  }
  each("tocsin_router_oldest_undelivered_seconds", "age of the oldest message not yet delivered",
       seconds_since(stats.oldest_undelivered, now));
  each("tocsin_router_overdue_seconds", "how late the router is with what is due first",
       seconds_since(stats.next_due, now));
}

}  // namespace tocsin::routing
