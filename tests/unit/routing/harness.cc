#include "tests/unit/routing/harness.h"

#include <exception>
#include <stdexcept>

namespace tocsin::routing {

using core::Issue;
using core::IssueStatus;

Integration webhook(const std::string& name) {
  Integration out;
  out.id = name;
  out.receiver = name;
  out.type = "webhook";
  return out;
}

namespace {

/// Whoever has one of these labels is silenced; the test changes them at any time.
class Silencer final : public Suppressor {
 public:
  explicit Silencer(const std::vector<std::pair<std::string, std::string>>& labels)
      : labels_(labels) {}
  void reasons(const Issue& issue, core::WallTime /*tick*/,
               std::vector<Suppression>& out) const override {
    for (const auto& [name, value] : labels_) {
      if (issue.labels.get(name) == value) out.push_back({"silence:" + name, Reach::all});
    }
  }
  [[nodiscard]] bool may_differ(const AnyMember& /*any_member*/, core::WallTime /*since*/,
                                core::WallTime /*now*/) const override {
    return true;
  }

 private:
  const std::vector<std::pair<std::string, std::string>>& labels_;
};

}  // namespace

Harness::Harness() {
  tree.receivers = {"oncall"};
  tree.group_by = {{"rule", "job"}};
  options.config_version = "v1";
  options.source = "/c1/router";
  options.suppressors.push_back(std::make_shared<Silencer>(silenced));
}

void Harness::open() {
  auto made = Router::create(tree, rule_actions, integrations, options);
  if (!made) throw std::runtime_error(made.error().message);
  router_ = std::move(*made);
  for (const auto& [key, value] : changelog) {
    if (const auto status = router_->restore(key, value); !status) {
      throw std::runtime_error(status.error().message);
    }
  }
  router_->restored(now_);
}

void Harness::at(core::Duration since) {
  const core::WallTime target = kStart + since;
  for (auto due = router_->next_deadline(); due && *due <= target; due = router_->next_deadline()) {
    now_ = std::max(now_, *due);
    router_->tick(now_);
    commit();
  }
  now_ = target;
}

void Harness::commit() {
  const std::size_t before = sent.size();
  keep(router_->take());
  if (!fate) return;
  for (std::size_t i = before; i < sent.size(); ++i) settle(sent[i], fate(sent[i]));
  keep(router_->take());
}

void Harness::keep(Output output) {
  for (auto& record : output.state) {
    if (record.value) {
      changelog[record.key] = *record.value;
    } else {
      changelog.erase(record.key);
    }
  }
  const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(sent, output.notifications);
  append(transitions, output.transitions);
  append(decisions, output.decisions);
  append(further, output.further);
  append(control, output.control);
}

Issue Harness::issue(const core::Labels& labels, IssueStatus status) {
  Issue out;
  out.source = "/c1/rules/" + labels.get("rule");
  out.sequence = ++sequence_;
  out.event_id = "iss_" + std::to_string(sequence_);
  out.time = out.starts_at = now_;
  out.status = status;
  out.labels = labels;
  out.rule = labels.get("rule");
  out.severity = core::severity_from(labels.get("severity")).value_or(core::Severity::error);
  if (status == IssueStatus::resolved) out.ends_at = now_;
  if (const auto uid = core::parse_run_uid(labels.get("run_uid"))) out.run.uid = *uid;
  return out;
}

void Harness::report(const Issue& issue) {
  router_->on_issue(issue, now_);
  commit();
}

void Harness::fire(const core::Labels& labels) { report(issue(labels, IssueStatus::firing)); }
void Harness::resolve(const core::Labels& labels) { report(issue(labels, IssueStatus::resolved)); }

void Harness::job(core::JobPhase phase, std::uint32_t attempt) {
  core::JobEvent event;
  event.phase = phase;
  event.run.uid = *core::parse_run_uid(kRun);
  event.run.attempt = attempt;
  event.run.job = "digits";
  event.time = now_;
  router_->on_job(event, now_);
  commit();
}

void Harness::deliver(const core::Notification& notification, core::DeliveryState state) {
  settle(notification, state);
  commit();
}

void Harness::settle(const core::Notification& notification, core::DeliveryState state) {
  core::Delivery delivery;
  delivery.notification_id = notification.notification_id;
  delivery.integration = notification.integration;
  delivery.route_id = notification.route_id;
  delivery.group_key = notification.group_key;
  delivery.kind = notification.kind;
  delivery.state = state;
  router_->on_delivery(delivery, now_);
}

std::vector<std::string> Harness::said() {
  std::vector<std::string> out;
  for (; read_ < sent.size(); ++read_) {
    const core::Notification& note = sent[read_];
    out.push_back(note.reason + " " + std::string(to_string(note.kind)) + " " + note.integration +
                  " " + std::to_string(note.firing_count) + "/" +
                  std::to_string(note.resolved_count) + (note.firing ? "" : " over"));
  }
  return out;
}

}  // namespace tocsin::routing
