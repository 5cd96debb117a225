#include "actions/stop/stop_settings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "actions/contract/label_is.h"

namespace tocsin::actions {
namespace {

using core::Duration;

constexpr std::string_view kOfRoute = "route=";

void check_labels(config::Reader& in, const StopSettings& cfg) {
  for (const auto& [key, texts] :
       {std::pair{"allow", &cfg.guards.allow}, std::pair{"deny", &cfg.guards.deny},
        std::pair{"dry_run", &cfg.dry_run}}) {
    for (const std::string& text : *texts) {
      if (!parse_label(text)) in.error(key, "\"" + text + "\": expected label=value");
    }
  }
  if (cfg.approval == "never" || cfg.approval == "always") return;
  const auto list = label_list(cfg.approval);
  const bool good = !list.empty() && std::all_of(list.begin(), list.end(), [](const auto& one) {
    return parse_label(one).has_value();
  });
  if (!good) {
    in.error("approval",
             "\"" + cfg.approval + "\": expected never, always, or label=value, label=value");
  }
}

void check_settings(config::Reader& in, const StopSettings& cfg) {
  check_labels(in, cfg);
  if (cfg.terms.graceful > cfg.terms.total) in.error("deadline", "graceful is longer than total");
  if (cfg.terms.ack > cfg.terms.graceful) in.error("deadline", "ack is longer than graceful");
  const std::set<std::string> rules(cfg.quorum.rules.begin(), cfg.quorum.rules.end());
  if (!rules.empty() && rules.size() < cfg.quorum.count) {
    in.error("quorum", "count is " + std::to_string(cfg.quorum.count) + ", and rules names " +
                           std::to_string(rules.size()) + ": it would never be met");
  }
  if (cfg.prefix.empty() && cfg.max_jobs != 1) {
    in.error("max_jobs", "without a prefix the run of the issue is stopped: expected a prefix");
  }
}

void read_quorum(config::Reader& in, StopSettings& cfg) {
  in.section("quorum", "how many rules must fire for the run", [&](config::Reader& quorum) {
    quorum.optional("count", cfg.quorum.count, config::between<std::uint64_t>(1, 1000),
                    "distinct rules …");
    quorum.optional("rules", cfg.quorum.rules, "… of these; empty: of any");
  });
}

void read_bounds(config::Reader& in, StopSettings& cfg) {
  in.section("max_stops", "blast radius of this action", [&](config::Reader& limit) {
    limit.optional("count", cfg.limit.count, config::at_least<std::uint64_t>(1), "runs …");
    limit.optional("per", cfg.limit.per, config::positive(), "… in this time");
  });
  in.section("max_fraction",
             "a rule that flags more of the running jobs is suspected: its stops wait",
             [&](config::Reader& bound) {
               bound.optional("of_running", cfg.fraction.fraction, config::between(0.0, 1.0),
                              "share of the jobs that run; 1: no bound");
               bound.optional("per", cfg.fraction.per, config::positive(), "flagged in this time");
               bound.optional("min_jobs", cfg.fraction.min_jobs, config::at_least<std::uint64_t>(1),
                              "of fewer running jobs nothing is concluded");
             });
}

}  // namespace

std::string StopSettings::held_dry(const core::Issue& issue, const std::string& route_id) const {
  if (!armed) return "not armed";
  for (const std::string& text : dry_run) {
    const bool of_route = text.starts_with(kOfRoute) && text.substr(kOfRoute.size()) == route_id;
    if (of_route || meets(issue, text)) return "dry_run: " + text;
  }
  return {};
}

std::string StopSettings::wants_word(const core::Issue& issue) const {
  if (approval == "never") return {};
  if (approval == "always") return "approval: always";
  for (const std::string& text : label_list(approval)) {
    if (meets(issue, text)) return "approval: " + text;
  }
  return {};
}

std::string StopSettings::intent() const {
  std::string out = armed ? "armed: " : "dry run, not armed: would ";
  out += armed ? "asks " : "ask ";
  out += prefix.empty()
             ? "the run"
             : "up to " + std::to_string(max_jobs) + " running jobs named \"" + prefix + "…\"";
  out += " to " + terms.mode + ", ";
  out += terms.mode == "pause" ? "and signals nothing on a node"
                               : "SIGTERM after " + core::to_text(terms.ack) + " without an answer";
  if (terms.mode != "pause") {
    out +=
        terms.allow_force ? ", SIGKILL " + core::to_text(terms.grace) + " later" : ", no SIGKILL";
  }
  if (quorum.wanted()) out += "; " + std::to_string(quorum.count) + " rules must fire";
  out += "; at most " + std::to_string(limit.count) + " in " + core::to_text(limit.per);
  out += approval == "never"    ? "; asks nobody"
         : approval == "always" ? "; waits for approval"
                                : "; waits for approval where " + approval;
  std::string dry;
  for (const std::string& text : dry_run) dry += (dry.empty() ? "" : ", ") + text;
  if (armed && !dry.empty()) out += "; dry run where " + dry;
  return out;
}

void read(config::Reader& in, StopSettings& cfg) {
  in.optional("armed", cfg.armed, "false: dry run, everything is decided and nothing is sent");
  in.optional("dry_run", cfg.dry_run,
              "label=value, or route=<id>: where one holds, nothing is sent although it is armed");
  in.optional("mode", cfg.terms.mode, config::one_of({"stop", "checkpoint_then_stop", "pause"}),
              "what the training loop is asked to do");
  in.section("deadline", "from the command's issue", [&](config::Reader& deadline) {
    deadline.optional("ack", cfg.terms.ack, config::positive(),
                      "the loop has accepted, else the process gets SIGTERM");
    deadline.optional("graceful", cfg.terms.graceful, config::positive(),
                      "checkpoint and end, else the process gets SIGTERM");
    deadline.optional("total", cfg.terms.total, config::positive(), "then the stop has failed");
  });
  in.optional("grace", cfg.terms.grace, config::positive(), "from SIGTERM to SIGKILL");
  in.optional("allow_force", cfg.terms.allow_force, "SIGKILL is allowed");
  in.optional("expires", cfg.terms.expires, config::positive(),
              "a command that nobody has taken by then is void");
  in.optional("allow", cfg.guards.allow, "label=value; all must hold, else no stop");
  in.optional("deny", cfg.guards.deny, "label=value; if any holds, no stop");
  in.optional("min_step", cfg.guards.min_step, config::at_least<std::int64_t>(0),
              "no stop before it");
  in.optional("min_consecutive", cfg.guards.min_consecutive, config::at_least<std::uint64_t>(1),
              "how often the rule must have seen it");
  in.optional("prefix", cfg.prefix,
              "stops the running jobs whose name begins so, instead of the run of the issue");
  in.optional("max_jobs", cfg.max_jobs, config::at_least<std::uint64_t>(1),
              "more matches of prefix: nothing is stopped");
  read_quorum(in, cfg);
  read_bounds(in, cfg);
  in.optional("approval", cfg.approval,
              "never, always, or label=value, …: such a stop waits for a person's word; then "
              "max_stops waits for it too");
  in.optional("approval_timeout", cfg.approval_timeout,
              config::between<Duration>(std::chrono::seconds(1), std::chrono::hours(5 * 24)),
              "how long it waits");
  in.optional("on_approval_timeout", cfg.on_approval_timeout, config::one_of({"cancel", "proceed"}),
              "what follows then");
  check_settings(in, cfg);
}

}  // namespace tocsin::actions
