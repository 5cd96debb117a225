#include "app/process/rule_processes.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/process/child_process.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostAnswer = std::size_t{1} << 20;  // to hello
constexpr int kProtocol = 1;
constexpr std::uint32_t kMostLines = 100;  // of its output that are logged per request
constexpr milliseconds kFirstPause{100};   // doubled with every failure in a row
constexpr milliseconds kLongestPause{10'000};
constexpr seconds kLongLife{60};  // who lived so long did not fail in a row

std::string hello(const rules::HostedRule& rule, const embedded::PluginsConfig& plugins,
                  bool list) {
  core::ValueMap out{
      {"type", "hello"},
      {"protocol", kProtocol},
      {"source", rule.source},
      {"class", rule.class_name},
      {"list", list},
      {"parameters", rule.parameters},
      {"elements", core::ValueMap{{"out", plugins.out}, {"config", plugins.config}}}};
  // A file that has changed since is another version, which comes with a restart.
  if (!rule.content.empty()) out.emplace_back("content", rule.content);
  return core::to_json(out);
}

core::Duration pause_after(std::uint32_t failures) {
  if (failures == 0) return {};
  milliseconds pause = kFirstPause;
  for (std::uint32_t i = 1; i < failures && pause < kLongestPause; ++i) pause *= 2;
  return std::min(pause, kLongestPause);
}

}  // namespace

struct RuleProcesses::Hosted {
  std::unique_ptr<ChildProcess> process;  // null: none runs
  std::uint64_t number = 0;
  core::Duration started{};  // steady
  core::Duration failed{};
  std::uint32_t failures = 0;  // in a row
  std::vector<std::uint64_t> forgotten;
  std::uint32_t lines = 0;  // printed since the last request
};

RuleProcesses::RuleProcesses(embedded::PluginsConfig plugins, const core::Clock& clock,
                             core::Log& log)
    : plugins_(std::move(plugins)), clock_(clock), log_(log) {}
RuleProcesses::~RuleProcesses() = default;

RuleProcesses::Hosted& RuleProcesses::hosted(const rules::HostedRule& rule) {
  auto& known = hosted_[rule.name];
  if (known == nullptr) known = std::make_unique<Hosted>();
  return *known;
}

core::Result<std::string> RuleProcesses::start(const rules::HostedRule& rule, Hosted& hosted,
                                               bool list) {
  ChildOptions child;
  child.command = {plugins_.python, "-m", "tocsin.rules.worker"};
  child.memory = rule.memory;
  child.print = [this, name = rule.name, at = &hosted](std::string_view line) {
    if (++at->lines <= kMostLines) {
      log_.info("rule_output", {{"rule", name}, {"line", std::string(line)}});
    }
  };
  auto process = ChildProcess::start(std::move(child));
  if (!process) return process.error();
  hosted.process = std::move(*process);
  hosted.number = ++started_;
  hosted.started = clock_.monotonic();
  auto answer = hosted.process->exchange(hello(rule, plugins_, list), clock_,
                                         hosted.started + rule.start_timeout);
  if (!answer) return answer;
  const auto parsed = core::parse_json(*answer, kMostAnswer);
  if (!parsed || core::text_at(*parsed, "type") != "ready") {
    const std::string why = parsed ? core::text_at(*parsed, "error") : parsed.error().message;
    return core::Error{core::Code::failed_precondition, why.empty() ? "it is not ready" : why};
  }
  return answer;
}

void RuleProcesses::failed(const rules::HostedRule& rule, Hosted& hosted,
                           const core::Error& error) {
  hosted.failed = clock_.monotonic();
  if (hosted.failed - hosted.started > kLongLife) hosted.failures = 0;
  ++hosted.failures;
  hosted.process.reset();
  log_.warn(
      "rule_process_failed",
      {{"rule", rule.name}, {"error", error.message}, {"in_a_row", std::int64_t{hosted.failures}}});
}

core::Result<std::uint64_t> RuleProcesses::ready(const rules::HostedRule& rule) {
  Hosted& hosted = this->hosted(rule);
  if (hosted.process != nullptr) return hosted.number;
  const core::Duration from = hosted.failed + pause_after(hosted.failures);
  // Only this rule waits: it has the thread to itself.
  for (auto left = from - clock_.monotonic(); hosted.failures > 0 && left > core::Duration::zero();
       left = from - clock_.monotonic()) {
    poll(nullptr, 0, static_cast<int>(std::chrono::duration_cast<milliseconds>(left).count()) + 1);
  }
  hosted.forgotten.clear();
  auto answer = start(rule, hosted, false);
  if (answer) {
    log_.info("rule_process_started",
              {{"rule", rule.name}, {"pid", std::int64_t{hosted.process->pid()}}});
    return hosted.number;
  }
  core::Error error = answer.error();
  if (hosted.process != nullptr && error.code != core::Code::failed_precondition) {
    if (const std::string tail = hosted.process->tail(); !tail.empty())
      error.message += ": " + tail;
  }
  failed(rule, hosted, error);
  return error;
}

core::Result<std::string> RuleProcesses::ask(const rules::HostedRule& rule,
                                             std::string_view request) {
  Hosted& hosted = this->hosted(rule);
  if (hosted.process == nullptr) return core::unavailable("its process is gone");
  std::string whole(request);
  if (!hosted.forgotten.empty()) {
    core::ValueList gone;
    for (const std::uint64_t one : hosted.forgotten) gone.emplace_back(one);
    whole = "{\"forget\":" + core::to_json(gone) + "," + whole.substr(1);
    hosted.forgotten.clear();
  }
  if (hosted.lines > kMostLines) {
    log_.warn("rule_output_left_out",
              {{"rule", rule.name}, {"lines", std::int64_t{hosted.lines - kMostLines}}});
  }
  hosted.lines = 0;
  auto answer = hosted.process->exchange(whole, clock_, clock_.monotonic() + rule.timeout);
  if (answer) return answer;
  core::Error error = answer.error();
  if (error.code == core::Code::deadline_exceeded) {
    error.message = "it gave no answer within " +
                    std::to_string(std::chrono::duration_cast<milliseconds>(rule.timeout).count()) +
                    " ms and was ended";
  }
  if (error.code == core::Code::unavailable) {
    if (const std::string tail = hosted.process->tail(); !tail.empty())
      error.message += ": " + tail;
  }
  failed(rule, hosted, error);
  return error;
}

void RuleProcesses::forget(const rules::HostedRule& rule, std::uint64_t session) {
  hosted(rule).forgotten.push_back(session);
}

core::Result<std::vector<std::string>> RuleProcesses::classes(const rules::HostedRule& rule) {
  Hosted hosted;
  const auto answer = start(rule, hosted, true);
  if (!answer) {
    core::Error error = answer.error();
    if (hosted.process != nullptr && error.code == core::Code::unavailable) {
      if (const std::string tail = hosted.process->tail(); !tail.empty()) {
        error.message += ": " + tail;
      }
    }
    return error;
  }
  std::vector<std::string> out;
  const auto parsed = core::parse_json(*answer, kMostAnswer);
  if (const auto* list = core::as<core::ValueList>(core::find(*parsed, "classes"))) {
    for (const core::Value& one : *list) {
      if (const auto* name = core::as<std::string>(one)) out.push_back(*name);
    }
  }
  return out;
}

}  // namespace tocsin::app
