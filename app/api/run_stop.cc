#include "app/api/run_stop.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "actions/actions.h"
#include "app/serve/problem.h"
#include "app/view/which_run.h"
#include "core/json.h"
#include "core/text.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Value;
using core::ValueMap;

constexpr std::size_t kMostOfAStopOrder = 16 * 1024;
constexpr std::size_t kMostOfAReason = 2000;
constexpr auto kPaceComes = 10s;  // ranks that have just started tell it by then

/// What the body says.
struct StopOrder {
  std::uint32_t attempt = 0;
  std::string reason;
  std::string mode;
};

core::Status take_order_field(const std::string& name, const Value& value, StopOrder& out) {
  static constexpr std::array<std::string_view, 3> kModes{"checkpoint_then_stop", "stop", "pause"};
  const auto* text = core::as<std::string>(value);
  if (name == "attempt") {
    const auto* number = core::as<std::int64_t>(value);
    if (number == nullptr || *number < 1 || *number > std::int64_t{UINT32_MAX})
      return core::invalid_argument("attempt: expected the number of the run's newest attempt");
    out.attempt = static_cast<std::uint32_t>(*number);
    return core::ok();
  }
  if (name == "reason") {
    if (text == nullptr || text->empty() || text->size() > kMostOfAReason)
      return core::invalid_argument("reason: expected a text of 1 to 2000 bytes");
    out.reason = *text;
    return core::ok();
  }
  if (name == "mode") {
    if (text == nullptr || std::find(kModes.begin(), kModes.end(), *text) == kModes.end()) {
      return core::invalid_argument("mode: expected checkpoint_then_stop, stop or pause");
    }
    out.mode = *text;
    return core::ok();
  }
  const std::string near = core::nearest(name, {"attempt", "reason", "mode"});
  return core::invalid_argument("unknown field \"" + core::visible(name, 100) + "\"" +
                                (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

core::Result<StopOrder> read_stop_order(std::string_view json) {
  const auto body = core::parse_json(json, kMostOfAStopOrder);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  StopOrder out;
  for (const auto& [name, value] : *members) {
    if (const auto taken = take_order_field(name, value, out); !taken) return taken.error();
  }
  if (out.attempt == 0)
    return core::invalid_argument("attempt: expected; GET /api/v1/runs/{run} has it");
  if (out.reason.empty()) return core::invalid_argument("reason: expected: why is it stopped?");
  return out;
}

core::CurrentRun as_current(const core::JobEvent& run) {
  core::CurrentRun out;
  out.attempt = run.run.attempt;
  out.launch = run.launch;
  out.ended = run.phase == core::JobPhase::ended;
  out.world_size = run.world_size;
  out.step = run.step;
  out.step_seconds = run.step_seconds;
  out.step_at = run.time;
  return out;
}

std::optional<actions::HeldStop> held_stop(const TopicView& view, const core::RunUid& run) {
  const auto stop = view.stops().find(run);
  if (stop == view.stops().end()) return std::nullopt;
  const core::StopAnswers& answers = stop->second.told.answers;
  actions::HeldStop out{stop->second.command, false, false};
  const auto& newest = stop->second.newest;
  const bool again = newest && (newest->reason == "duplicate" || newest->reason == "too_late");
  out.refused =
      newest && newest->phase == "refused" && !again && newest->revision >= out.command.revision;
  out.accepted = answers.accepted > 0 || answers.stopped > 0;
  return out;
}

/// What was decided under the view's lock.
struct StopChoice {
  core::JobEvent run;
  actions::StopByHand wanted;
};

core::Error conflict(std::string why) { return {core::Code::failed_precondition, std::move(why)}; }

std::string name_of(const core::JobEvent& run) {
  return (run.run.job.empty() ? "" : core::visible(run.run.job) + ", ") + "run " +
         core::to_text(run.run.uid);
}

core::Result<StopChoice> choose_stop(const TopicView& view, const std::string& asked,
                                     const StopOrder& order, core::WallTime now) {
  auto run = which_run(view.runs(), asked, "");
  if (!run) return run.error();
  // A run that is lost may come back, and then finds what was asked.
  if (run->phase == core::JobPhase::ended && run->outcome != "lost") {
    return conflict(name_of(*run) + " has ended already: " +
                    (run->outcome.empty() ? "unknown" : core::visible(run->outcome)));
  }
  if (order.attempt != run->run.attempt) {
    return conflict("attempt " + std::to_string(order.attempt) + " of " + name_of(*run) +
                    " is not the newest: that is " + std::to_string(run->run.attempt));
  }
  // Of several ranks the step after which all leave is reckoned from their pace.
  if (run->world_size > 1 && !run->step_seconds && now - run->time <= kPaceComes) {
    return conflict(name_of(*run) +
                    " has just begun: its ranks have not told their pace; ask in 10 s");
  }
  actions::StopTerms terms;
  if (!order.mode.empty()) terms.mode = order.mode;
  StopChoice out;
  out.wanted =
      actions::stop_by_hand(terms, run->run, as_current(*run), held_stop(view, run->run.uid), now);
  out.run = std::move(*run);
  if (out.wanted.leave == actions::StopByHand::Leave::newer_attempt) {
    return conflict("attempt " + std::to_string(out.wanted.command.attempt) + " of " +
                    name_of(out.run) + " has begun; ask again for that one");
  }
  return out;
}

HttpAnswer asked_to_stop(int status, const StopChoice& choice, const char* state,
                         const std::string& detail) {
  return {status, core::to_json(ValueMap{{"command_id", choice.wanted.command.command_id},
                                         {"state", state},
                                         {"detail", detail}}) +
                      "\n"};
}

HttpAnswer stop_a_run(ApiDesk& desk, const ApiCall& call) {
  const auto order = read_stop_order(call.request.body);
  if (!order) return problem(order.error());
  core::Result<StopChoice> choice = StopChoice{};
  const core::WallTime now = desk.clock.now();
  const auto seen = desk.view.read([&](const TopicView& view) {
    choice = choose_stop(view, call.request.in_path.find("run")->second, *order, now);
  });
  if (!seen) return problem(seen.error());
  if (!choice) return problem(choice.error());
  core::Command& command = choice->wanted.command;
  const std::string who = name_of(choice->run);
  if (choice->wanted.leave == actions::StopByHand::Leave::under_way)
    return asked_to_stop(200, *choice, "under_way", who + " was asked to stop before");
  command.requested_by = call.who.name;
  command.reason.summary = order->reason;
  if (call.query.value("dry_run") == "true") {
    return asked_to_stop(200, *choice, "dry_run",
                         "would ask " + who + ", attempt " + std::to_string(command.attempt) +
                             "; nothing was written");
  }
  ValueMap after{{"command_id", command.command_id},
                 {"attempt", std::uint64_t{command.attempt}},
                 {"mode", core::text_at(command.args, "mode")},
                 {"reason", order->reason}};
  const std::vector<core::OutRecord> records{
      audit_of(call, now, "stop.requested", core::to_text(choice->run.run.uid), {},
               std::move(after)),
      ingest::encode_command(command, "/" + desk.cluster + "/api"),
      ingest::encode_issue(actions::stopped_by_hand_issue(command, choice->run, desk.cluster))};
  if (const auto sent = desk.writer.write(records); !sent) return problem(sent.error());
  desk.log.info("api_stop_requested", {{"id", command.command_id},
                                       {"run", core::to_text(choice->run.run.uid)},
                                       {"by", call.who.name},
                                       {"client", std::string(call.request.client)}});
  return asked_to_stop(202, *choice, "requested", "asked " + who + " to stop");
}

}  // namespace

std::vector<ApiRoute> run_stop_routes(ApiDesk& desk) {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  return {{"POST",
           "/api/v1/runs/{run}/stop",
           ApiRole::stopper,
           "Ask a run to stop",
           [&desk](const ApiCall& call) { return stop_a_run(desk, call); },
           {run, {"dry_run", ParameterType::flag, "true: only say what would be asked"}},
           {{"StopOrder"}},
           {{200, "it was asked before, or would be asked", "StopAsked"},
            {202, "it is asked", "StopAsked"}}}};
}

}  // namespace tocsin::app
