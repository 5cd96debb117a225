#include "app/api/replay_routes.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/api/replay_span.h"
#include "app/recordings/recording.h"
#include "app/replay/judge.h"
#include "app/replay/rule_text.h"
#include "app/replay/sweep.h"
#include "app/serve/problem.h"
#include "core/json.h"
#include "core/text.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostOfAReplayBody = 64 * 1024;
constexpr std::size_t kMostOfARuleText = 32 * 1024;

/// What the handlers share.
struct ReplayDesk {
  ApiDesk& desk;
  TaskDesk& tasks;
  ingest::Transport& transport;
  embedded::ChosenRules rules;  // of this server
};

struct ReplayOrder {
  std::string rule;
  std::string parameter;
  std::string values;  // as `--sweep` takes them
  std::string yaml;    // in place of these: rules as somebody has written them
};

/// A text, or a list of numbers and texts; empty: neither.
std::string values_text(const Value& value) {
  if (const auto* text = core::as<std::string>(value)) return *text;
  const auto* list = core::as<ValueList>(value);
  std::string out;
  for (const Value& one : list != nullptr ? *list : ValueList{}) {
    const auto* text = core::as<std::string>(one);
    out += (out.empty() ? "" : ",") + (text != nullptr ? *text : core::to_json(one));
  }
  return out;
}

core::Status check_rule_text(const ReplayOrder& order, std::size_t fields) {
  if (fields > 1)
    return core::invalid_argument("expected \"yaml\" alone, or rule, parameter and values");
  if (order.yaml.size() > kMostOfARuleText) {
    return core::invalid_argument("yaml: expected at most " + std::to_string(kMostOfARuleText) +
                                  " bytes, got " + std::to_string(order.yaml.size()));
  }
  if (order.yaml.empty()) return core::invalid_argument("yaml: expected the text of a rule");
  return core::ok();
}

core::Result<ReplayOrder> read_replay_order(std::string_view json) {
  const auto body = core::parse_json(json, kMostOfAReplayBody);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  ReplayOrder out;
  for (const auto& [name, value] : *members) {
    const auto* text = core::as<std::string>(value);
    if (name == "values") {
      out.values = values_text(value);
    } else if (name == "yaml" && text != nullptr) {
      out.yaml = *text;
    } else if (name != "rule" && name != "parameter" && name != "yaml") {
      const std::string near = core::nearest(name, {"rule", "parameter", "values", "yaml"});
      return core::invalid_argument("unknown field \"" + core::visible(name, 100) + "\"" +
                                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    } else if (text == nullptr || text->find('=') != std::string::npos) {
      return core::invalid_argument(name + ": expected a name");
    } else {
      (name == "rule" ? out.rule : out.parameter) = *text;
    }
  }
  if (core::find(*members, "yaml") != nullptr) {
    const auto fits = check_rule_text(out, members->size());
    return fits ? core::Result<ReplayOrder>(std::move(out)) : fits.error();
  }
  if (out.rule.empty()) return core::invalid_argument("rule: expected the name of a rule");
  if (out.parameter.empty()) return core::invalid_argument("parameter: expected a name");
  if (out.values.empty())
    return core::invalid_argument("values: expected LOW..HIGH[:STEPS], A,B,C, or a list");
  return out;
}

/// Errors of a sweep name the option of the command line.
core::Error without_option(core::Error error) {
  constexpr std::string_view kOption = "--sweep: ";
  if (error.message.starts_with(kOption)) error.message.erase(0, kOption.size());
  return error;
}

core::Result<insights::RunLine> run_of(ApiDesk& desk, const std::string& asked) {
  auto store = desk.insights.reader();
  if (!store) return store.error();
  auto line = (*store)->run(asked);
  if (const auto status = (*store)->failure(); !status) return status.error();
  if (line) return std::move(*line);
  return core::Error{
      core::Code::not_found,
      "no run, or more than one, has a uid that begins with \"" + core::visible(asked, 100) + "\""};
}

core::WallTime at_micros(std::int64_t time) {
  return core::WallTime(
      std::chrono::duration_cast<core::WallTime::duration>(std::chrono::microseconds(time)));
}

/// One run's telemetry, read to its end as it is now and judged once per value.
class SweepOfRun {
 public:
  SweepOfRun(ingest::Transport& transport, const insights::RunLine& run, Sweep sweep,
             std::unique_ptr<Judge> judge, core::WallTime now)
      : transport_(transport),
        sweep_(std::move(sweep)),
        judge_(std::move(judge)),
        span_(run.started ? std::optional(at_micros(*run.started)) : std::nullopt,
              at_micros(run.heard), now) {}

  core::Result<Value> run(TaskWork& work) {
    pthread_setname_np(pthread_self(), "tocsin-replay");
    auto reader = RecordingReader::open(transport_, core::topic::kTelemetry, span_.span());
    if (!reader) return reader.error();
    for (bool over = false; !over;) {
      if (work.cancelled()) return core::Error{core::Code::cancelled, "cancelled"};
      const auto read =
          (*reader)->read([&](const core::RecordView& record) { judge_->handle(record); });
      if (!read) return read.error();
      over = *read;
      judge_->collect();
      work.reached(progress());
    }
    judge_->finish();
    const Judgement& judgement = judge_->judgement();
    if (judgement.rows.empty()) {
      return core::Error{core::Code::not_found, "the telemetry of this run is not in " +
                                                    transport_.describe() +
                                                    " any more: nothing of it can be judged again"};
    }
    const Value swept = sweep_value(sweep_, judgement);
    ValueMap out = *core::as<ValueMap>(swept);
    out.emplace_back("gaps", (*reader)->end().gaps);
    out.emplace_back("source", transport_.describe());
    return Value(std::move(out));
  }

 private:
  [[nodiscard]] double progress() const {
    const auto& newest = judge_->judgement().newest;
    return newest.empty() ? 0 : span_.done(core::wall_time(newest.begin()->second));
  }

  ingest::Transport& transport_;
  Sweep sweep_;
  std::unique_ptr<Judge> judge_;
  ReplaySpan span_;
};

ValueMap sweep_head(const Sweep& sweep) {
  ValueList values;
  for (const SweepValue& one : sweep.values) values.emplace_back(one.text);
  return {{"rule", sweep.rule.empty() ? Value() : Value(sweep.rule)},
          {"parameter", sweep.parameter},
          {"values", std::move(values)}};
}

/// What is varied is then which rule of the text judges.
core::Result<Sweep> sweep_of_text(const std::string& yaml, rules::RulesConfig& rules) {
  RuleTextAnswer read = read_rule_text(yaml);
  if (!read.problems.empty()) return core::invalid_argument(rule_text_problems(read.problems));
  Sweep out{"", "rule", {}};
  for (const rules::RuleSettings& rule : read.rules.rules)
    out.values.push_back({rule.name, rule.name});
  rules = std::move(read.rules);
  return out;
}

core::Result<Sweep> sweep_of(const ReplayOrder& order, rules::RulesConfig& rules) {
  if (!order.yaml.empty()) return sweep_of_text(order.yaml, rules);
  auto made = make_sweep(order.rule + "." + order.parameter + "=" + order.values, rules);
  if (!made) return without_option(made.error());
  return made;
}

HttpAnswer post_replay(ReplayDesk& replays, const ApiCall& call) {
  const auto order = read_replay_order(call.request.body);
  if (!order) return problem(order.error());
  auto run = run_of(replays.desk, call.request.in_path.find("run")->second);
  if (!run) return problem(run.error());
  embedded::ChosenRules chosen = replays.rules;
  auto sweep = sweep_of(*order, chosen.rules);
  if (!sweep) return problem(sweep.error());
  ValueMap head = sweep_head(*sweep);
  if (call.query.value("dry_run") == "true") {
    head.emplace_back("task", Value());
    head.emplace_back("state", "dry_run");
    return {200, core::to_json(head) + "\n"};
  }
  auto judge = Judge::create(chosen, runs_named(run->uid, ""));
  if (!judge) return problem(judge.error());
  const core::WallTime now = replays.desk.clock.now();
  const std::string uid = run->uid;
  const auto work = std::make_shared<SweepOfRun>(replays.transport, *run, std::move(*sweep),
                                                 std::move(*judge), now);
  const auto task = replays.tasks.begin({"replay", uid, call.who.name},
                                        [work](TaskWork& said) { return work->run(said); });
  if (!task) {
    HttpAnswer out = problem(429, "too-many-tasks", task.error().message);
    out.headers.emplace_back("Retry-After", "5");
    return out;
  }
  const core::OutRecord record = audit_of(call, now, "replay.begun", uid, {},
                                          ValueMap{{"task", *task}, {"sweep", Value(head)}});
  if (const auto sent = replays.desk.writer.write({&record, 1}); !sent) {
    (void)replays.tasks.cancel(*task);
    return problem(sent.error());
  }
  head.emplace_back("task", *task);
  head.emplace_back("state", "running");
  return {202, core::to_json(head) + "\n"};
}

HttpAnswer no_task(const std::string& id) {
  return problem(404, "not-found",
                 "there is no task \"" + core::visible(id, 100) +
                     "\": this server keeps the newest " + std::to_string(TaskDesk::kMostKept) +
                     " in memory, and a restart forgets them");
}

HttpAnswer show_task(ReplayDesk& replays, const ApiCall& call) {
  const std::string& id = call.request.in_path.find("id")->second;
  const auto told = replays.tasks.told(id);
  return told ? HttpAnswer{200, core::to_json(*told) + "\n"} : no_task(id);
}

HttpAnswer cancel_task(ReplayDesk& replays, const ApiCall& call) {
  const std::string& id = call.request.in_path.find("id")->second;
  auto before = replays.tasks.told(id);
  if (!before) return no_task(id);
  const core::OutRecord record = audit_of(call, replays.desk.clock.now(), "task.cancelled", id,
                                          ValueMap{{"state", core::text_at(*before, "state")}}, {});
  if (const auto sent = replays.desk.writer.write({&record, 1}); !sent)
    return problem(sent.error());
  (void)replays.tasks.cancel(id);
  return {204, ""};
}

/// Parameters that can be swept, with the values that hold now.
HttpAnswer list_parameters(ReplayDesk& replays, const ApiCall& call) {
  const std::string& name = call.request.in_path.find("rule")->second;
  std::vector<std::string> names;
  for (const rules::RuleSettings& rule : replays.rules.rules.rules) {
    names.push_back(rule.name);
    if (rule.name != name) continue;
    ValueList rows;
    for (const core::Parameter& one : rule.parameters)
      rows.push_back(ValueMap{{"name", one.name}, {"value", one.value}, {"origin", one.origin}});
    auto yaml = rule_text(rule);
    return {200, core::to_json(ValueMap{{"rule", rule.name},
                                        {"type", rule.type},
                                        {"yaml", yaml ? Value(std::move(*yaml)) : Value()},
                                        {"parameters", std::move(rows)}}) +
                     "\n"};
  }
  const std::string near = core::nearest(name, names);
  return problem(404, "not-found",
                 "this server has no rule \"" + core::visible(name, 100) + "\"" +
                     (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

// Those of the configuration; without any the group `default`, as the command line has it.
embedded::ChosenRules rules_of(const AppConfig& config, const ingest::Transport& transport) {
  embedded::ChosenRules out;
  out.rules = config.rules;
  out.engine = config.engine;
  out.plugins = config.plugins;
  out.cluster = config.cluster;
  out.labels = config.labels;
  out.topic_prefix = config.topics.prefix;
  out.from = "the rules of this server";
  if (!transport.is_kafka()) out.plugins.out = config.transport.journal;
  if (!out.rules.rules.empty()) return out;
  if (auto named = embedded::rules_by_name("default", rules::Preset::tocsin))
    out.rules = std::move(*named);
  return out;
}

constexpr std::string_view kReplaySchemas =
    R"json({"ReplayRequest":{"type":"object","properties":{"rule":{"type":"string"},
   "parameter":{"type":"string"},"values":{"description":"LOW..HIGH[:STEPS] or A,B,C as of tocsin evaluate --sweep, or a list",
   "oneOf":[{"type":"string"},{"type":"array","items":{"oneOf":[{"type":"number"},{"type":"string"},{"type":"boolean"}]}}]},
   "yaml":{"type":"string","description":"in place of the others: rules in YAML, at most 32 KiB; each is judged beside the others"}},
   "additionalProperties":false},
 "ReplayBegun":{"type":"object","properties":{"rule":{"type":"string","nullable":true,"description":"null: those of a text"},
   "parameter":{"type":"string"},
   "values":{"type":"array","items":{"type":"string"}},"task":{"type":"string","nullable":true},
   "state":{"type":"string","enum":["running","dry_run"]}},
   "required":["rule","parameter","values","task","state"],"additionalProperties":false},
 "Task":{"type":"object","properties":{"id":{"type":"string"},"kind":{"type":"string"},"run":{"type":"string"},
   "by":{"type":"string"},"state":{"type":"string","enum":["running","done","failed","cancelled"]},
   "progress":{"type":"number","description":"from 0 to 1"},
   "began_at":{"type":"string","format":"date-time"},"ended_at":{"type":"string","format":"date-time","nullable":true},
   "result":{"nullable":true,"type":"object","description":"of a replay: what tocsin evaluate --sweep --output json gives"},
   "error":{"type":"string","nullable":true}},
   "required":["id","kind","run","by","state","progress","began_at","ended_at","result","error"],"additionalProperties":false},
 "RuleParameters":{"type":"object","properties":{"rule":{"type":"string"},"type":{"type":"string"},
   "yaml":{"type":"string","nullable":true,"description":"the rule as a text to edit; null: a program"},
   "parameters":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},
   "value":{"description":"that holds now"},"origin":{"type":"string"}},
   "required":["name","value","origin"],"additionalProperties":false}}},
   "required":["rule","type","yaml","parameters"],"additionalProperties":false}})json";

}  // namespace

std::string_view replay_schemas() noexcept { return kReplaySchemas; }

std::vector<ApiRoute> replay_routes(ApiDesk& desk, TaskDesk& tasks, ingest::Transport& transport,
                                    const AppConfig& config) {
  const std::shared_ptr<ReplayDesk> shared(
      new ReplayDesk{desk, tasks, transport, rules_of(config, transport)});
  const auto of_desk = [&](auto handler) {
    return [shared, handler](const ApiCall& call) { return handler(*shared, call); };
  };
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  ApiParameter id{"id", ParameterType::text, "of the task"};
  ApiParameter rule{"rule", ParameterType::text, "its name in this server's configuration"};
  run.in_path = id.in_path = rule.in_path = true;
  return {
      {"POST",
       "/api/v1/runs/{run}/replay",
       ApiRole::operate,
       "Judge a run again with other values of a rule's parameter, or with other rules",
       of_desk(post_replay),
       {run, {"dry_run", ParameterType::flag, "true: only say which values would be judged"}},
       {{"ReplayRequest"}},
       {{200, "these would be judged", "ReplayBegun"}, {202, "the task has begun", "ReplayBegun"}}},
      {"GET",
       "/api/v1/tasks/{id}",
       ApiRole::viewer,
       "Show how far a task is, and its result",
       of_desk(show_task),
       {id},
       {},
       {{200, "the task", "Task"}}},
      {"DELETE",
       "/api/v1/tasks/{id}",
       ApiRole::operate,
       "Cancel a task",
       of_desk(cancel_task),
       {id},
       {},
       {{204, "it ends without a result"}}},
      {"GET",
       "/api/v1/rules/{rule}/parameters",
       ApiRole::viewer,
       "Show the parameters of a rule, with the values that hold now",
       of_desk(list_parameters),
       {rule},
       {},
       {{200, "in the order of its page", "RuleParameters"}}},
  };
}

}  // namespace tocsin::app
