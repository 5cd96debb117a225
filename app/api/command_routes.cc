#include "app/api/command_routes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "app/api/api_rows.h"
#include "app/api/page.h"
#include "app/api/past_run.h"
#include "app/serve/problem.h"
#include "app/view/agent_order.h"
#include "core/json.h"
#include "ingest/ingest.h"
#include "insights/store/command_reader.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueMap;

constexpr std::size_t kMostPastCommands = 10'000;  // that are looked through

std::int64_t micros_at(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

bool one_asked(const UrlQuery& query, std::string_view name, std::string_view value) {
  const auto wanted = query.values(name);
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool command_fits(const UrlQuery& query, const CommandHistory::Entry& entry) {
  const auto time = [&](const char* name) {
    const auto text = query.value(name);
    return text ? core::parse_rfc3339(*text) : std::nullopt;
  };
  const auto from = time("from");
  const auto to = time("to");
  return one_asked(query, "run", core::to_text(entry.command.run)) &&
         one_asked(query, "action", entry.command.action) && one_asked(query, "node", entry.node) &&
         (!from || entry.key.at >= *from) && (!to || entry.key.at <= *to);
}

Value complete_value(const std::optional<core::WallTime>& since) {
  return since ? Value(core::to_rfc3339(*since)) : Value();
}

// What was answered by then: of each rank the newest.
void add_answers(insights::CommandReader& store, core::WallTime at, CommandHistory::Entry& entry) {
  for (const insights::KeptRecord& kept : store.answers(entry.command.command_id)) {
    const auto ack = ingest::decode_ack(kept.view());
    if (!ack || core::wall_time(kept.timestamp) > at) continue;
    entry.newest_phase = ack->phase;
    if (entry.answers.size() >= CommandHistory::kMostAnswers && !entry.answers.contains(ack->rank))
      continue;
    entry.answers[ack->rank] = {ack->phase, ack->worker, ack->reason,
                                ack->time,  ack->step,   ack->effective_step};
  }
}

HttpAnswer list_past_commands(ApiDesk& desk, const std::string& path, const ApiCall& call,
                              core::WallTime at, ListPage page) {
  if (const auto past = check_moment(at, desk.clock.now()); !past)
    return problem(400, "invalid-parameter", past.error().message, "at");
  auto store = insights::CommandReader::open(path);
  if (!store) return problem(store.error());
  const auto runs = call.query.values("run");
  const auto kept = (*store)->commands(
      micros_at(at), runs.size() == 1 ? std::string(runs.front()) : "", kMostPastCommands);
  for (const insights::KeptRecord& one : kept) {
    auto decoded = ingest::decode_command(one.view());
    if (!decoded || !decoded->command) continue;
    CommandHistory::Entry entry;
    entry.key = {decoded->command->issued_at, decoded->command->command_id};
    entry.command = std::move(*decoded->command);
    entry.node = node_of_key(decoded->key);
    if (!page.wants(entry.key) || entry.key.at > at || !command_fits(call.query, entry)) continue;
    const auto gone = (*store)->withdrawn(decoded->key);
    entry.withdrawn = gone && *gone <= micros_at(at) && *gone >= one.timestamp / 1000;
    add_answers(**store, at, entry);
    page.add(entry.key, command_value(entry));
  }
  if (const auto status = (*store)->failure(); !status) return problem(status.error());
  std::optional<core::WallTime> since;
  if (kept.size() == kMostPastCommands) since = core::wall_time(kept.back().timestamp);
  return std::move(page).answer(call.request, {{"complete_since", complete_value(since)}});
}

HttpAnswer list_commands(ApiDesk& desk, const std::string& store, const ApiCall& call) {
  auto page = ListPage::of(call.query);
  if (!page) return problem(400, "invalid-request", page.error().message, "cursor");
  if (const auto at = moment_of(call))
    return list_past_commands(desk, store, call, *at, std::move(*page));
  std::optional<core::WallTime> since;
  const auto seen = desk.view.read([&](const TopicView&) {
    since = desk.commands.complete_since();
    for (const auto& [id, entry] : desk.commands.entries()) {
      if (page->wants(entry.key) && command_fits(call.query, entry))
        page->add(entry.key, command_value(entry));
    }
  });
  if (!seen) return problem(seen.error());
  return std::move(*page).answer(call.request, {{"complete_since", complete_value(since)}});
}

ApiParameter several_named(std::string name, std::string meaning) {
  ApiParameter out{std::move(name), ParameterType::text, std::move(meaning)};
  out.repeated = true;
  return out;
}

}  // namespace

std::vector<ApiRoute> command_routes(ApiDesk& desk, const std::string& store) {
  std::vector<ApiParameter> asked{
      several_named("run", "UUID of the run"),
      several_named("node", "name of a node, whose agent is asked"),
      several_named("action", "slot of the command: stop, capture, profile, agent"),
      moment_parameter(),
      {"from", ParameterType::time, "not what was over before"},
      {"to", ParameterType::time, "not what began after"}};
  for (ApiParameter& parameter : page_parameters()) asked.push_back(std::move(parameter));
  return {{"GET",
           "/api/v1/commands",
           ApiRole::viewer,
           "List commands to runs and to nodes' agents, and what was answered",
           [&desk, store](const ApiCall& call) { return list_commands(desk, store, call); },
           std::move(asked),
           {},
           {{200, "newest first", "Commands"}}}};
}

}  // namespace tocsin::app
