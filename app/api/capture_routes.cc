#include "app/api/capture_routes.h"

#include <algorithm>
#include <utility>

#include "app/api/capture_body.h"
#include "app/serve/problem.h"
#include "app/view/which_run.h"
#include "core/json.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

/// What was decided under the view's lock.
struct CaptureChoice {
  core::JobEvent run;
  CaptureAsked asked;
};

core::Error conflict(std::string why) { return {core::Code::failed_precondition, std::move(why)}; }

std::string name_of(const core::JobEvent& run) {
  return (run.run.job.empty() ? "" : core::visible(run.run.job) + ", ") + "run " +
         core::to_text(run.run.uid);
}

// A rank that refused because its step had passed has said where it is.
void learn_from_answers(const CommandHistory& commands, core::JobEvent& run) {
  for (const auto& [id, entry] : commands.entries()) {
    if (entry.command.run != run.run.uid || entry.command.attempt != run.run.attempt) continue;
    for (const auto& [rank, answer] : entry.answers) {
      if (answer.step <= run.step.value_or(0)) continue;
      run.step = answer.step;
      run.time = std::max(run.time, answer.time);
    }
  }
}

core::Status check_ranks(const core::JobEvent& run, const std::vector<std::uint32_t>& ranks) {
  const std::uint32_t size = std::max<std::uint32_t>(1, run.world_size);
  for (const std::uint32_t rank : ranks) {
    if (rank < size) continue;
    return core::invalid_argument(
        "ranks: " + name_of(run) + " has " +
        (size == 1 ? "the rank 0 only" : "the ranks 0 to " + std::to_string(size - 1)) + ", not " +
        std::to_string(rank));
  }
  return core::ok();
}

core::Result<CaptureChoice> choose_capture(const ApiDesk& desk, const TopicView& view,
                                           const std::string& asked, CaptureBody& body,
                                           core::WallTime now) {
  auto run = which_run(view.runs(), asked, "");
  if (!run) return run.error();
  if (run->phase == core::JobPhase::ended) {
    return conflict(name_of(*run) + " has ended already: " +
                    (run->outcome.empty() ? "unknown" : core::visible(run->outcome)));
  }
  if (body.attempt && *body.attempt != run->run.attempt) {
    return conflict("attempt " + std::to_string(*body.attempt) + " of " + name_of(*run) +
                    " is not the newest: that is " + std::to_string(run->run.attempt));
  }
  CaptureOrder& order = body.order;
  if (const auto good = check_ranks(*run, order.ranks); !good) return good.error();
  learn_from_answers(desk.commands, *run);
  const bool has_steps =
      order.kind == CaptureOrder::Kind::trace || order.kind == CaptureOrder::Kind::more;
  if (order.from && *order.from <= run->step.value_or(-1)) {
    return conflict("from_step: step " + std::to_string(*order.from) +
                    " has passed: " + name_of(*run) + " is at step " + std::to_string(*run->step) +
                    "; leave it out for the next steps");
  }
  if (!order.from && has_steps) order.from = first_common_step(*run, now);
  CaptureChoice out;
  out.asked = capture_command(order, *run, now);
  out.run = std::move(*run);
  return out;
}

std::string steps_words(const CaptureAsked& asked) {
  std::string out;
  if (asked.from > 0 && asked.until == asked.from + 1)
    return ", at step " + std::to_string(asked.from);
  if (asked.from > 0) out += ", from step " + std::to_string(asked.from);
  if (asked.until > 0) out += ", until step " + std::to_string(asked.until - 1);
  return out;
}

std::size_t ranks_asked(const CaptureChoice& choice) {
  const auto named = choice.asked.command.ranks.size();
  return named > 0 ? named : std::max<std::size_t>(1, choice.run.world_size);
}

HttpAnswer capture_asked(int status, const CaptureChoice& choice, const CaptureOrder& order,
                         const char* state, std::string detail) {
  const CaptureAsked& asked = choice.asked;
  const bool from = asked.from > 0;
  const bool until = asked.until > 0;
  const auto cautions = capture_cautions(order);
  return {status,
          core::to_json(ValueMap{{"command_id", asked.command.command_id},
                                 {"action", asked.command.action},
                                 {"state", state},
                                 {"detail", std::move(detail)},
                                 {"attempt", std::uint64_t{asked.command.attempt}},
                                 {"from_step", from ? Value(asked.from) : Value()},
                                 {"until_step", until ? Value(asked.until) : Value()},
                                 {"ranks", static_cast<std::uint64_t>(ranks_asked(choice))},
                                 {"cautions", ValueList(cautions.begin(), cautions.end())}}) +
              "\n"};
}

const char* kind_name(CaptureOrder::Kind kind) {
  switch (kind) {
    case CaptureOrder::Kind::more:
      return "capture";
    case CaptureOrder::Kind::pause:
      return "pause";
    case CaptureOrder::Kind::stacks:
      return "stacks";
    case CaptureOrder::Kind::trace:
      return "trace";
  }
  return "capture";
}

core::Status write_capture(ApiDesk& desk, const ApiCall& call, const CaptureChoice& choice,
                           const CaptureBody& body, core::WallTime now) {
  const core::Command& command = choice.asked.command;
  ValueMap after{{"command_id", body.takes_back ? Value() : Value(command.command_id)},
                 {"action", command.action},
                 {"attempt", std::uint64_t{command.attempt}},
                 {"args", body.takes_back ? Value() : command.args},
                 {"reason", command.reason.summary}};
  const std::string what =
      std::string(kind_name(body.order.kind)) + (body.takes_back ? ".withdrawn" : ".requested");
  const std::vector<core::OutRecord> records{
      audit_of(call, now, what, core::to_text(choice.run.run.uid), {}, std::move(after)),
      body.takes_back ? ingest::withdraw_command(command.run, command.action)
                      : ingest::encode_command(command, "/" + desk.cluster + "/api")};
  if (const auto sent = desk.writer.write(records); !sent) return sent;
  desk.log.info("api_" + what, {{"id", command.command_id},
                                {"run", core::to_text(choice.run.run.uid)},
                                {"by", call.who.name},
                                {"client", std::string(call.request.client)}});
  return core::ok();
}

HttpAnswer ask_run(ApiDesk& desk, const ApiCall& call, core::Result<CaptureBody> body) {
  if (!body) return problem(body.error());
  body->order.person = call.who.name;
  core::Result<CaptureChoice> choice = CaptureChoice{};
  const core::WallTime now = desk.clock.now();
  const auto seen = desk.view.read([&](const TopicView& view) {
    choice = choose_capture(desk, view, call.request.in_path.find("run")->second, *body, now);
  });
  if (!seen) return problem(seen.error());
  if (!choice) return problem(choice.error());
  const std::string who = name_of(choice->run);
  if (call.query.value("dry_run") == "true") {
    return capture_asked(200, *choice, body->order, "dry_run",
                         "would ask " + who + steps_words(choice->asked) + "; nothing was written");
  }
  if (const auto sent = write_capture(desk, call, *choice, *body, now); !sent)
    return problem(sent.error());
  if (body->takes_back) {
    const bool pause = body->order.kind == CaptureOrder::Kind::pause;
    return capture_asked(
        202, *choice, body->order, "withdrawn",
        pause ? who + " captures again from its next step on"
              : "what " + core::visible(call.who.name) + " asked of " + who + " is withdrawn");
  }
  return capture_asked(202, *choice, body->order, "requested",
                       "asked " + who + steps_words(choice->asked));
}

constexpr std::string_view kCaptureSchemas =
    R"json({"CaptureRequest":{"type":"object","properties":{
   "attempt":{"type":"integer","minimum":1,"nullable":true,"description":"that is meant; without it the newest"},
   "collections":{"type":"array","items":{"type":"string"},"nullable":true,"description":"what to capture; or give pause, resume or end"},
   "statistics":{"type":"array","items":{"type":"string"},"nullable":true,"description":"beside the base columns"},
   "raw":{"type":"boolean","nullable":true,"description":"the elements too, where the run allows it"},
   "every":{"type":"integer","minimum":1,"maximum":1000000000,"nullable":true,"description":"one step out of so many; 1"},
   "from_step":{"type":"integer","minimum":0,"maximum":1000000000,"nullable":true,"description":"first train step; without it the next that all ranks can hear of before"},
   "steps":{"type":"integer","minimum":1,"maximum":1000000000,"nullable":true,"description":"1; a pause without it lasts until it is taken back"},
   "ranks":{"type":"array","items":{"type":"integer","minimum":0},"nullable":true,"description":"without it all"},
   "reason":{"type":"string","nullable":true,"description":"at most 2000 bytes"},
   "pause":{"type":"boolean","nullable":true,"description":"no tensors are captured"},
   "resume":{"type":"boolean","nullable":true,"description":"takes such a pause back"},
   "end":{"type":"boolean","nullable":true,"description":"withdraws what this person asked for"}},"additionalProperties":false},
 "ProfileRequest":{"type":"object","properties":{
   "attempt":{"type":"integer","minimum":1,"nullable":true,"description":"that is meant; without it the newest"},
   "kind":{"type":"string","enum":["trace","stacks"],"nullable":true,"description":"a trace by PyTorch's profiler (the default), or where each rank stands"},
   "from_step":{"type":"integer","minimum":0,"maximum":1000000000,"nullable":true,"description":"first train step of a trace; without it the next that all ranks can hear of before"},
   "steps":{"type":"integer","minimum":1,"maximum":10000,"nullable":true,"description":"of a trace; 1"},
   "ranks":{"type":"array","items":{"type":"integer","minimum":0},"nullable":true,"description":"without it all"},
   "reason":{"type":"string","nullable":true,"description":"at most 2000 bytes"}},"additionalProperties":false},
 "CaptureAsked":{"type":"object","properties":{"command_id":{"type":"string","description":"GET /api/v1/commands has the answers to it"},
   "action":{"type":"string"},"state":{"type":"string","enum":["requested","withdrawn","dry_run"]},
   "detail":{"type":"string"},"attempt":{"type":"integer"},"from_step":{"type":"integer","nullable":true},
   "until_step":{"type":"integer","nullable":true,"description":"first step that is not captured any more"},
   "ranks":{"type":"integer","description":"that are asked"},
   "cautions":{"type":"array","items":{"type":"string"}}},
   "required":["command_id","action","state","detail","attempt","from_step","until_step","ranks","cautions"],
   "additionalProperties":false}})json";

}  // namespace

std::string_view capture_schemas() noexcept { return kCaptureSchemas; }

std::vector<ApiRoute> capture_routes(ApiDesk& desk) {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  const ApiParameter dry{"dry_run", ParameterType::flag, "true: only say what would be asked"};
  const std::vector<ApiReply> replies{{200, "it would be asked", "CaptureAsked"},
                                      {202, "it is asked", "CaptureAsked"}};
  return {
      {"POST",
       "/api/v1/runs/{run}/capture",
       ApiRole::operate,
       "Ask a running job to capture more, or nothing for a while",
       [&desk](const ApiCall& call) {
         return ask_run(desk, call, read_capture_body(call.request.body));
       },
       {run, dry},
       {{"CaptureRequest"}},
       replies},
      {"POST",
       "/api/v1/runs/{run}/profile",
       ApiRole::operate,
       "Ask a running job for a trace of some steps, or where it stands",
       [&desk](const ApiCall& call) {
         return ask_run(desk, call, read_profile_body(call.request.body));
       },
       {run, dry},
       {{"ProfileRequest"}},
       replies},
  };
}

}  // namespace tocsin::app
