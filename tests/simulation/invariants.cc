#include "tests/simulation/invariants.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/simulation/approvals.h"
#include "tests/simulation/broker_log.h"
#include "tests/simulation/incidents.h"
#include "tests/simulation/launch_log.h"
#include "tests/simulation/reference.h"

namespace tocsin::simulation {
namespace {

class Checker {
 public:
  explicit Checker(World& world) : world_(world), launches_(world) {
    findings_.problems = world.problems();
  }

  Findings run() {
    issues();
    notifications();
    effects();
    told();
    stops();
    ends();
    leftovers();
    for (std::string& one : incident_problems(world_)) wrong(std::move(one));
    for (std::string& one : approval_problems(world_)) wrong(std::move(one));
    return std::move(findings_);
  }

 private:
  void wrong(std::string what) {
    // The first few of a kind say it all.
    if (findings_.problems.size() < 20) findings_.problems.push_back(std::move(what));
  }

  static bool is_row_rule(const std::string& rule) {
    return rule == "exploding_tensor" || rule == "all_zero";
  }

  /// Exactly once, and those of an evaluator to which nothing ever happened.
  void issues() {
    std::map<std::string, core::Issue> committed;
    std::vector<std::pair<core::RunUid, std::string>> twice;
    for (const auto& stored : world_.broker().records("issues")) {
      const auto decoded = ingest::decode_event(view_of(stored));
      if (!decoded) {
        wrong("an event of issues cannot be read: " + decoded.error().message);
        continue;
      }
      if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
        auto& last = last_attempt_[job->run.uid];
        last = std::max(last, job->run.attempt);
        attempts_[job->run.uid].insert(job->run.attempt);
        if (job->phase == core::JobPhase::ended) {
          ended_.insert({job->run.uid, job->run.attempt});
          revived_.erase(job->run.uid);
          ended_at_[job->run.uid] = job->time;
        } else if (job->time > ended_at_[job->run.uid]) {
          revived_.insert(job->run.uid);  // not by what was only late on the way
        }
        if (job->outcome == "lost") lost_.insert(job->run.uid);
      }
      const auto* issue = std::get_if<core::Issue>(&decoded->event);
      if (issue == nullptr) continue;
      // The first three are said by whoever reads the acks or decides on stops, at least once, always
      // with the same id; the others are made of the faults themselves, not of what a run did.
      if (issue->rule == "stop_failed" || issue->rule == "stop_suspect" ||
          issue->rule == "stop_waits" || issue->rule.starts_with("delivery_")) {
        continue;
      }
      // It was taken for ended, and heard of again.
      if (is_row_rule(issue->rule) && ended_.contains({issue->run.uid, issue->run.attempt})) {
        lost_.insert(issue->run.uid);
      }
      if (issue->rule == "state_incomplete" && world_.retention_struck()) {
        // People are told which partition's state lost input; its runs cannot be what they were.
        incomplete_.insert(std::stoi(issue->labels.get("partition")));
        continue;
      }
      if (issue->rule == "stalled_training_rule") stalled_.insert(issue->run.uid);
      by_id_.emplace(issue->event_id, *issue);
      newest_[issue_key_of(*issue)] = *issue;
      for (const core::Cause& cause : issue->caused_by) {
        causes_[issue_key_of(*issue)].insert(cause.issue_key);
      }
      const auto [first, fresh] = committed.emplace(issue->event_id, *issue);
      // At least once: after a fault it may be said again, with the same id.
      if (world_.scenario().at_least_once) continue;
      if (!fresh && !of_two_launches(first->second, *issue)) {
        twice.emplace_back(issue->run.uid,
                           "there twice, now at " + std::to_string(stored.partition) + "@" +
                               std::to_string(stored.offset) + ": " + describe(*issue));
      }
    }
    // Whose state lost what it had said, and says that, may say it again: the id is the same.
    for (auto& [run, what] : twice) {
      if (!lost_input(run)) wrong(std::move(what));
    }
    compare(committed, reference_of(world_));
  }

  /// A process that came along from an older launch, and the one that replaced it, may find the
  /// same of the same step: one id, as rule, attempt, unit and step are the same.
  [[nodiscard]] bool of_two_launches(const core::Issue& one, const core::Issue& two) const {
    const auto launch = [&](const core::Issue& issue) -> std::optional<std::size_t> {
      if (issue.evidence.data_refs.empty()) return std::nullopt;
      const auto& data = issue.evidence.data_refs.back();
      return launches_.that_sent(data.partition, data.last);
    };
    if (one.starts_at != two.starts_at && launches_.mingled(one.run.uid)) return true;
    const auto first = launch(one);
    const auto second = launch(two);
    return first && second && *first != *second;
  }

  void compare(const std::map<std::string, core::Issue>& committed, const Reference& expected) {
    const auto compared = [&](const core::Issue& issue) {
      if (lost_input(issue.run.uid)) return false;
      // What only a clock finds, and what ends because a clock ended the run.
      if (issue.rule == "stalled_training_rule" || issue.rule == "clock_skew") return false;
      if (world_.scenario().timeless) return true;
      const auto theirs = expected.attempts.find(issue.run.uid);
      const auto ours = attempts_.find(issue.run.uid);
      // Where a clock had part in where an attempt ends, or ended what was heard of again, units
      // begin anew at other steps.
      const bool same = (theirs == expected.attempts.end()) == (ours == attempts_.end()) &&
                        (ours == attempts_.end() || ours->second == theirs->second);
      return same && !lost_.contains(issue.run.uid) && is_row_rule(issue.rule) &&
             issue.status == core::IssueStatus::firing;
    };
    for (const auto& [id, issue] : expected.issues) {
      if (compared(issue) && !committed.contains(id)) wrong("missing: " + describe(issue));
    }
    for (const auto& [id, issue] : committed) {
      if (compared(issue) && !expected.issues.contains(id)) {
        wrong("should not be: " + describe(issue));
      }
    }
  }

  /// Retention took records of the run that a reader had still to see, and that was said.
  [[nodiscard]] bool lost_input(const core::RunUid& run) const {
    const auto partition = launches_.partition_of(run);
    return partition && incomplete_.contains(*partition);
  }

  static std::string describe(const core::Issue& issue) {
    std::string labels;
    for (const auto& [name, value] : issue.labels.entries()) labels += " " + name + "=" + value;
    return std::string(core::to_string(issue.status)) + " " + issue.event_id + " of " + issue.rule +
           " step " + std::to_string(issue.step.value_or(-1)) + " attempt " +
           std::to_string(issue.run.attempt) + labels;
  }

  /// Each decided once, each with one final state.
  void notifications() {
    std::map<std::string, int> finals;
    for (const auto& stored : world_.broker().records("router-outbox")) {
      const auto notification = ingest::decode_notification(view_of(stored));
      if (!notification) {
        wrong("a notification cannot be read: " + notification.error().message);
      } else if (!finals.emplace(notification->notification_id, 0).second) {
        wrong("notification " + notification->notification_id + " was decided twice");
      }
    }
    for (const auto& stored : world_.broker().records("router-deliveries")) {
      const auto delivery = ingest::decode_delivery(view_of(stored));
      if (!delivery) {
        wrong("a delivery cannot be read: " + delivery.error().message);
      } else if (delivery->state != core::DeliveryState::pending) {
        const auto it = finals.find(delivery->notification_id);
        if (it == finals.end()) {
          wrong("a delivery of " + delivery->notification_id + ", which nobody decided");
        } else {
          ++it->second;
        }
      }
    }
    for (const auto& [id, count] : finals) {
      if (count != 1) {
        wrong("notification " + id + " has " + std::to_string(count) + " final states");
      }
    }
  }

  void effects() {
    for (const auto& effect : world_.receivers().effects()) {
      if (!effect.led) wrong(effect.by + " told " + effect.notification_id + " without the lease");
      if (effect.finished) {
        wrong(effect.by + " told " + effect.notification_id + " again after it was finished");
      }
    }
  }

  static std::string issue_key_of(const core::Issue& issue) {
    return core::issue_key(issue.labels);
  }

  /// An end, or a later attempt, was seen for this attempt.
  bool ended(const core::RunRef& run) const {
    const auto it = last_attempt_.find(run.uid);
    return ended_.contains({run.uid, run.attempt}) ||
           (it != last_attempt_.end() && it->second > run.attempt);
  }

  /// What a row rule found and still stands is kept from nobody. (Others end with their run: the
  /// router may know that before people had to be told.)
  void told() {
    std::set<std::string> said;
    for (const auto& stored : world_.broker().records("router-outbox")) {
      const auto notification = ingest::decode_notification(view_of(stored));
      if (!notification || notification->receiver != "people") continue;
      for (const auto& one : notification->issues) said.insert(one.issue_key);
    }
    for (const auto& [key, issue] : newest_) {
      const bool stands = is_row_rule(issue.rule) && issue.status == core::IssueStatus::firing;
      if (stands && !said.contains(key) && !ended(issue.run) && !folded(key, said) &&
          !inhibited(issue) && !silenced(issue)) {
        wrong("nobody was told: " + describe(issue));
      }
    }
  }

  /// People do not want to hear of it, or did not until a moment ago.
  [[nodiscard]] bool silenced(const core::Issue& issue) const {
    const auto& all = world_.silencers().silences();
    const auto& faults = world_.scenario().faults;
    // Behind a clock that was put back lies the end of a silence for as long as it was put back.
    const bool moved = faults.clock_jump > 0 || faults.clock_hour > 0;
    return std::any_of(all.begin(), all.end(), [&](const Silenced& one) {
      if (moved && one.rule == issue.rule) return true;
      return one.holds(issue, world_.now()) ||
             one.holds(issue, world_.now() - std::chrono::minutes(1));
    });
  }

  /// A source of its run still stands.
  [[nodiscard]] bool inhibited(const core::Issue& issue) const {
    if (world_.scenario().inhibit_rules.empty() || issue.rule != "all_zero") return false;
    return std::any_of(newest_.begin(), newest_.end(), [&](const auto& one) {
      const core::Issue& source = one.second;
      return source.rule == "exploding_tensor" && source.run.uid == issue.run.uid &&
             source.status == core::IssueStatus::firing && !ended(source.run);
    });
  }

  /// It followed from one that people were told of, which still fires and is no less severe.
  [[nodiscard]] bool folded(const std::string& key, const std::set<std::string>& said) const {
    const auto causes = causes_.find(key);
    if (causes == causes_.end()) return false;
    return std::any_of(causes->second.begin(), causes->second.end(), [&](const std::string& one) {
      const auto cause = newest_.find(one);
      return cause != newest_.end() && said.contains(one) &&
             cause->second.status == core::IssueStatus::firing &&
             cause->second.severity >= newest_.at(key).severity;
    });
  }

  /// The record that led to this issue.
  std::optional<core::DataRef> data_behind(const std::string& event_id) const {
    const auto it = by_id_.find(event_id);
    if (it == by_id_.end() || it->second.evidence.data_refs.empty()) return std::nullopt;
    return it->second.evidence.data_refs.back();
  }

  /// It opened within ten seconds of the stop (docs/launches.md): where no key tells them apart, it may
  /// be a late rank of what is stopped.
  [[nodiscard]] bool opened_with(const Stopped& stop) const {
    const auto command = world_.commands().find(stop.by);
    return command != world_.commands().end() &&
           stop.opened <= command->second.issued_at + std::chrono::seconds(10);
  }

  /// Nobody is stopped because of an earlier launch. (Of what a later one leaves running,
  /// everything ends with it: one command stops all processes of a run that had opened by then.)
  void stops() {
    for (const auto& stop : world_.stopped()) {
      bool meant = false;
      std::string said;
      std::vector<std::string> reasons;
      if (!stop.event_id.empty()) reasons.push_back(stop.event_id);
      for (const auto& [id, command] : world_.commands()) {
        if (stop.event_id.empty() && command.run == stop.run) {
          reasons.push_back(command.reason.event_id);
        }
      }
      for (const std::string& reason : reasons) {
        const auto data = data_behind(reason);
        if (!data) continue;
        const auto from = launches_.that_sent(data->partition, data->last);
        if (!from) continue;
        said += " launch " + std::to_string(*from);
        meant = meant || *from >= stop.launch || launches_.are_one(stop.run, *from, stop.launch) ||
                (launches_.keys_agree(stop.run, *from, stop.launch) && opened_with(stop));
      }
      if (!meant && !lost_input(stop.run)) {
        wrong("launch " + std::to_string(stop.launch) + " of " + core::to_text(stop.run) +
              " rank " + std::to_string(stop.rank) + " was stopped by " + stop.by +
              ", which was meant for another:" + said);
      }
    }
  }

  /// Whoever is gone is told: at the latest by its silence, whatever its node's agent goes on
  /// sending, and whether that agent lived to see the end or not.
  void ends() {
    if (!world_.scenario().agent || world_.scenario().timeless) return;
    for (const auto& [run, attempt] : last_attempt_) {
      if (!ended_.contains({run, attempt}) && !lost_input(run)) {
        wrong("nobody was told that attempt " + std::to_string(attempt) + " of " +
              core::to_text(run) + " is over");
      }
      if (revived_.contains(run) && !lost_input(run)) {
        wrong("attempt " + std::to_string(attempt) + " of " + core::to_text(run) +
              " counts as alive, and everybody is gone");
      }
    }
    // Neither its start nor a heartbeat arrived: it may be no hook's, and has no end. Its silence has.
    for (const auto& [run, launch] : launches_.heard_of()) {
      if (!last_attempt_.contains(run) && !stalled_.contains(run) && !lost_input(run)) {
        wrong("nobody was told of launch " + std::to_string(launch) + " of " + core::to_text(run));
      }
    }
  }

  void leftovers() {
    const auto sizes = world_.broker().sizes();
    if (sizes.open_transactions != 0) wrong("transactions are still open");
    const auto dead = world_.broker().records("dlq");
    if (!dead.empty()) {
      std::string why;
      for (const auto& [name, value] : dead.front().record.headers) why += " " + name + "=" + value;
      wrong(std::to_string(dead.size()) + " records were refused:" + why);
    }
  }

  World& world_;
  const LaunchLog launches_;
  Findings findings_;
  std::map<core::RunUid, std::set<std::uint32_t>> attempts_;
  std::set<std::int32_t> incomplete_;  // partitions whose readers said that they lost input
  std::set<core::RunUid> lost_;        // by the clock, at some time
  std::map<core::RunUid, std::uint32_t> last_attempt_;
  std::set<std::pair<core::RunUid, std::uint32_t>> ended_;
  std::set<core::RunUid> stalled_;  // made no progress, at some time
  std::set<core::RunUid> revived_;  // their newest word is not an end
  std::map<core::RunUid, core::WallTime> ended_at_;
  std::map<std::string, core::Issue> by_id_;
  std::map<std::string, core::Issue> newest_;            // by issue key, in the order of the topic
  std::map<std::string, std::set<std::string>> causes_;  // that any of its reports named
};

}  // namespace

Findings check(World& world) { return Checker(world).run(); }

}  // namespace tocsin::simulation
