#include "routing/tables/intake.h"

#include <algorithm>
#include <utility>

#include "core/identity.h"
#include "core/visible_text.h"

namespace tocsin::routing {

using core::Issue;
using core::Resolution;
using core::WallTime;

namespace {

/// What belongs to one end (its issues, the answers to a stop, how the job ended) comes within this.
constexpr core::Duration kEndSettles = std::chrono::seconds(2);

/// Of what a far side said, in bytes.
constexpr std::size_t kMaxSaid = 200;

Issue builtin_issue(const std::string& source, RouterIssue which, core::Labels labels,
                    WallTime now) {
  const std::string_view rule = own_issue(which).name;
  Issue issue;
  labels.set("rule", rule);
  issue.severity = which == RouterIssue::watchdog ? core::Severity::info : core::Severity::error;
  labels.set("severity", to_string(issue.severity));
  issue.labels = std::move(labels);
  issue.source = source;
  issue.rule = issue.rule_type = rule;
  issue.time = issue.starts_at = now;
  return issue;
}

/// It reports the next launch of the run whose issue still fires.
bool of_next_attempt(const IssueState& known, const Issue& report) {
  return known.firing && !report.run.uid.nil() && report.run.uid == known.issue.run.uid &&
         known.issue.run.attempt != 0 && report.run.attempt > known.issue.run.attempt;
}

bool leads_somewhere(const IssueState& state) {
  return state.leaves != nullptr && !state.leaves->empty();
}

/// Is some integration still to hear that the present episode is over?
bool told_anywhere(const IssueState& state) {
  return std::any_of(state.groups.begin(), state.groups.end(), [&](const Group* group) {
    return concerns(*group->logs, state.key, state.episode);
  });
}

}  // namespace

void Intake::show(EachFigure each) const {
  routing::show(
      events_of_,
      {"tocsin_router_events_received_total", "issue events read", "source_type", {}, 0, true},
      each);
}

// ---- issues

void Intake::on_issue(Issue issue, WallTime now, const std::optional<Outline>& outline) {
  now_ = now;
  ++stats_.events;
  add_to(events_of_, source_type(issue.source));
  if (issue.labels.empty()) {
    ++stats_.rejected;
    return;
  }
  if (dedup_.seen(issue.source, issue.event_id, now)) {
    ++stats_.duplicates;
    return;
  }
  bool clamped = false;
  Issue normal = normalized(std::move(issue), now, options_.limits.max_future, clamped);
  stats_.clamped += clamped ? 1 : 0;
  follow(core::to_text(normal.run.uid), runs_.note(normal, now));
  IssueState& state = report(normal, now);
  if (outline) issues_.outline(state, normal, *outline);
  tell_overflows();
}

/// Everything that must be so for the event to be a repeat is looked at before anything is done.
bool Intake::on_repeat(const Repeat& repeat, WallTime now) {
  Said said{repeat.source, repeat.sequence, repeat.time, repeat.starts_at};
  if (said.time == WallTime{}) said.time = now;
  if (said.starts_at == WallTime{}) said.starts_at = said.time;
  if (said.starts_at > now + options_.limits.max_future) return false;
  IssueState* const state = issues_.said_again(repeat.outline, said);
  if (state == nullptr || !leads_somewhere(*state) || !state->issue.caused_by.empty()) return false;
  if (!runs_.nothing_to_note(state->issue.run, now)) return false;
  now_ = now;
  ++stats_.events;
  add_to(events_of_, source_type(repeat.source));
  if (dedup_.seen(repeat.source, repeat.event_id, now)) {
    ++stats_.duplicates;
    return true;
  }
  issues_.say_again(*state, said, now);
  tell_overflows();
  return true;
}

IssueState& Intake::report(const Issue& normal, WallTime now) {
  IssueState& state = issues_.of(normal.labels);
  merge(state, normal, now);
  return state;
}

void Intake::merge(IssueState& state, const Issue& normal, WallTime now) {
  if (of_next_attempt(state, normal)) end(state, Resolution::superseded, normal.starts_at);
  const bool untold = !state.firing && told_anywhere(state);
  switch (issues_.merge(state, normal, now, untold)) {
    case Effect::stale:
      ++stats_.stale;
      return;
    case Effect::orphan:
      return tell_outside(state, now);
    case Effect::began:
    case Effect::resumed:
      return began(state, now);
    case Effect::ended:
      return ended(state, now);
    case Effect::repeated:
      // It leads where it led, unless that hangs on another issue, or on routes that are new.
      if (leads_somewhere(state) && state.issue.caused_by.empty()) return;
      [[fallthrough]];
    case Effect::updated:
      groups_.change_all_of(state);
      if (state.firing) groups_.route(state, now, false);
      return;
  }
}

void Intake::began(IssueState& state, WallTime now) {
  groups_.change_all_of(state);
  groups_.route(state, now, true);
  flaps_.began(state, now);
  if (const auto over = runs_.over(state.issue, now)) {
    // Reported after its run had ended or gone on to another attempt: nobody would resolve it any
    // more. It is news all the same.
    ++stats_.late_issues;
    end(state, over->first, over->second);
  }
  // How a run ended belongs to what is told of its end.
  if (outlives_its_run(state.issue)) groups_.pull(state, now + kEndSettles);
}

void Intake::ended(IssueState& state, WallTime at) {
  groups_.change_all_of(state);
  // The end of a run is news within seconds; what its ranks said of a stop comes with it.
  const Resolution how = state.issue.resolution;
  // So is an issue that had Tocsin stop the run and recovered before the run was gone.
  const bool stopped = how == Resolution::recovered && runs_.stopped_for(state.issue);
  if (how == Resolution::job_ended || how == Resolution::superseded || stopped) {
    groups_.pull(state, std::max(at, now_) + kEndSettles);
  }
  tell_outside(state, at);
}

/// Groups see the end of a member at their next flush; of what is in none, those hear who knew it.
void Intake::tell_outside(IssueState& state, WallTime at) {
  if (!state.groups.empty() || state.issue.shadow) return;
  if (!groups_.route_resolved(state, at)) ++stats_.orphan_resolves;
}

void Intake::end(IssueState& state, Resolution resolution, WallTime at) {
  if (issues_.end(state, resolution, at, now_)) ended(state, at);
}

void Intake::lose(const Agenda::Entry& due) { follow(due.key, runs_.lose(due)); }

void Intake::expire(const Agenda::Entry& due) {
  if (IssueState* issue = issues_.state_of(due.key)) end(*issue, Resolution::expired, due.at);
}

// ---- what runs mean for issues

void Intake::on_stop(const core::Command& command, WallTime now) {
  now_ = now;
  follow(core::to_text(command.run), runs_.note(command, now));
}

void Intake::on_ack(const core::Ack& ack, WallTime now) {
  follow(core::to_text(ack.run), runs_.note(ack, now));
}

void Intake::on_job(const core::JobEvent& event, WallTime now) {
  now_ = now;
  bool stale = false;
  follow(core::to_text(event.run.uid), runs_.note(event, now, stale));
  stats_.stale += stale ? 1 : 0;
  tell_overflows();
}

void Intake::follow(const std::string& run, const RunEffects& effects) {
  for (const RunEffect& effect : effects) {
    switch (effect.kind) {
      case RunEffect::Kind::resolve:
        resolve_run(run, effect);
        break;
      case RunEffect::Kind::raise_lost:
        raise(RouterIssue::job_lost, effect.labels, effect.summary, effect.at);
        break;
      case RunEffect::Kind::pull:
        pull(run, effect.at);
        break;
      case RunEffect::Kind::clear_lost:
        clear(RouterIssue::job_lost, effect.labels, effect.at);
        break;
    }
  }
}

void Intake::pull(const std::string& run, WallTime at) {
  for (const std::string& key : issues_.firing_of(run)) {
    groups_.pull(*issues_.state_of(key), at);
  }
}

void Intake::resolve_run(const std::string& run, const RunEffect& effect) {
  for (const std::string& key : issues_.firing_of(run)) {
    IssueState& state = *issues_.state_of(key);
    const std::uint32_t attempt = state.issue.run.attempt;
    if (attempt < effect.first_attempt || attempt > effect.last_attempt) continue;
    if (effect.resolution != Resolution::superseded && outlives_its_run(state.issue)) continue;
    end(state, effect.resolution, effect.at);
  }
}

// ---- the router's own issues

void Intake::raise(RouterIssue which, core::Labels labels, std::string summary, WallTime now) {
  Issue issue = builtin_issue(options_.source, which, std::move(labels), now);
  const IssueState* known = issues_.state_of(core::issue_key(issue.labels));
  if (known != nullptr && known->firing) return;
  issue.summary = std::move(summary);
  issue.event_id = core::make_id("iss_", {issue.rule, core::fingerprint(issue.labels),
                                          std::to_string(core::nanoseconds(now)), "firing"});
  report(issue, now);
}

void Intake::clear(RouterIssue which, core::Labels labels, WallTime now) {
  const Issue issue = builtin_issue(options_.source, which, std::move(labels), now);
  IssueState* known = issues_.state_of(core::issue_key(issue.labels));
  if (known != nullptr) end(*known, Resolution::recovered, now);
}

void Intake::keep_watchdog(bool wanted, WallTime now) {
  now_ = now;
  if (wanted) {
    raise(RouterIssue::watchdog, {}, "Tocsin routes and delivers. Silence means that it does not.",
          now);
  } else {
    clear(RouterIssue::watchdog, {}, now);
  }
}

/// Telling of them may make further ones.
void Intake::tell_overflows() {
  for (auto news = capacity_.take_overflows(); !news.empty(); news = capacity_.take_overflows()) {
    for (const Overflow& one : news) {
      if (one.begins) {
        raise(RouterIssue::router_overflow, {{"route", one.route_id}},
              "route " + one.route_id +
                  " has more groups or members than allowed; see its overflow group",
              one.at);
      } else {
        clear(RouterIssue::router_overflow, {{"route", one.route_id}}, one.at);
      }
    }
  }
}

// ---- deliveries

void Intake::on_delivery(const core::Delivery& delivery, WallTime now) {
  Group* const group = groups_.find(delivery.route_id, delivery.group_key);
  if (group == nullptr) return;
  const auto settled = log_.settle(group->hash, delivery);
  if (!settled) return;
  stats_.untold += settled->forgotten;
  groups_.tell_again(*group, delivery.integration, settled->open_again, now);
  if (delivery.state == core::DeliveryState::cancelled && settled->forgotten > 0) {
    groups_.let_go(*group, now);
  }
  if (settled->changed && group->active()) groups_.change(*group);
  note_failure(*group, delivery, now);
  tell_overflows();
}

/// A backup is told of what never arrives, if there is one.
void Intake::note_failure(Group& group, const core::Delivery& delivery, WallTime now) {
  const bool dead = delivery.state == core::DeliveryState::dead;
  const bool lost = dead || delivery.state == core::DeliveryState::expired;
  const bool closes = delivery.kind == core::NotificationKind::close;
  if (!lost || closes || group.route == nullptr || !group.route->climbs()) return;
  std::string what = dead ? "did not take this message" : "did not get this message in time";
  std::string said = core::visible(delivery.code, kMaxSaid);
  const std::string detail = core::visible(delivery.detail, kMaxSaid);
  if (!detail.empty()) said += (said.empty() ? "" : ": ") + detail;
  if (!said.empty()) what += " (" + said + ")";
  if (ladders_.failed(group.hash, delivery.integration, std::move(what))) groups_.pull(group, now);
}

}  // namespace tocsin::routing
