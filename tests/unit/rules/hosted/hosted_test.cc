// Rules that another process judges, with one that is played: what it is given, what becomes of what
// it says, and that its death, its silence and ours change nothing in what is told.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

/// A process that fires when the loss is above 2, and remembers how many steps it has judged.
class PlayedHost final : public StepHost {
 public:
  core::Result<std::uint64_t> ready(const HostedRule&) override {
    ++readied;
    if (!start_error.empty()) return core::unavailable(start_error);
    if (process == 0) process = ++numbers;
    return process;
  }
  core::Result<std::string> ask(const HostedRule& rule, std::string_view text) override {
    const auto request = core::parse_json(text, 1U << 24);
    if (!request) return core::internal_error(std::string(text));
    const std::string type = core::text_at(*request, "type");
    const std::int64_t number = *core::as<std::int64_t>(core::find(*request, "session"));
    if (type == "open") {
      Session& opened = sessions[{process, number}];
      const std::string saved = core::text_at(*request, "saved");
      opened.judged = saved.empty() ? 0 : std::stoi(saved);
      last_run = core::text_at(*request, "run");
      return std::string(R"({"type":"result","outcome":"ok"})");
    }
    const auto found = sessions.find({process, number});
    if (found == sessions.end()) return core::internal_error("a session that was never opened");
    const std::int64_t step = *core::as<std::int64_t>(core::find(*request, "step"));
    const bool judge = *core::as<bool>(core::find(*request, "judge"));
    const auto kept =
        static_cast<std::size_t>(*core::as<std::int64_t>(core::find(*request, "kept")));
    std::deque<std::int64_t>& seen = found->second.seen;
    while (seen.size() > kept) seen.pop_front();
    seen.push_back(step);
    if (!judge) return std::string(R"({"type":"result","outcome":"ok"})");
    if (step == die_at) {
      process = 0;
      if (!die_again) die_at = -1;
      return core::unavailable("its process was ended by signal 9");
    }
    if (step == hang_at) {
      process = 0;
      return core::Error{core::Code::deadline_exceeded, "it gave no answer within 10000 ms"};
    }
    if (step == raise_at) return std::string(R"({"type":"error","error":"ValueError: no"})");
    ++found->second.judged;
    std::string out = R"({"type":"result","saved":")" + std::to_string(found->second.judged) + "\"";
    const auto& rows = *core::as<core::ValueList>(core::find(*request, "rows"));
    double largest = 0;
    for (const core::Value& row : rows) largest = std::max(largest, number_at(row, "v"));
    if (step == lacks_at) return out + R"(,"outcome":"insufficient_data"})";
    if (largest <= 2) return out + R"(,"outcome":"ok"})";
    return out + R"(,"outcome":"hit","issues":[{"key":")" + key +
           R"(","label":"tensor","summary":")" + rule.name + " " +
           std::to_string(found->second.judged) + "/" + std::to_string(seen.size()) +
           R"(","severity":"critical","observed_name":"loss",)" +
           R"("observed":3,"threshold":2,"operator":">","values":)" + values + "}]}";
  }
  void forget(const HostedRule&, std::uint64_t session) override { forgotten.push_back(session); }
  std::uint64_t session() override { return ++opened_sessions; }

  static double number_at(const core::Value& map, std::string_view name) {
    const core::Value* value = core::find(map, name);
    if (const auto* real = core::as<double>(value)) return *real;
    if (const auto* whole = core::as<std::int64_t>(value)) return static_cast<double>(*whole);
    return 0;
  }

  struct Session {
    int judged = 0;
    std::deque<std::int64_t> seen;
  };
  std::map<std::pair<std::uint64_t, std::int64_t>, Session> sessions;
  std::vector<std::uint64_t> forgotten;
  std::string key;
  std::string values = R"({"a":1})";
  std::string start_error;
  std::string last_run;
  std::int64_t die_at = -1;
  bool die_again = false;
  std::int64_t hang_at = -1;
  std::int64_t raise_at = -1;
  std::int64_t lacks_at = -1;
  std::uint64_t process = 0;
  std::uint64_t numbers = 0;
  std::uint64_t opened_sessions = 0;
  int readied = 0;
};

class Hosted : public ::testing::Test {
 protected:
  void SetUp() override {
    source = (std::filesystem::temp_directory_path() /
              ("hosted_test_" + std::string(test_name()) + ".py"))
                 .string();
    write("class A: pass\n");
  }
  void TearDown() override { std::filesystem::remove(source); }
  static const char* test_name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void write(const std::string& text) const { std::ofstream(source) << text; }
  [[nodiscard]] std::string yaml(const std::string& more = {}) const {
    return "- {name: mine, source: '" + source + "'" + more + "}\n";
  }
  [[nodiscard]] EngineOptions options() const {
    EngineOptions out;
    out.host = host;
    return out;
  }
  [[nodiscard]] RuleHarness harness(const std::string& more = {}) const {
    return RuleHarness(yaml(more), options());
  }
  /// A step with this loss, ended.
  static void step(RuleHarness& rule, FakeWorker& worker, std::int64_t step, double loss) {
    rule.feed(worker.scalars(core::Mode::train, {{"loss", step, loss}}));
    rule.feed(worker.step_end(core::Mode::train, step));
  }

  std::shared_ptr<PlayedHost> host = std::make_shared<PlayedHost>();
  std::string source;
};

TEST_F(Hosted, AHitIsAnIssueOfTheRunWithWhatTheRuleSays) {
  RuleHarness rule = harness();
  FakeWorker worker;
  rule.feed(worker.start());
  for (int i = 0; i < 3; ++i) step(rule, worker, i, i < 2 ? 1 : 3);
  ASSERT_EQ(rule.firing().size(), 1U);
  const core::Issue issue = rule.firing().front();
  EXPECT_EQ(issue.rule, "mine");
  EXPECT_EQ(issue.rule_type, "python");
  EXPECT_EQ(issue.summary, "mine 3/3");  // the third that it judges, with three to look at
  EXPECT_EQ(issue.severity, core::Severity::critical);
  EXPECT_EQ(issue.step, 2);
  EXPECT_EQ(issue.evidence.observed.value, 3);
  ASSERT_TRUE(issue.evidence.threshold.has_value());
  EXPECT_EQ(issue.evidence.threshold->value, 2);
  EXPECT_EQ(rule.rule_state("mine"), "IssuesFound");
  EXPECT_NE(host->last_run.find("/1"), std::string::npos);
  for (int i = 3; i < 6; ++i) step(rule, worker, i, 1);
  ASSERT_EQ(rule.resolved().size(), 1U);
}

TEST_F(Hosted, AKeyIsAUnitOfItsOwn) {
  RuleHarness rule = harness();
  FakeWorker worker;
  host->key = "fc.weight";
  step(rule, worker, 0, 3);
  host->key = "other.weight";
  step(rule, worker, 1, 3);
  ASSERT_EQ(rule.firing().size(), 2U);
  EXPECT_EQ(rule.firing()[0].labels.get("tensor"), "fc.weight");
  EXPECT_EQ(rule.firing()[1].labels.get("tensor"), "other.weight");
  for (int i = 2; i < 5; ++i) step(rule, worker, i, 1);
  EXPECT_EQ(rule.resolved().size(), 2U);
}

TEST_F(Hosted, WhatIsToldStaysSmallEnoughForItsEvent) {
  RuleHarness rule = harness();
  FakeWorker worker;
  host->key = std::string(100'000, 'k');
  host->values = R"({"all":")" + std::string(5'000'000, 'x') + "\"}";
  step(rule, worker, 0, 3);
  ASSERT_EQ(rule.firing().size(), 1U);
  const core::Issue issue = rule.firing()[0];
  EXPECT_EQ(issue.labels.get("tensor"), std::string(1024, 'k'));
  EXPECT_EQ(core::to_json(issue.evidence.values),
            R"({"left_out":"evidence of 5000010 bytes; at most 16384 are told"})");
  EXPECT_EQ(rule.rule_state("mine"), "IssuesFound");
}

TEST_F(Hosted, AStepWaitsForAllWorkers) {
  RuleHarness rule = harness();
  FakeWorker first("digits", "two", 0, 2);
  FakeWorker second("digits", "two", 1, 2);
  rule.feed(first.start()).feed(second.start());
  step(rule, first, 0, 3);
  EXPECT_TRUE(rule.firing().empty());
  step(rule, second, 0, 1);
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST_F(Hosted, WhatCannotBeJudgedIsNeitherGoodNorBad) {
  RuleHarness rule = harness();
  FakeWorker worker;
  step(rule, worker, 0, 3);
  for (int i = 1; i < 6; ++i) {
    host->lacks_at = i;
    step(rule, worker, i, 1);
  }
  EXPECT_TRUE(rule.resolved().empty());
}

TEST_F(Hosted, AnExceptionIsTheStatusErrorUntilItWorksAgain) {
  RuleHarness rule = harness();
  FakeWorker worker;
  step(rule, worker, 0, 1);
  EXPECT_EQ(rule.rule_state("mine"), "InProgress");
  host->raise_at = 1;
  step(rule, worker, 1, 1);
  EXPECT_EQ(rule.rule_state("mine"), "Error");
  std::string reason;
  for (const Event& event : rule.events()) {
    if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) reason = status->reason;
  }
  EXPECT_EQ(reason, "ValueError: no");
  for (int i = 2; i < 5; ++i) step(rule, worker, i, 1);
  EXPECT_EQ(rule.rule_state("mine"), "InProgress");
}

TEST_F(Hosted, AProcessThatWasKilledGoesOnAsIfItHadNot) {
  std::vector<std::string> told;
  for (const bool killed : {false, true}) {
    host = std::make_shared<PlayedHost>();
    if (killed) host->die_at = 3;
    RuleHarness rule = harness(", options: {cooldown: 0s, history: 2}");
    FakeWorker worker;
    for (int i = 0; i < 6; ++i) step(rule, worker, i, 3);
    std::string all;
    for (const core::Issue& issue : rule.firing()) all += issue.event_id + issue.summary + "\n";
    told.push_back(all);
    EXPECT_EQ(rule.rule_state("mine"), "IssuesFound");
    EXPECT_EQ(host->numbers, killed ? 2U : 1U);
  }
  EXPECT_NE(told[0].find("mine 6/3"), std::string::npos) << told[0];
  EXPECT_EQ(told[0], told[1]);
}

TEST_F(Hosted, AStepAtWhichItAlwaysDiesIsAnErrorAndNoEndlessLoop) {
  RuleHarness rule = harness();
  FakeWorker worker;
  host->die_at = 1;
  host->die_again = true;
  for (int i = 0; i < 3; ++i) step(rule, worker, i, 3);
  EXPECT_EQ(host->numbers, 3U);  // asked twice at the step, and once more behind it
  EXPECT_EQ(rule.rule_state("mine"), "Error");
  EXPECT_EQ(rule.firing().size(), 1U);  // of step 0; step 2 was judged too, within the cooldown
}

TEST_F(Hosted, AHangIsNotAskedTwiceAndAfterFiveTheRuleIsGivenUp) {
  RuleHarness rule = harness();
  FakeWorker worker;
  for (int i = 0; i < 9; ++i) {
    host->hang_at = i;
    step(rule, worker, i, 3);
  }
  EXPECT_EQ(host->numbers, 5U);
  EXPECT_EQ(host->readied, 5);
  EXPECT_EQ(rule.rule_state("mine"), "Error");
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.end());
  EXPECT_EQ(rule.rule_state("mine"), "Error");  // and that is how it ends
}

TEST_F(Hosted, WithoutAHostItIsAnError) {
  RuleHarness rule(yaml(), {});
  FakeWorker worker;
  step(rule, worker, 0, 1);
  EXPECT_EQ(rule.rule_state("mine"), "Error");
}

TEST_F(Hosted, AnEndedRunIsForgotten) {
  {
    RuleHarness rule = harness();
    FakeWorker worker;
    step(rule, worker, 0, 1);
  }
  EXPECT_EQ(host->forgotten, std::vector<std::uint64_t>{1});
}

// Killed behind every step, with and without a snapshot: the same ids, each once.
TEST_F(Hosted, WhatTheRuleRemembersOutlivesTheEngine) {
  const std::string rules = yaml(", options: {cooldown: 0s, history: 3}");
  const auto run = [&](int kill_behind, bool snapshot) {
    host = std::make_shared<PlayedHost>();
    StateTopic topic(rules, options());
    FakeWorker worker;
    for (int i = 0; i < 8; ++i) {
      topic.feed(worker.scalars(core::Mode::train, {{"loss", i, i % 3 == 2 ? 1.0 : 3.0}}));
      topic.feed(worker.step_end(core::Mode::train, i));
      while (i == 2 && snapshot && topic.piece(1U << 20)) {
      }
      topic.commit();
      if (i == kill_behind) {
        host->process = 0;
        topic.restart();
      }
    }
    return topic.told();
  };
  const auto undisturbed = run(-1, false);
  ASSERT_GE(undisturbed.size(), 5U);
  for (int behind = 0; behind < 8; ++behind) {
    EXPECT_EQ(run(behind, false), undisturbed) << behind;
    EXPECT_EQ(run(behind, true), undisturbed) << behind;
  }
}

// Its file was changed while nothing ran, and changed back before a snapshot of the other was whole: the
// last snapshot still needs what the first one remembered.
TEST_F(Hosted, AFileThatIsChangedBackFindsAWholeState) {
  for (int behind = 0; behind < 20; ++behind) {
    write("class A: pass\n");
    host = std::make_shared<PlayedHost>();
    StateTopic topic(yaml(", options: {cooldown: 0s}"), options());
    FakeWorker worker;
    std::int64_t at = 0;
    const auto one = [&] {
      topic.feed(worker.scalars(core::Mode::train, {{"loss", at, 3.0}}));
      topic.feed(worker.step_end(core::Mode::train, at++));
      topic.commit();
    };
    one();
    while (topic.piece(1U << 20)) topic.commit();
    topic.commit();
    host->process = 0;
    write("class A: changed = True\n");
    topic.restart_with(yaml(", options: {cooldown: 0s}"));
    if (behind % 2 == 1) one();  // or the run is silent
    for (int i = 0; i < behind / 2 && topic.piece(1); ++i) topic.commit();
    topic.commit();
    host->process = 0;
    write("class A: pass\n");
    topic.restart_with(yaml(", options: {cooldown: 0s}"));
    ASSERT_FALSE(topic.broken()) << behind;
    const std::size_t before = topic.told().size();
    one();
    EXPECT_GT(topic.told().size(), before) << behind;
  }
}

TEST_F(Hosted, TheVersionIsThatOfTheFile) {
  const auto version = [&] { return read_rules_text(yaml()).config.rules.at(0).version; };
  const std::string before = version();
  EXPECT_EQ(before.size(), 12U);
  EXPECT_EQ(version(), before);
  write("class A: changed = True\n");
  EXPECT_NE(version(), before);
}

TEST_F(Hosted, Configuration) {
  const auto read = [&](const std::string& more) { return read_rules_text(yaml(more)); };
  const ReadRules full = read(
      ", type: python, class: A, with: {threshold: 3}, collections_to_save: [gradients], raw: "
      "[weights], severity: "
      "error, options: {collection_names: [gradients], modes: [train], history: 5, timeout: 2s, "
      "memory: 64MiB}");
  ASSERT_EQ(full.errors, "");
  const HostedRule& rule = *full.config.rules.at(0).hosted;
  EXPECT_EQ(rule.class_name, "A");
  EXPECT_EQ(rule.timeout, std::chrono::seconds(2));
  EXPECT_EQ(rule.memory, 64U << 20);
  EXPECT_EQ(full.config.rules.at(0).type, "python");
  EXPECT_NE(full.config.rules.at(0).params_hash, read("").config.rules.at(0).params_hash);
  EXPECT_NE(read(", class: 'A B'").errors.find("cannot be the name of a class"), std::string::npos);
  EXPECT_NE(read(", with: [1]").errors.find("expected a map"), std::string::npos);
  EXPECT_NE(read(", with: {a-b: 1}").errors.find("name of an argument"), std::string::npos);
  EXPECT_NE(read(", options: {histroy: 3}").errors.find("history"), std::string::npos);
  EXPECT_NE(read(", when: 'value > 1'").errors.find("exactly one of"), std::string::npos);
  EXPECT_NE(
      read_rules_text("- {name: m, source: /nowhere/rule.py}\n").errors.find("cannot be read"),
      std::string::npos);
}

}  // namespace
}  // namespace tocsin::rules
