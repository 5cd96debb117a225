#include "app/api/agent_routes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "app/serve/problem.h"
#include "app/view/agent_order.h"
#include "core/json.h"
#include "core/mutex.h"
#include "core/text.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"
#include "insights/store/command_reader.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Value;
using core::ValueMap;

constexpr auto kAgentReadBack = 5s;  // until the store has what was written
constexpr auto kLookForAskEvery = 20ms;

// What stands, and what the agent said to it.
struct AgentStanding {
  std::optional<core::Command> asked;
  std::optional<core::Ack> answer;
};

core::Result<AgentStanding> standing_of(const std::string& store, const std::string& node) {
  auto reader = insights::CommandReader::open(store);
  if (!reader) return reader.error();
  AgentStanding out;
  if (const auto kept = (*reader)->asked(agent_key(node))) {
    auto decoded = ingest::decode_command(kept->view());
    if (decoded) out.asked = std::move(decoded->command);
  }
  if (out.asked) {
    if (const auto kept = (*reader)->answer(out.asked->command_id)) {
      auto ack = ingest::decode_ack(kept->view());
      // An answer to what the command said before.
      if (ack && ack->revision == out.asked->revision) out.answer = std::move(*ack);
    }
  }
  if (const auto failed = (*reader)->failure(); !failed) return failed.error();
  return out;
}

Value standing_value(const std::string& node, const AgentStanding& standing) {
  Value asked;
  Value answer;
  if (standing.asked) asked = asked_of_agent(*standing.asked);
  if (standing.answer) {
    answer = ValueMap{{"phase", standing.answer->phase},
                      {"at", core::to_rfc3339(standing.answer->time)},
                      {"detail", standing.answer->reason}};
  }
  return ValueMap{{"node", node}, {"asked", std::move(asked)}, {"answer", std::move(answer)}};
}

HttpAnswer told_standing(const std::string& node, const AgentStanding& standing) {
  return {200, core::to_json(standing_value(node, standing)) + "\n"};
}

// One whose agent has sent samples, or of which something is asked.
core::Status check_known(ApiDesk& desk, const std::string& node, const AgentStanding& standing) {
  if (const auto good = check_node_name(node); !good) return good;
  if (standing.asked) return core::ok();
  auto series = desk.curves.reader();
  if (!series) return series.error();
  std::vector<std::string> names;
  for (const auto& one : (*series)->all_nodes()) names.push_back(one.name);
  if (const auto failed = (*series)->failure(); !failed) return failed;
  if (std::find(names.begin(), names.end(), node) != names.end()) return core::ok();
  const std::string near = core::nearest(node, names);
  return core::Error{core::Code::not_found,
                     "node: no agent has sent samples from \"" + core::visible(node, 100) + "\"" +
                         (near.empty() ? "" : "; did you mean \"" + near + "\"?")};
}

core::Status write_ask(ApiDesk& desk, const std::string& store, const ApiCall& call,
                       const std::string& node, const AgentStanding& before,
                       const std::optional<core::Command>& after) {
  const char* what = after ? "agent.set" : "agent.reset";
  core::OutRecord record =
      after ? agent_record(*after, node, "/" + desk.cluster + "/api") : agent_tombstone(node);
  std::vector<core::OutRecord> records{
      audit_of(call, desk.clock.now(), what, record.key,
               before.asked ? asked_of_agent(*before.asked) : Value(),
               after ? asked_of_agent(*after) : Value())};
  records.push_back(std::move(record));
  if (auto sent = desk.writer.write(records); !sent) return sent;
  desk.log.info(
      std::string("api_") + what,
      {{"node", node}, {"by", call.who.name}, {"client", std::string(call.request.client)}});
  core::Mutex quiet;
  core::CondVar never;
  for (auto waited = 0ms; waited < kAgentReadBack; waited += kLookForAskEvery) {
    const auto now = standing_of(store, node);
    if (!now) return now.error();
    const std::string id = now->asked ? now->asked->command_id : "";
    if (id == (after ? after->command_id : "")) return core::ok();
    const core::MutexLock lock(quiet);
    never.wait_for(quiet, kLookForAskEvery, [] { return false; });
  }
  return core::unavailable("it was written, and is not shown yet; ask again in a moment");
}

HttpAnswer ask_agent(ApiDesk& desk, const std::string& store, const ApiCall& call,
                     const AgentOrder& order) {
  const std::string& node = call.request.in_path.find("node")->second;
  const auto before = standing_of(store, node);
  if (!before) return problem(before.error());
  if (const auto known = check_known(desk, node, *before); !known) return problem(known.error());
  const bool reset = order.settings.empty();
  const bool stands = reset ? !before->asked : before->asked && order.says(*before->asked);
  if (stands) return told_standing(node, *before);
  std::optional<core::Command> after;
  if (!reset) {
    const std::uint64_t revision = before->asked ? before->asked->revision + 1 : 1;
    after = agent_command(order, node, call.who.name, revision, desk.clock.now());
  }
  if (const auto done = write_ask(desk, store, call, node, *before, after); !done)
    return problem(done.error());
  return told_standing(node, {after, std::nullopt});
}

HttpAnswer put_agent(ApiDesk& desk, const std::string& store, const ApiCall& call) {
  const auto order = read_agent_order(call.request.body);
  if (!order) return problem(order.error());
  return ask_agent(desk, store, call, *order);
}

HttpAnswer show_agent(ApiDesk& desk, const std::string& store, const ApiCall& call) {
  const std::string& node = call.request.in_path.find("node")->second;
  const auto standing = standing_of(store, node);
  if (!standing) return problem(standing.error());
  if (const auto known = check_known(desk, node, *standing); !known) return problem(known.error());
  return told_standing(node, *standing);
}

constexpr std::string_view kAgentSchemas =
    R"json({"AgentRequest":{"type":"object","properties":{"interval":{"type":"string",
   "nullable":true,"description":"time between two sweeps, 100ms to 1m; null: as the agent's file says"},
   "collectors":{"type":"array","items":{"type":"string"},"minItems":1,"nullable":true,
   "description":"what a sweep reads (docs/collectors/README.md); null: as the agent's file says"},
   "for":{"type":"string","nullable":true,
   "description":"how long it holds, such as 10m; null: until somebody takes it back"}},
   "additionalProperties":false},
 "AgentDetails":{"type":"object","properties":{"node":{"type":"string"},
   "asked":{"type":"object","nullable":true,"description":"null: the agent's own file decides",
   "properties":{"interval":{"type":"string","nullable":true},"collectors":{"type":"array",
   "items":{"type":"string"},"nullable":true},"until":{"type":"string","format":"date-time",
   "nullable":true},"by":{"type":"string"},"at":{"type":"string","format":"date-time"}},
   "required":["interval","collectors","until","by","at"],"additionalProperties":false},
   "answer":{"type":"object","nullable":true,"description":"null: the agent has not answered",
   "properties":{"phase":{"type":"string","enum":["received","applied","ended","refused"]},
   "at":{"type":"string","format":"date-time"},"detail":{"type":"string"}},
   "required":["phase","at","detail"],"additionalProperties":false}},
   "required":["node","asked","answer"],"additionalProperties":false}})json";

}  // namespace

std::string_view agent_schemas() noexcept { return kAgentSchemas; }

std::vector<ApiRoute> agent_routes(ApiDesk& desk, const std::string& store) {
  constexpr auto kPath = "/api/v1/nodes/{node}/agent";
  ApiParameter node{"node", ParameterType::text, "its name"};
  node.in_path = true;
  return {{"GET",
           kPath,
           ApiRole::viewer,
           "Show what a node's agent was asked to sample, and what it answered",
           [&desk, store](const ApiCall& call) { return show_agent(desk, store, call); },
           {node},
           {},
           {{200, "what stands", "AgentDetails"}}},
          {"PUT",
           kPath,
           ApiRole::operate,
           "Change how often a node's agent samples, and what; an empty body takes it back",
           [&desk, store](const ApiCall& call) { return put_agent(desk, store, call); },
           {node},
           {{"AgentRequest", {"application/json"}, false}},
           {{200, "it is asked; the agent answers in a moment", "AgentDetails"}}},
          {"DELETE",
           kPath,
           ApiRole::operate,
           "End what a node's agent was asked; its own file decides again",
           [&desk, store](const ApiCall& call) { return ask_agent(desk, store, call, {}); },
           {node},
           {},
           {{200, "nothing is asked of it any more", "AgentDetails"}}}};
}

}  // namespace tocsin::app
