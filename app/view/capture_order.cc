#include "app/view/capture_order.h"

#include <algorithm>
#include <utility>

#include "core/identity.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kLeastAhead = 5;  // steps
constexpr std::int64_t kMostAhead = 100'000;
constexpr double kLongestReport = 60;         // seconds that a step is carried on to now
constexpr core::Duration kLeastExpiry = 30s;  // of a profile
constexpr std::int64_t kAdvisedOfATrace = 2;  // steps

core::Value profile_of(const CaptureOrder& order) {
  if (order.kind == CaptureOrder::Kind::stacks) return core::ValueMap{{"kind", "stacks"}};
  return core::ValueMap{
      {"kind", "trace"}, {"from_step", order.from.value_or(0)}, {"steps", order.steps}};
}

core::Value plan_of(const CaptureOrder& order) {
  core::ValueMap collections;
  for (const std::string& name : order.collections) {
    core::ValueMap body;
    core::ValueList statistics(order.statistics.begin(), order.statistics.end());
    if (!statistics.empty()) body.emplace_back("statistics", std::move(statistics));
    if (order.raw) body.emplace_back("raw", true);
    collections.emplace_back(name, std::move(body));
  }
  return core::ValueMap{{"every", std::to_string(order.every) + " steps"},
                        {"collections", std::move(collections)}};
}

void make_profile(const CaptureOrder& order, CaptureAsked& out) {
  if (order.kind == CaptureOrder::Kind::trace) {
    out.from = order.from.value_or(0);
    out.until = out.from + order.steps;
  }
  // Without a launch: every rank may answer, also one that opened a moment ago. Who hears of it
  // later is not to begin then.
  out.command.expires_at = out.command.issued_at + std::max(order.wait, kLeastExpiry);
}

core::Value make_capture(const CaptureOrder& order, const core::JobEvent& run,
                         const core::Value& plan, const std::string& version, CaptureAsked& out) {
  const bool pauses = order.kind == CaptureOrder::Kind::pause;
  out.from = order.from.value_or(0);
  if (!pauses || order.steps > 0) {
    out.until = order.from.value_or(step_now(run, out.command.issued_at)) +
                (order.steps > 0 ? order.steps : CaptureOrder::kUsualSteps);
  }
  out.command.launch = run.launch;
  core::ValueMap args{{"version", version}};
  if (pauses) {
    args.emplace_back("pause", true);
  } else {
    args.emplace_back("plans", core::ValueList{plan});
  }
  if (out.from > 0) args.emplace_back("not_before_step", out.from);
  if (out.until > 0) args.emplace_back("until_step", out.until);
  return args;
}

}  // namespace

std::string capture_slot_of(const std::string& person) {
  std::string name = person.substr(0, person.find('@'));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  return "capture/by-" + name;
}

std::string CaptureOrder::slot() const {
  if (profiles()) return "profile";
  return kind == Kind::pause ? kPauseSlot : capture_slot_of(person);
}

std::int64_t step_now(const core::JobEvent& run, core::WallTime now) {
  const std::int64_t known = std::max<std::int64_t>(0, run.step.value_or(0));
  if (!run.step_seconds || *run.step_seconds <= 0 || now <= run.time) return known;
  const double since = std::chrono::duration<double>(now - run.time).count();
  return known + static_cast<std::int64_t>(std::min(since, kLongestReport) / *run.step_seconds);
}

std::int64_t first_common_step(const core::JobEvent& run, core::WallTime now, double seconds) {
  const double ahead = seconds / std::max(run.step_seconds.value_or(1), 1e-6);
  const double bounded = std::min(ahead, static_cast<double>(kMostAhead));
  return step_now(run, now) + std::max(static_cast<std::int64_t>(bounded), kLeastAhead);
}

CaptureAsked capture_command(const CaptureOrder& order, const core::JobEvent& run,
                             core::WallTime now) {
  CaptureAsked out;
  core::Command& command = out.command;
  command.issued_at = now;
  const core::Value wanted = order.profiles() ? profile_of(order) : plan_of(order);
  const std::string version = core::params_hash(core::to_json(wanted, true));
  command.action = order.slot();
  command.command_id = core::command_id(run.run.uid, run.run.attempt, command.action,
                                        version + std::to_string(core::nanoseconds(now)));
  // Grows per slot, also after a withdrawal, of which the topic keeps nothing and the hook does.
  command.revision = static_cast<std::uint64_t>(core::nanoseconds(now) / 1'000'000);
  command.run = run.run.uid;
  command.attempt = run.run.attempt;
  command.ranks = order.ranks;
  command.requested_by = order.person;
  command.reason.summary = order.reason;
  if (order.profiles()) {
    make_profile(order, out);
    command.args = wanted;
  } else {
    command.args = make_capture(order, run, wanted, version, out);
  }
  return out;
}

std::vector<std::string> capture_cautions(const CaptureOrder& order) {
  std::vector<std::string> out;
  switch (order.kind) {
    case CaptureOrder::Kind::trace:
      out.emplace_back(
          "A trace slows the steps down while it runs, and the loop pauses when it ends.");
      out.emplace_back("It can raise the use of host and GPU memory a lot.");
      if (order.steps > kAdvisedOfATrace) {
        out.emplace_back("One or two steps are advised: a trace of " + std::to_string(order.steps) +
                         " steps is large.");
      }
      break;
    case CaptureOrder::Kind::more:
      if (order.raw) {
        out.emplace_back(
            "All elements of these tensors are sent, where the run allows it (capture.raw).");
      }
      out.emplace_back(
          "The budget of the run still holds: if captures cost more than capture.max_overhead, "
          "fewer steps are captured.");
      break;
    case CaptureOrder::Kind::pause:
      out.emplace_back("Rules over tensors have nothing to judge during a pause.");
      break;
    case CaptureOrder::Kind::stacks:
      break;
  }
  return out;
}

}  // namespace tocsin::app
