// What the hook saw of the first updates, as the issue training_preflight.
#include "rules/engine/issues/preflight.h"

#include <gtest/gtest.h>

#include "rules/engine/issues/protocol_words.h"
#include "tests/unit/rules/issues_of.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

TEST(Preflight, PartsThatDoNotTrainAreToldInTheFirstSteps) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  const auto preflight = [&](const std::string& findings) {
    OwnedFrame frame = worker.heartbeat();
    frame.body = R"({"event":"preflight","findings":[)" + findings + "]}";
    frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
    return frame;
  };
  rule.feed(worker.start()).feed(preflight("")).feed(preflight(R"({"kind":"of tomorrow"})"));
  EXPECT_TRUE(issues_of(rule.firing(), "training_preflight").empty());
  rule.feed(preflight(
      R"({"kind":"no_optimizer","model":"Net","count":2,"names":["head.bias","head.weight"]},)"
      R"({"kind":"no_gradient","model":"Net","count":7,"names":["a","b","c","d","e","f","g"]},)"
      R"({"kind":"foreign_parameters","model":"Net","count":1,"names":[]},)"
      R"({"kind":"gradients_kept","model":"Net","count":0,"names":[]},)"
      R"({"kind":"betas_swapped","model":"Net","count":2,"names":["0.999","0.9"]},)"
      R"({"kind":"decay_negative","model":"Net","count":1,"names":["-0.01"]},)"
      R"({"kind":"frozen_fresh","model":"Net","count":2,"names":["body.weight","body.bias"]},)"
      R"({"kind":"dropout_high","model":"Net","count":1,"names":["drop"]},)"
      R"({"kind":"updates_left_out","model":"Net","count":40,"names":["a","b","c","d","e","f","g"]},)"
      R"({"kind":"parts_in_eval","model":"Net","count":2,"names":["body.2","body.5"]},)"
      R"({"kind":"monitors_training","model":"Net","count":1,"names":["train_loss"]},)"
      R"({"kind":"clipped_scaled","model":"Net","count":2,"names":[]},)"
      R"({"kind":"clipped_late","model":"Net","count":2,"names":[]},)"
      R"x({"kind":"targets_broadcast","model":"mse_loss","count":2,"names":["(32, 1)","(32,)"]},)x"
      R"({"kind":"eval_mode","model":"Net","count":0,"names":[]})"));
  const auto issues = issues_of(rule.firing(), "training_preflight");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, core::Severity::warning);
  EXPECT_EQ(
      issues[0].summary,
      "2 trainable parameters of Net are in no watched optimizer: head.bias, head.weight. 7 "
      "parameters of Net got no gradient: a, b, c, d, e and 2 more. The optimizer of Net holds 1 "
      "parameter that the model does not have. Gradients of Net are never cleared, so each update "
      "sums all gradients since the first: call optimizer.zero_grad(). The optimizer of Net cannot "
      "converge: its first beta must be below the square root of the second (are they in the wrong "
      "order?): 0.999, 0.9. The optimizer of Net pushes weights away from zero: its weight decay "
      "is negative: -0.01. 2 frozen parameters of Net have freshly initialised values (were "
      "pretrained weights not loaded?): body.weight, body.bias. 1 of the dropouts of Net drop nine "
      "tenths or more of their input (is it the share to keep?): drop. The optimizer of Net has "
      "made no update while 40 values were logged: gradients are not finite, and a gradient scaler "
      "skips each such update: a, b, c, d, e and 2 more. 2 of the dropouts of Net are in "
      "evaluation mode during training (call train() after from_pretrained()): body.2, body.5. The "
      "best state of Net is chosen, or training is stopped, by a metric of the training set: "
      "train_loss. Gradients of Net are clipped while they are still multiplied by the loss scale: "
      "call scaler.unscale_(optimizer) before. Gradients of Net are clipped after the update that "
      "used them: clip between backward() and optimizer.step(). mse_loss compares every output "
      "with every target, because their shapes differ: (32, 1), (32,). Its best output is one "
      "constant. Give both the same shape, as with output.squeeze(-1). Net is trained in "
      "evaluation mode.");
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_0");
  rule.feed(worker.end());
  EXPECT_EQ(issues_of(rule.resolved(), "training_preflight").size(), 1U);
}

TEST(Preflight, TheOrderOfCallsIsToldWithItsRemedy) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  const auto summary = [&](const std::string& finding) {
    OwnedFrame frame = worker.heartbeat();
    frame.body = R"({"event":"preflight","findings":[)" + finding + "]}";
    frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
    rule.feed(frame);
    const auto issues = issues_of(rule.firing(), "training_preflight");
    return issues.empty() ? std::string() : issues.back().summary;
  };
  rule.feed(worker.start());
  EXPECT_EQ(summary(R"({"kind":"gradients_cleared","model":"Net","count":0,"names":[]})"),
            "Gradients of Net are cleared between backward() and optimizer.step(), so updates use "
            "none of them: call optimizer.zero_grad() before backward().");
}

TEST(Preflight, EachKindOfTheOrderOfCallsHasASentence) {
  for (const char* kind :
       {"gradients_cleared", "gradients_reused", "parameter_twice", "schedule_first",
        "schedule_twice", "scaler_left_out", "loss_not_scaled", "buffers_kept",
        "accumulation_left_out", "workers_alike", "workers_repeat", "checkpoint_lacks",
        "best_not_copied", "loss_divided_twice"}) {
    const ProtocolWords* const words = protocol_words(kind);
    ASSERT_NE(words, nullptr) << kind;
    EXPECT_NE(words->text.find("{model}"), std::string_view::npos) << kind;
    EXPECT_NE(words->text.find(": "), std::string_view::npos) << kind << " names no remedy";
  }
  EXPECT_EQ(protocol_words("of tomorrow"), nullptr);
}

TEST(Preflight, NamesAndNumbersStandInTheSentence) {
  core::ValueMap finding{
      {"kind", std::string("parameter_twice")},
      {"model", std::string("Net")},
      {"count", std::int64_t{2}},
      {"names", core::ValueList{std::string("a.weight"), std::string("a.bias")}}};
  core::Lifecycle body;
  body.findings = core::ValueList{core::Value(finding)};
  EXPECT_EQ(preflight_finding(body)->summary,
            "Each update of Net changes 2 of its parameters twice, they are in a second group or "
            "optimizer: give each parameter to one group: a.weight, a.bias.");
}

}  // namespace
}  // namespace tocsin::rules
