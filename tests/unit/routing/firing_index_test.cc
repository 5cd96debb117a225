// The index of firing issues, and that of matchers, answer as a walk over all would.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "routing/tables/firing_index.h"
#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using core::Duration;
using core::WallTime;

std::string letter(int number) { return std::string(1, static_cast<char>('a' + number)); }

rc::Gen<core::Labels> any_labels() {
  return rc::gen::map(rc::gen::container<std::vector<int>>(4, rc::gen::inRange(0, 4)),
                      [](const auto& values) {
                        core::Labels out{{"always", "there"}};
                        for (std::size_t i = 0; i < values.size(); ++i) {
                          if (values[i] > 0) out.set("l" + std::to_string(i), letter(values[i]));
                        }
                        return out;
                      });
}

/// None to three terms, of all operators, on labels that may be missing.
rc::Gen<Matchers> any_matchers() {
  const auto term = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(0, 4), rc::gen::inRange(0, 4), rc::gen::inRange(0, 4)),
      [](const std::tuple<int, int, int>& t) {
        const int value = std::get<2>(t);
        const std::string plain = value == 0 ? "" : letter(value);
        Matchers::Term out{"l" + std::to_string(std::get<0>(t)),
                           static_cast<MatchOperator>(std::get<1>(t)), plain};
        const bool regex = out.op == MatchOperator::regex || out.op == MatchOperator::not_regex;
        if (regex) out.value = "[a" + plain + "]?";
        return to_text(out);
      });
  return rc::gen::map(
      rc::gen::mapcat(rc::gen::inRange(0, 4),
                      [term](int count) {
                        return rc::gen::container<std::vector<std::string>>(
                            static_cast<std::size_t>(count), term);
                      }),
      [](const std::vector<std::string>& texts) { return *Matchers::parse(texts); });
}

TEST(MatcherIndex, FindsWhatTryingAllFinds) {
  EXPECT_TRUE(rc::check("matchers", [] {
    const auto sets = *rc::gen::container<std::vector<Matchers>>(any_matchers());
    const MatcherIndex index(sets);
    for (int i = 0; i < 10; ++i) {
      const core::Labels labels = *any_labels();
      std::vector<std::size_t> expected;
      for (std::size_t k = 0; k < sets.size(); ++k) {
        if (sets[k].matches(labels)) expected.push_back(k);
      }
      std::vector<std::size_t> found{99};
      index.match(labels, found);
      RC_ASSERT(found == expected);
    }
  }));
}

FiringQuestion any_question() {
  FiringQuestion out;
  out.matchers = *any_matchers();
  out.apart = *any_matchers();
  out.equal = *rc::gen::element(std::vector<std::string>{}, std::vector<std::string>{"l0"},
                                std::vector<std::string>{"l0", "l1"});
  out.min_age = *rc::gen::element<Duration>(0s, 5s);
  out.held = *rc::gen::element<Duration>(0s, 7s);
  return out;
}

/// The same question put to every issue.
bool walk(const std::vector<std::unique_ptr<IssueState>>& issues, const FiringQuestion& question,
          const core::Labels& labels, bool but_apart, WallTime tick) {
  return std::any_of(issues.begin(), issues.end(), [&](const auto& one) {
    const core::Labels& own = one->issue.labels;
    if (one->episode == 0 || one->issue.shadow || !question.matchers.matches(own)) return false;
    if (but_apart && question.apart.matches(own)) return false;
    for (const std::string& name : question.equal) {
      if (own.get(name) != labels.get(name)) return false;
    }
    const WallTime mature = one->issue.starts_at + question.min_age;
    if (one->firing) return mature <= tick;
    return question.held > Duration::zero() && mature <= *one->issue.ends_at &&
           tick < *one->issue.ends_at + question.held;
  });
}

/// Issues begin, change their labels, end, fire again and are forgotten; `index` is told of each.
class IssueHistory {
 public:
  explicit IssueHistory(FiringIndex& index) : index_(index) {}

  void step() {
    now_ += *rc::gen::element<Duration>(1ns, 1s, 3s, 10s);
    const int kind = *rc::gen::inRange(0, 6);
    if (kind <= 1 || issues_.empty()) return begin();
    const std::size_t which = *rc::gen::inRange<std::size_t>(0, issues_.size());
    IssueState& state = *issues_[which];
    if (kind == 5 && !state.firing) {
      index_.forget(state, now_);
      issues_.erase(issues_.begin() + static_cast<std::ptrdiff_t>(which));
      return;
    }
    if (kind == 2) state.issue.labels = *any_labels();
    if (kind >= 3) {
      state.firing = !state.firing;
      state.episode += state.firing ? 1 : 0;
      if (state.firing) state.issue.starts_at = now_ - *rc::gen::element<Duration>(0s, 4s);
      state.issue.ends_at = state.firing ? std::nullopt : std::optional(now_);
    }
    index_.follow(state, now_);
  }

  [[nodiscard]] const auto& issues() const { return issues_; }
  [[nodiscard]] WallTime now() const { return now_; }

 private:
  void begin() {
    auto state = std::make_unique<IssueState>();
    state->issue.labels = *any_labels();
    state->issue.starts_at = now_;
    state->issue.shadow = *rc::gen::inRange(0, 8) == 0;
    state->firing = true;
    state->episode = 1;
    index_.follow(*state, now_);
    issues_.push_back(std::move(state));
  }

  FiringIndex& index_;
  std::vector<std::unique_ptr<IssueState>> issues_;
  WallTime now_ = kStart;
};

TEST(FiringIndex, AnswersAsAWalkOverAllIssuesAndSaysWhenAnAnswerHasChanged) {
  EXPECT_TRUE(rc::check("firing issues", [] {
    FiringIndex index;
    std::vector<FiringQuestion> questions;
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
      questions.push_back(any_question());
      RC_ASSERT(index.ask(questions.back()) + 1 == questions.size());
    }
    IssueHistory history(index);
    const core::Labels looked = *any_labels();
    std::vector<bool> before(questions.size() * 2, false);
    WallTime since = history.now();
    for (int i = *rc::gen::inRange(0, 40); i > 0; --i) {
      history.step();
      const WallTime now = history.now();
      for (std::size_t q = 0; q < questions.size(); ++q) {
        for (const bool but_apart : {false, true}) {
          const bool expected = walk(history.issues(), questions[q], looked, but_apart, now);
          RC_ASSERT((index.deciding(q, looked, but_apart, now) != nullptr) == expected);
          const std::size_t slot = q * 2 + (but_apart ? 1 : 0);
          if (before[slot] != expected) RC_ASSERT(index.may_differ(q, looked, since, now));
          before[slot] = expected;
        }
      }
      since = now;
    }
    std::size_t firing = 0;
    for (const auto& one : history.issues()) {
      if (!one->firing || one->issue.shadow) continue;
      for (const FiringQuestion& question : questions) {
        firing += question.matchers.matches(one->issue.labels) ? 1 : 0;
      }
    }
    RC_ASSERT(index.size() >= firing);
    for (const auto& one : history.issues()) index.forget(*one, history.now());
    RC_ASSERT(index.size() == 0U);
  }));
}

TEST(FiringIndex, ValuesThatLookAlikeWhenJoinedAreNotEqual) {
  FiringIndex index;
  FiringQuestion question;
  question.equal = {"a", "b"};
  index.ask(question);
  IssueState state;
  state.issue.labels = {{"a", "x1:y"}, {"b", "z"}};
  state.firing = true;
  state.episode = 1;
  index.follow(state, kStart);
  EXPECT_NE(index.deciding(0, {{"a", "x1:y"}, {"b", "z"}}, false, kStart), nullptr);
  EXPECT_EQ(index.deciding(0, {{"a", "x"}, {"b", "y1:z"}}, false, kStart), nullptr);
  EXPECT_EQ(index.deciding(0, {{"b", "x1:yz"}}, false, kStart), nullptr);
}

}  // namespace
}  // namespace tocsin::routing
