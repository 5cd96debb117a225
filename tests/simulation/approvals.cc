#include "tests/simulation/approvals.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ingest/ingest.h"
#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {
namespace {

using core::StopRequest;
using namespace std::chrono_literals;

/// A leader that is down, frozen or behind reads a word late.
constexpr core::Duration kHeardByThen = 1min;
constexpr const char* kByTime = "approval_timeout";

class ApprovalChecker {
 public:
  explicit ApprovalChecker(World& world)
      : world_(world),
        words_(world.deciders().words()),
        sent_(world.deciders().sent()),
        requests_(world.deciders().requests()) {
    for (const StopRequest& one : requests_) newest_[one.id] = one;
  }

  std::vector<std::string> run() {
    if (world_.scenario().approvals.words == 0) return {};
    never_unasked();
    at_most_once();
    words_are_kept();
    nothing_waits_on();
    who_expires_is_told();
    return std::move(problems_);
  }

 private:
  /// In time: before the time that decides where nobody does.
  [[nodiscard]] bool rejected(const std::string& id, core::WallTime asked_at) const {
    const auto until = std::find_if(requests_.begin(), requests_.end(), [&](const auto& one) {
                         return one.id == id && one.asked_at == asked_at;
                       })->until;
    return std::any_of(words_.begin(), words_.end(), [&](const StopWord& one) {
      return one.id == id && one.asked_at == asked_at && !one.approves && one.said < until;
    });
  }

  /// The requests to which the answer was yes before `at`: a person's, or that of the time that passed.
  [[nodiscard]] std::set<core::WallTime> approved(const SentStop& stop) const {
    std::set<core::WallTime> out;
    if (stop.approved_by == kDecider) {
      for (const StopWord& one : words_) {
        if (one.id == stop.id && one.approves && one.at <= stop.at) out.insert(one.asked_at);
      }
    }
    if (stop.approved_by == kByTime && world_.scenario().approvals.proceed) {
      for (const StopRequest& one : requests_) {
        const bool in_time = one.decided_at && *one.decided_at >= one.until;
        if (one.id == stop.id && one.decided_by == kByTime && in_time) out.insert(one.asked_at);
      }
    }
    return out;
  }

  /// No stop without a yes to the very request, and none after a no.
  void never_unasked() {
    for (const SentStop& stop : sent_) {
      const auto yes = approved(stop);
      if (yes.empty()) {
        wrong(stop.id,
              "was sent, and nobody had approved it (approved by \"" + stop.approved_by + "\")");
      } else if (std::all_of(yes.begin(), yes.end(), [&](core::WallTime asked_at) {
                   return rejected(stop.id, asked_at);
                 })) {
        wrong(stop.id, "was sent, and somebody had rejected it");
      }
    }
  }

  /// A stop is written again for a launch of its attempt that has begun since, as another revision. Of a
  /// commit without an answer it may be there twice, and is the same: a hook obeys each revision once.
  void at_most_once() {
    std::map<std::pair<std::string, std::uint64_t>, const SentStop*> known;
    for (const SentStop& stop : sent_) {
      const SentStop& first =
          *known.emplace(std::pair(stop.id, stop.revision), &stop).first->second;
      if (first.issued_at != stop.issued_at || first.approved_by != stop.approved_by) {
        wrong(stop.id, "was sent twice as revision " + std::to_string(stop.revision));
      }
    }
  }

  [[nodiscard]] bool was_sent(const std::string& id) const {
    return std::any_of(sent_.begin(), sent_.end(),
                       [&](const SentStop& stop) { return stop.id == id; });
  }

  /// A yes leads to a stop, or to a reason why not; a no stands. Whoever dies, and when.
  void words_are_kept() {
    for (const StopWord& word : words_) {
      const StopRequest& last = newest_.at(word.id);
      if (last.asked_at != word.asked_at || was_sent(word.id)) continue;
      const bool stands = last.state == (word.approves ? "approved" : "rejected");
      const std::string now_is = "and at the end it is " + last.state + " by " + last.decided_by;
      if (!word.approves && !stands && !overtaken(word, last)) {
        wrong(word.id, "was rejected, " + now_is);
      }
      if (word.approves && !stands && last.decided_by != kDecider && !overtaken(word, last)) {
        wrong(word.id, "was approved, " + now_is);
      }
    }
  }

  /// A leader had decided at the same time, and its record came later.
  [[nodiscard]] bool overtaken(const StopWord& word, const StopRequest& last) const {
    return last.decided_at && (clock_moves() || *last.decided_at < word.said + kHeardByThen);
  }

  /// Half an hour after the last word nothing is left undone.
  void nothing_waits_on() {
    for (const auto& [id, last] : newest_) {
      if (last.state == "approved" && !was_sent(id)) wrong(id, "is approved, and was never sent");
      if (last.state == "waiting" && !clock_moves() && last.until + kHeardByThen < world_.now()) {
        wrong(id, "still waits, and its time has passed");
      }
    }
  }

  void who_expires_is_told() {
    std::set<std::string> told;
    for (const auto& stored : world_.broker().records("issues")) {
      const auto decoded = ingest::decode_event(view_of(stored));
      const auto* issue = decoded ? std::get_if<core::Issue>(&decoded->event) : nullptr;
      if (issue == nullptr || issue->rule != "stop_failed") continue;
      told.insert(core::text_at(core::Value(issue->evidence.values), "command_id"));
    }
    for (const auto& [id, last] : newest_) {
      if (last.state == "expired" && !told.contains(id)) {
        wrong(id, "has expired, and nobody was told");
      }
    }
  }

  [[nodiscard]] bool clock_moves() const {
    return world_.scenario().faults.clock_jump > 0 || world_.scenario().faults.clock_hour > 0;
  }

  void wrong(const std::string& id, const std::string& what) {
    problems_.push_back("stop " + id + " " + what);
  }

  World& world_;
  const std::vector<StopWord>& words_;
  const std::vector<SentStop>& sent_;
  std::vector<StopRequest> requests_;
  std::map<std::string, StopRequest> newest_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> approval_problems(World& world) { return ApprovalChecker(world).run(); }

}  // namespace tocsin::simulation
