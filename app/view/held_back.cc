#include "app/view/held_back.h"

#include <algorithm>

#include "app/view/ack_words.h"
#include "app/view/view_words.h"
#include "core/json.h"
#include "core/labels.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using core::WallTime;

std::string joined_visible(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + core::visible(name, 100);
  return out;
}

/// "silenced: " where nobody is told of it, or what else is held back.
std::string silenced_mark(const std::vector<HeldBack::Silenced>& silences) {
  bool untold = false;
  bool unstopped = false;
  for (const HeldBack::Silenced& one : silences) {
    untold = untold || one.actions != "stop_training";
    unstopped = unstopped || one.actions != "notify";
  }
  if (untold) return unstopped ? "silenced: " : "silenced (notify): ";
  return unstopped ? "silenced (stop_training): " : "";
}

/// "3fa9c2: loss is NaN": the source as people look it up.
std::string source_text(const TopicView& view, const std::string& key) {
  const auto found = view.issues().find(key);
  if (found == view.issues().end()) return core::visible(key, 100);
  const core::Issue& issue = found->second.newest;
  return short_id(core::fingerprint(issue.labels)) + ": " + core::visible(issue.summary, 200);
}

const routing::Silence* silence_of(const TopicView& view, const std::string& id) {
  const auto found = view.silences().find(id);
  return found == view.silences().end() ? nullptr : &found->second;
}

}  // namespace

std::vector<std::string> HeldBack::silenced_by() const {
  std::vector<std::string> out;
  for (const Silenced& one : silences) out.push_back(one.id);
  return out;
}

bool HeldBack::suppressed() const {
  return !silences.empty() || !inhibitors.empty() || !muted_by.empty();
}

bool still_fires(const TopicView& view, const core::Issue& issue, core::Duration resolve_timeout,
                 WallTime now) {
  if (issue.status != core::IssueStatus::firing) return false;
  if (!issue.explicit_expiry && issue.ends_at.value_or(issue.time + resolve_timeout) <= now)
    return false;
  return view.outlived(issue) == core::Resolution::none;
}

HeldBackView::HeldBackView(const TopicView& view, const RoutingSight& sight, WallTime now)
    : sight_(sight), now_(now) {
  for (const auto* silence : in_force(view, now)) {
    if (auto scope = routing::SilenceScope::of(*silence))
      silences_.push_back({{silence->id, silence->actions}, std::move(*scope)});
  }
  if (sight.inhibit_rules == nullptr || sight.inhibit_rules->empty()) return;
  inhibition_.emplace(*sight.inhibit_rules);
  for (const auto& [key, seen] : view.issues()) {
    const bool fires = still_fires(view, seen.newest, sight.resolve_timeout, now);
    if (fires || seen.newest.ends_at) inhibition_->add(key, seen.newest, fires, seen.since);
  }
}

/// Names of the intervals that mute every route it reaches; empty: somebody is told.
std::vector<std::string> HeldBackView::muting(const core::Labels& labels) const {
  std::vector<std::string> out;
  if (sight_.router == nullptr) return out;
  for (const auto& leaf : sight_.router->explain(labels).leaves) {
    const auto [known, fresh] = muted_.try_emplace(leaf.route_id);
    if (fresh) known->second = sight_.router->muted_by(leaf.route_id, now_);
    if (known->second.empty()) return {};
    for (const std::string& reason : known->second) {
      const std::string name = reason.substr(reason.find(':') + 1);
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
  }
  return out;
}

HeldBack HeldBackView::of(const TopicView& view, const std::string& key,
                          const TopicView::SeenIssue& seen) const {
  HeldBack out;
  const core::Issue& issue = seen.newest;
  if (issue.shadow || !still_fires(view, issue, sight_.resolve_timeout, now_)) return out;
  for (const InForce& one : silences_) {
    if (one.scope.matches(issue.labels)) out.silences.push_back(one.silence);
  }
  if (inhibition_) out.inhibitors = inhibition_->of(issue.labels, now_);
  out.muted_by = muting(issue.labels);
  if (!view.acknowledgements().empty()) {
    if (const auto* ack = acknowledged(view, key, seen, now_)) out.ack = *ack;
  }
  if (sight_.standing != nullptr) out.flapping_since = sight_.standing->flapping_since(key);
  return out;
}

std::string held_back_marks(const HeldBack& held) {
  std::string out = silenced_mark(held.silences);
  if (!held.inhibitors.empty()) {
    std::vector<std::string> rules;
    for (const auto& one : held.inhibitors) rules.push_back(one.rule);
    out += "inhibited by " + joined_visible(rules) + ": ";
  }
  if (!held.muted_by.empty()) out += "muted by " + joined_visible(held.muted_by) + ": ";
  if (held.ack) out += "acknowledged by " + core::visible(held.ack->by) + ": ";
  if (held.flapping_since) out += "flapping: ";
  return out;
}

std::vector<std::pair<std::string, std::string>> held_back_rows(const HeldBack& held,
                                                                const TopicView& view,
                                                                WallTime now) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const HeldBack::Silenced& one : held.silences) {
    const auto* silence = silence_of(view, one.id);
    std::string text = short_id(one.id);
    if (silence != nullptr) {
      text += " by " + silence->created_by + " until " + core::to_rfc3339(silence->ends_at) +
              (silence->comment.empty() ? "" : ": " + silence->comment);
    }
    if (!one.actions.empty()) text += " (holds back " + one.actions + ")";
    out.emplace_back("silenced", std::move(text));
  }
  for (const auto& one : held.inhibitors) {
    out.emplace_back("inhibited",
                     "by rule " + one.rule + ", because of " + source_text(view, one.source));
  }
  if (!held.muted_by.empty())
    out.emplace_back("muted", "every route, by " + joined_visible(held.muted_by));
  if (held.ack) out.emplace_back("acknowledged", ack_text(*held.ack, now));
  if (held.flapping_since) {
    out.emplace_back(
        "flapping", "since " + core::to_rfc3339(*held.flapping_since) + ": its ends are held back");
  }
  return out;
}

void add_held_back(core::ValueMap& out, const HeldBack& held) {
  const auto texts = [](const std::vector<std::string>& list) {
    return core::ValueList(list.begin(), list.end());
  };
  core::ValueList inhibitors;
  for (const auto& one : held.inhibitors) {
    inhibitors.push_back(core::ValueMap{{"rule", one.rule}, {"source", one.source}});
  }
  out.emplace_back("silenced_by", texts(held.silenced_by()));
  out.emplace_back("inhibited_by", std::move(inhibitors));
  out.emplace_back("muted_by", texts(held.muted_by));
  out.emplace_back("acked_by", held.ack ? core::Value(held.ack->by) : core::Value());
  out.emplace_back("flapping_since", held.flapping_since
                                         ? core::Value(core::to_rfc3339(*held.flapping_since))
                                         : core::Value());
}

core::ValueMap issue_with_held_back(const core::Issue& issue, const HeldBack& held) {
  constexpr std::size_t kMostOfAnIssue = 1U << 20;
  core::ValueMap out;
  const auto parsed = core::parse_json(ingest::issue_json(issue), kMostOfAnIssue);
  if (const auto* fields = parsed ? core::as<core::ValueMap>(*parsed) : nullptr) out = *fields;
  add_held_back(out, held);
  return out;
}

}  // namespace tocsin::app
