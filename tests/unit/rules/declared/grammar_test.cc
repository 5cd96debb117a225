// The language of declarative rules: what it takes, what it refuses, and where it says the fault is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::read_rules_text;

// Errors of a rule with this select, condition and more keys; empty: it is fine.
std::string errors(const std::string& select, const std::string& when,
                   const std::string& more = {}) {
  return read_rules_text("  - name: r\n    select: " + select + "\n    when: " + when + "\n" + more)
      .errors;
}
std::string metric(const std::string& when, const std::string& more = {}) {
  return errors("metric(\"loss\")", when, more);
}
std::string tensor(const std::string& when, const std::string& more = {}) {
  return errors("tensor(\".*\")", when, more);
}
const std::string kLast = "    window: last 50 steps\n";
const std::string kHeadOfRule = "    window: since start\n";

TEST(DeclaredGrammar, TakesEveryLineOfTheGrammar) {
  for (const char* select :
       {"tensor(\".*\")", "collection(\"gradients\")", "metric(\"loss\")",
        "metric(\"loss\"){mode=\"train\"}", "tensor(\".*\"){op_type=~\"(?i)relu.*\"}",
        "tensor(\"conv.*\"){mode!=\"eval\", worker=~\"worker_[01]\", rank=\"0\", role=\"weight\"}",
        "tensor(\".*\"){dtype!~\"f.*\", node=\"n1\", team=\"nlp\", job=\"digits\"}"}) {
    EXPECT_EQ(errors(select, "nan > 0"), "") << select;
  }
  for (const char* window : {"last 1 step", "last 50 steps", "last 1024 steps", "last 5m",
                             "last 50 steps every 10 steps", "last 5m every 30s", "every 10 steps",
                             "every 60s", "session 1.5s", "since start"}) {
    EXPECT_EQ(metric("mean(value) > 1", std::string("    window: ") + window + "\n"), "") << window;
  }
  for (const char* when :
       {"value > 1", "value >= 1 and value <= 2 or not finite(value)", "value == 1 or value != 2",
        "-value * 2 + 3 / 4 - 1 < 5", "(value + 1) * 2 > 3", "true", "not (value > 1)",
        "abs(value) > 1 and log10(value) < 2 and sqrt(value) < 3",
        "min2(value, 2) > max2(value, 3)", "if(value > 1, 2, 3) > 2", "if(value > 1, true, false)",
        "step > 10", "nan + posinf > 0", "prev(value, 3) > 1", "world_size > 1",
        "finite(value) == true"}) {
    EXPECT_EQ(metric(when), "") << when;
  }
  for (const char* when : {"count(value) > 1",
                           "count(value > 3) > 1",
                           "sum(value) > 1",
                           "mean(value) > 1",
                           "min(value) > 1",
                           "max(value) > 1",
                           "std(value) > 1",
                           "first(value) > 1",
                           "last(value) > 1",
                           "delta(value) > 1",
                           "rate(value) > 1",
                           "slope(value) > 1",
                           "quantile(value, 0.9) > 1",
                           "median(value) > 1",
                           "ewma(value, 0.1) > 1",
                           "zscore(value) > 4",
                           "steps_since_min(value) > 20",
                           "steps_since_max(value) > 20",
                           "mean(value) > 2 * previous(mean(value))",
                           "mean(abs(value - prev(value, 1))) > 1"}) {
    EXPECT_EQ(metric(when, kLast), "") << when;
  }
  for (const char* name :
       {"count",      "sum",     "sumsq",          "m2",   "abs_sum",  "min",      "max",
        "nan",        "posinf",  "neginf",         "zero", "negative", "mean",     "abs_mean",
        "l1",         "l2",      "variance",       "std",  "abs_max",  "positive", "abs_variance",
        "abs_std",    "median",  "prod",           "p05",  "p95",      "delta_l2", "prev_l2",
        "unit_count", "abs_min", "first_bad_index"}) {
    EXPECT_EQ(tensor(std::string(name) + " > 0"), "") << name;
  }
}

struct Refusal {
  std::string when;
  std::string message;
  int column;  // of the character in the YAML line; `when` begins in column 11
};

void expect_refused(const std::string& select, const std::vector<Refusal>& refusals,
                    const std::string& more = {}) {
  for (const Refusal& one : refusals) {
    const std::string said = errors(select, one.when, more);
    EXPECT_THAT(said, HasSubstr(one.message)) << one.when;
    EXPECT_THAT(said, HasSubstr(":4:" + std::to_string(one.column) + ":")) << one.when << "\n"
                                                                           << said;
  }
}

TEST(DeclaredGrammar, NamesTheCharacterOfEveryFault) {
  expect_refused("metric(\"loss\")",
                 {{"value >", "expected a number, a name, a function or '(', found the end", 18},
                  {"valeu > 1", "unknown name valeu; did you mean value?", 11},
                  {"1 + valeu > 1", "did you mean value?", 15},
                  {"value > 1 2", "unexpected a number: expected an operator or the end", 21},
                  {"value > 1 adn value < 2", "unexpected the name adn; did you mean and?", 21},
                  {"value > 1 AND value < 2", "unexpected the name AND; did you mean and?", 21},
                  {"value > step AND true", "unexpected the name AND; did you mean and?", 24},
                  {"value > 1 && value < 2", "unexpected character '&': write and", 21},
                  {"value > 1 || value < 2", "unexpected character '|': write or", 21},
                  {"value > 1 and !finite(value)", "unexpected character '!': write not", 25},
                  {"avg(value) > 1", "unknown function avg; did you mean mean?", 11},
                  {"isnan(value)", "unknown function isnan; did you mean not finite?", 11},
                  {"value = 1", "expected == to compare", 17},
                  {"1 < value < 3", "comparisons do not chain", 21},
                  {"(value > 1", "expected ')', found the end", 21},
                  {"value > 3 apples", "unknown unit apples", 21},
                  {"value > 3 kiB", "did you mean KiB?", 21},
                  {"value > $x", "unexpected character '$'", 19},
                  {"value > 1e999", "does not fit into 64-bit floating point", 19},
                  {"men(value) > 1", "unknown function men; did you mean mean?", 11},
                  {"value", "`when` must be a bool", 11},
                  {"value and true", "expected a bool, found a number", 11},
                  {"value > true", "expected a number, found a bool", 19},
                  {"not value", "expected a bool, found a number", 15},
                  {"abs(value, 1) > 1", "abs takes 1 argument: abs(x); found 2", 11},
                  {"if(value, 1, 2) > 1", "expected a bool, found a number", 14},
                  {"mean > 1", "mean is a function: write mean(x)", 11},
                  {"a.value > 1", "there is one selection without a name", 11},
                  {"across(max, value) > 1", "it leaves out nothing", 11},
                  {"slope(value) > 1", "slope needs more than one point", 11},
                  {"mean(1) > 1", "expected something of the selection", 16},
                  {"mean(value > 1) > 1", "expected a number, found a bool", 16},
                  {"value > \"a\"", "expected a number, found a text", 19},
                  {"fired(\"x\") or value > 1", "no rule is called x", 18},
                  {"fired(value)", "expected the name of a rule in quotes", 17},
                  {"fired(\"x\", 5)", "expected a number of steps", 22},
                  {"max2(fired(\"x\"), 1) > 0", "expected a number, found a bool", 16},
                  {"other(\"x\", value) > 1", "expected the uid of a run in quotes", 17}});
  expect_refused("tensor(\".*\")", {{"value > 1", "a tensor has many values: name a statistic", 11},
                                    {"l3 > 1", "unknown name l3; did you mean l1?", 11}});
  expect_refused("metric(\"loss\")",
                 {{"quantile(value, 2) > 1", "expected a share from 0 to 1", 27},
                  {"ewma(value, 0) > 1", "the weight of the newest point", 23},
                  {"prev(value, 0.5) > 1", "a whole number of points", 23},
                  {"mean(max(value)) > 1", "an aggregate cannot stand inside another", 16},
                  {"previous(value) > 1", "expected an aggregate of a window", 20}},
                 kLast);
  expect_refused("metric(\"loss\")", {{"previous(mean(value)) > 1", "no window before one", 11}},
                 kHeadOfRule);
  expect_refused("metric(\"loss\")", {{"value > 1", "this window is judged when it is over", 11}},
                 "    window: every 10 steps\n");
}

TEST(DeclaredGrammar, NamesTheCharacterOfASelector) {
  const auto at = [](const std::string& select, const std::string& message, int column) {
    const std::string said = errors(select, "nan > 0");
    EXPECT_THAT(said, HasSubstr(message)) << select;
    EXPECT_THAT(said, HasSubstr(":3:" + std::to_string(column) + ":")) << select << "\n" << said;
  };
  at("metrc(\"loss\")", "unknown source metrc; did you mean metric?", 13);
  at("metric(loss)", "expected a text in quotes, found the name loss", 20);
  at("metric(\"(\")", "is no regular expression", 21);
  at("metric(\"a\"){mdoe=\"train\"}", "did you mean mode?", 25);
  at("metric(\"a\"){mode=\"trian\"}", "did you mean train?", 31);
  at("metric(\"a\"){mode>\"train\"}", "expected =, !=, =~ or !~", 29);
  at("metric(\"a\"){mode=~\"x\"}", "no mode is left", 32);
  at("metric(\"a\") {mode=\"train\"", "expected '}', found the end", 38);
  at("tensor(\"a\"){optype=\"relu\"}", "did you mean op_type?", 25);
  at("span(\"(\")", "is no regular expression", 19);
}

TEST(DeclaredGrammar, FollowsTextsOverLinesAndQuotes) {
  // A quote inside quotes, a folded text, a literal one.
  EXPECT_THAT(errors("'metric(\"loss\")'", "'value > 1 and valeu > 2'"), HasSubstr(":4:26:"));
  EXPECT_THAT(errors("\"metric(\\\"los\\\"){mdoe=\\\"x\\\"}\"", "nan > 0"), HasSubstr(":3:30:"));
  EXPECT_THAT(metric(">\n      value > 1\n      and valeu > 2"), HasSubstr(":6:11:"));
  EXPECT_THAT(metric("|\n      value > 1 and\n        valeu > 2\n"), HasSubstr(":6:9:"));
  EXPECT_THAT(metric("value > 1\n      and valeu > 2"), HasSubstr(":5:11:"));
}

TEST(DeclaredGrammar, RefusesWindowsItCannotKeep) {
  EXPECT_THAT(metric("mean(value) > 1", "    window: last 2000 steps\n"),
              HasSubstr("expected at most 1024 steps"));
  EXPECT_THAT(metric("mean(value) > 1", "    window: lats 20 steps\n"),
              HasSubstr("did you mean last?"));
  EXPECT_THAT(metric("mean(value) > 1", "    window: last 20 stpes\n"),
              HasSubstr("did you mean steps?"));
  EXPECT_THAT(metric("mean(value) > 1", "    window: last 20 steps every 5s\n"),
              HasSubstr("a window of steps hops by steps"));
  EXPECT_THAT(metric("mean(value) > 1", "    window: session 5 steps\n"),
              HasSubstr("expected a duration"));
  EXPECT_THAT(metric("mean(value) > 1", "    window: last 0 steps\n"),
              HasSubstr("a whole number of steps"));
}

TEST(DeclaredGrammar, RefusesWhatIsNeitherBuiltInNorComplete) {
  EXPECT_THAT(read_rules_text("  - {name: r, select: 'metric(\"a\")'}").errors,
              HasSubstr("give exactly one of use, when, sequence, source or library"));
  EXPECT_THAT(read_rules_text("  - {name: r, when: 'value > 1'}").errors,
              HasSubstr("exactly one of select or let"));
  EXPECT_THAT(read_rules_text("  - {select: 'metric(\"a\")', when: 'value > 1'}").errors,
              HasSubstr("a rule of your own needs a name"));
  EXPECT_THAT(read_rules_text("  - {use: overfit, when: 'value > 1'}").errors,
              HasSubstr("give exactly one of use, when, sequence, source or library"));
  EXPECT_THAT(
      read_rules_text("  - {name: r, select: 'metric(\"a\")', when: 'value > 1', fro: 3}").errors,
      HasSubstr("did you mean \"for\"?"));
  EXPECT_THAT(metric("value > 1", "    by: [wroker]\n"), HasSubstr("did you mean worker?"));
  EXPECT_THAT(metric("value > 1", "    evidence: 'is {valeu}'\n"), HasSubstr(":5:20:"));
  EXPECT_THAT(metric("value > 1", "    evidence: 'is {value'\n"), HasSubstr("is not closed"));
  EXPECT_THAT(metric("value > 1", "    evidence: 'of {wroker}'\n"),
              HasSubstr("did you mean worker?"));
  EXPECT_THAT(metric("value > 1", "    evidence: '{tensor}'\n"),
              HasSubstr("metric, worker or mode"));
  EXPECT_THAT(metric("wroker > 1"), Not(HasSubstr("worker?")));  // there a label is no number
  EXPECT_THAT(
      read_rules_text("  - {name: r, let: {t: 'metric(\"a\")', e: 'step()'}, when: 't > e'}")
          .errors,
      HasSubstr("t is a selection: write t.value"));
}

TEST(DeclaredGrammar, RefusesWhatIsNestedOrChainedWithoutEnd) {
  EXPECT_THAT(metric(std::string(200, '(') + "value" + std::string(200, ')') + " > 1"),
              HasSubstr("nested deeper than 64 parts"));
  std::string deep = "value > 1";
  for (int i = 0; i < 40; ++i) deep = "true or true and 1 == 1 + 1 * if(" + deep + ", 1, 2)";
  EXPECT_THAT(metric(deep), HasSubstr("too many parts within each other"));
  std::string sum = "value";
  for (int i = 0; i < 300; ++i) sum += " + value";
  EXPECT_THAT(metric(sum + " > 1"), HasSubstr("more than 256 operators"));
}

TEST(DeclaredGrammar, TheHashSaysWhatDecidesAndNothingElse) {
  const auto hash = [](const std::string& more) {
    const auto read =
        read_rules_text("  - {name: r, select: 'metric(\"a\")', when: 'value > 1'" + more + "}");
    EXPECT_EQ(read.errors, "");
    return read.config.rules.at(0).params_hash;
  };
  EXPECT_EQ(hash(""), hash(", evidence: 'is {value}', severity: info, shadow: true"));
  EXPECT_NE(hash(""), hash(", for: 2"));
  EXPECT_NE(hash(""), hash(", window: last 2 steps"));
}

}  // namespace
}  // namespace tocsin::rules
