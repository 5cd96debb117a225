#include "app/cli/golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <tuple>
#include <utility>

#include "app/process/exit_code.h"
#include "app/recordings/recording.h"
#include "app/replay/judge.h"
#include "app/replay/judgement_text.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

/// Labels that say whose issue it is, not what was judged.
constexpr std::string_view kNoUnit[] = {"rule", "kind", "severity", "job", "run_uid", "cluster"};

struct Golden {
  std::string path;
  std::string from;  // as it stands in the file
  embedded::ChosenRules rules;
  std::vector<GoldenIssue> expected;
};

void read_expected(config::Reader& item, std::vector<GoldenIssue>& out) {
  GoldenIssue one;
  item.required("rule", one.rule, "name of the rule");
  item.optional("kind", one.kind, "what it found, where the rule finds several things");
  item.optional("run", one.run, "beginning of the run's uid; default: any run");
  item.optional("attempt", one.attempt, "of the run; default: any");
  item.optional("unit", one.unit, "labels of what was judged: tensor=… worker=…");
  item.optional("step", one.step, "where it began");
  item.optional("severity", one.severity, "of its first report; default: any");
  out.push_back(std::move(one));
}

void read_golden(config::Reader& root, Golden& out) {
  root.required("from", out.from, config::not_empty(),
                "journal directory, relative to this file's folder");
  root.section("plugins", "as in a configuration: what rules in Python and C need",
               [&](config::Reader& in) { read(in, out.rules.plugins); });
  rules::read_rules(root, out.rules.rules);
  rules::read_engine(root, out.rules.engine);
  root.list("expect", "the issues that must be found, and no others",
            [&](config::Reader& item) { read_expected(item, out.expected); });
  if (out.rules.rules.rules.empty())
    root.error("rules", "no rules: name them as in a configuration");
}

std::optional<Golden> load(const std::string& path) {
  config::Diagnostics diagnostics;
  Golden out;
  out.path = path;
  const auto document = config::Document::load(path, config::process_environment(), diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) { read_golden(root, out); });
  }
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::error) std::cerr << config::to_text(item) << "\n";
  }
  if (diagnostics.has_errors()) return std::nullopt;
  out.rules.from = "rules of " + path;
  return out;
}

bool says_unit(const std::string& label) {
  return std::find(std::begin(kNoUnit), std::end(kNoUnit), label) == std::end(kNoUnit);
}

GoldenIssue golden_issue(const core::Issue& issue) {
  GoldenIssue out;
  out.rule = issue.rule;
  out.kind = issue.kind;
  if (!issue.run.uid.nil()) out.run = core::to_text(issue.run.uid).substr(0, 8);
  out.attempt = issue.run.attempt;
  for (const auto& [name, value] : issue.labels.entries()) {
    if (says_unit(name))
      out.unit += (out.unit.empty() ? "" : " ") + name + "=" + core::visible(value);
  }
  out.step = issue.step;
  out.severity = core::to_string(issue.severity);
  return out;
}

std::ptrdiff_t attempts_of(const Judgement& judgement, const core::RunUid& run) {
  return std::count_if(judgement.runs.begin(), judgement.runs.end(),
                       [&](const auto& one) { return one.first.first == run; });
}

/// What a golden file is compared with.
struct Found {
  std::vector<GoldenIssue> issues;
  std::string failed;  // rules that did, a line each
};

core::Result<Found> judge(const Golden& golden) {
  core::NullLog log;
  core::NullTelemetry telemetry;
  const std::string folder = (fs::path(golden.path).parent_path() / golden.from).string();
  auto transport = ingest::Transport::open_recording(folder, {}, log, telemetry);
  if (!transport) return transport.error();
  embedded::ChosenRules rules = golden.rules;
  rules.plugins.out = folder;
  auto judge = Judge::create(rules, nullptr);
  if (!judge) return judge.error();
  const auto end = read_recording(
      **transport, core::topic::kTelemetry, {},
      [&](const core::RecordView& record) { (*judge)->handle(record); },
      [&] { (*judge)->collect(); });
  if (!end) return end.error();
  (*judge)->finish();
  if ((*judge)->judgement().rows.empty()) {
    return core::unavailable("there is no telemetry of a run in " + folder);
  }
  const Judgement& judgement = (*judge)->judgement();
  Found out;
  for (const IssueStory& story : issue_stories(judgement)) {
    out.issues.push_back(golden_issue(*story.first));
    if (attempts_of(judgement, story.first->run.uid) < 2) out.issues.back().attempt = 0;
  }
  out.failed = failure_text(judgement);
  return out;
}

std::string quoted(const std::string& text) { return core::to_json(core::Value(text)); }

std::string line_of(const GoldenIssue& issue) {
  std::string out = "{rule: " + quoted(issue.rule);
  if (!issue.kind.empty()) out += ", kind: " + quoted(issue.kind);
  if (!issue.run.empty()) out += ", run: " + quoted(issue.run);
  if (issue.attempt != 0) out += ", attempt: " + std::to_string(issue.attempt);
  if (!issue.unit.empty()) out += ", unit: " + quoted(issue.unit);
  if (issue.step) out += ", step: " + std::to_string(*issue.step);
  if (!issue.severity.empty()) out += ", severity: " + issue.severity;
  return out + "}";
}

/// The same rule, run and unit.
bool same_place(const GoldenIssue& expected, const GoldenIssue& found) {
  return expected.rule == found.rule && found.run.starts_with(expected.run) &&
         (expected.attempt == 0 || found.attempt == 0 || expected.attempt == found.attempt) &&
         expected.unit == found.unit;
}

bool meets(const GoldenIssue& expected, const GoldenIssue& found) {
  return same_place(expected, found) && expected.kind == found.kind &&
         expected.step == found.step &&
         (expected.severity.empty() || expected.severity == found.severity);
}

/// Everything but the key `expect`, which is written anew at the end.
std::string without_expected(const std::string& text) {
  std::string out;
  bool inside = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool key =
        !line.empty() && std::string_view(" \t-#]}").find(line[0]) == std::string::npos;
    if (key) inside = line.starts_with("expect:");
    if (!inside) out += line + "\n";
  }
  return out;
}

int write_golden(const Golden& golden, const std::vector<GoldenIssue>& found) {
  std::ifstream in(golden.path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  std::string out = without_expected(text.str()) + "expect:";
  if (found.empty()) out += " []";
  out += "\n";
  for (const GoldenIssue& one : found) out += "  - " + line_of(one) + "\n";
  std::ofstream file(golden.path, std::ios::binary | std::ios::trunc);
  file << out;
  file.flush();
  if (file) return kOk;
  std::cerr << "tocsin: " << golden.path << " cannot be written\n";
  return kFailed;
}

std::string count(std::size_t number) {
  return std::to_string(number) + (number == 1 ? " issue" : " issues");
}

/// What became of one golden file.
struct Tested {
  int code = kOk;
  const char* state = "ok";  // ok | failed | same | written
  std::size_t issues = 0;
  std::vector<std::string> differences;
};

/// nullopt with `code`: it was not compared, stderr says why.
std::optional<Tested> test_one(const std::string& path, bool update, int& code) {
  const auto golden = load(path);
  code = kConfiguration;
  if (!golden) return std::nullopt;
  const auto found = judge(*golden);
  code = kUnreachable;
  if (!found) {
    std::cerr << "tocsin: " << path << ": " << found.error().message << "\n";
    return std::nullopt;
  }
  Tested out;
  out.issues = found->issues.size();
  out.differences = golden_diff(golden->expected, found->issues);
  // What a rule that failed would have found nobody knows, so no file is met by it, and none written.
  std::istringstream failed(found->failed);
  for (std::string line; std::getline(failed, line);) out.differences.push_back("! " + line);
  if (update && found->failed.empty()) {
    out.state = out.differences.empty() ? "same" : "written";
    code = out.differences.empty() ? kOk : write_golden(*golden, found->issues);
    if (code != kOk) return std::nullopt;
    return out;
  }
  if (!out.differences.empty()) out.state = "failed";
  code = out.code = out.differences.empty() ? kOk : kFailed;
  return out;
}

void show(const std::string& path, const Tested& tested) {
  const std::string_view state = tested.state;
  const bool compared = state == "ok" || state == "failed";
  std::cout << (state == "failed"    ? "FAIL  "
                : state == "ok"      ? "ok    "
                : state == "written" ? "written  "
                                     : "same     ")
            << path << ": " << count(tested.issues) << "\n";
  for (const std::string& line : tested.differences) {
    if (compared) std::cout << "  " << line << "\n";
  }
}

core::Value as_value(const std::string& path, const Tested& tested) {
  core::ValueList differences;
  for (const std::string& line : tested.differences) differences.emplace_back(line);
  return core::ValueMap{{"file", path},
                        {"state", tested.state},
                        {"issues", static_cast<std::int64_t>(tested.issues)},
                        {"differences", std::move(differences)}};
}

}  // namespace

std::vector<std::string> golden_diff(const std::vector<GoldenIssue>& expected,
                                     const std::vector<GoldenIssue>& found) {
  std::vector<bool> used(found.size(), false);
  const auto take = [&](const GoldenIssue& one, auto fits) -> const GoldenIssue* {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (used[i] || !fits(one, found[i])) continue;
      used[i] = true;
      return &found[i];
    }
    return nullptr;
  };
  std::vector<const GoldenIssue*> unmet;
  for (const GoldenIssue& one : expected) {
    if (take(one, meets) == nullptr) unmet.push_back(&one);
  }
  std::vector<std::string> out;
  for (const GoldenIssue* one : unmet) {
    out.push_back("- " + line_of(*one));
    if (const GoldenIssue* instead = take(*one, same_place))
      out.push_back("+ " + line_of(*instead));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!used[i]) out.push_back("+ " + line_of(found[i]));
  }
  return out;
}

int golden_command(const GoldenOptions& options) {
  int worst = kOk;
  core::ValueList list;
  for (const std::string& path : options.files) {
    int code = kOk;
    const auto tested = test_one(path, options.update, code);
    worst = std::max(worst, code);
    if (tested && options.json) list.push_back(as_value(path, *tested));
    if (tested && !options.json) show(path, *tested);
  }
  if (options.json) std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  return worst;
}

}  // namespace tocsin::app
