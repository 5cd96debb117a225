// Native rules: the example as it is built, its state over a restart, and libraries that are refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

std::string library(const std::string& name) {
  return std::string(LIBRARIES) + "/lib" + name + ".so";
}

/// A whole configuration: libraries are loaded only where it says so.
ReadRules read_native(const std::string& item, const std::string& plugins = "{native: true}") {
  ReadRules out;
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(
      "plugins: " + plugins + "\nrules:\n- " + item + "\n", "test", nothing, diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) {
      root.section("plugins", "", [](config::Reader& in) {
        bool ignored = false;
        in.optional("native", ignored, "");
      });
      read_rules(root, out.config);
    });
  }
  for (const auto& one : diagnostics.items()) out.errors += config::to_text(one) + "\n";
  return out;
}

std::string jump(const std::string& more = {}) {
  return "{name: jump, type: native, library: " + library("norm_jump") + more + "}";
}

OwnedFrame gradient(FakeWorker& worker, std::int64_t step, double norm) {
  return worker.summary(core::Mode::train, step,
                        {row_of("gradient/fc.weight", core::Role::gradient, 4, norm, norm / 4)});
}

TEST(Native, TheExampleFiresAndSaysWhy) {
  const ReadRules rules = read_native(jump(", with: {warm_up: 3}"));
  ASSERT_EQ(rules.errors, "");
  RuleHarness rule(rules.config, {});
  FakeWorker worker;
  rule.feed(worker.dictionary(
      {{core::DictionaryType::tensor, "gradient/fc.weight", core::Role::gradient}}));
  for (int i = 0; i < 6; ++i) rule.feed(gradient(worker, i, i == 4 ? 50 : 2));
  ASSERT_EQ(rule.firing().size(), 1U);
  const core::Issue issue = rule.firing().front();
  EXPECT_EQ(issue.rule, "jump");
  EXPECT_EQ(issue.rule_type, "norm_jump");
  EXPECT_EQ(issue.rule_version, "1");
  EXPECT_EQ(issue.step, 4);
  EXPECT_EQ(issue.summary,
            "The norm of gradient/fc.weight is 25 times its mean so far at train step 4 on "
            "worker_0.");
  EXPECT_EQ(issue.evidence.observed.name, "norm_ratio");
  EXPECT_EQ(issue.evidence.observed.value, 25);
  ASSERT_TRUE(issue.evidence.threshold.has_value());
  EXPECT_EQ(issue.evidence.threshold->value, 10);
  EXPECT_EQ(issue.labels.get("tensor"), "gradient/fc.weight");
}

TEST(Native, ItLooksAtTheRolesThatItNames) {
  RuleHarness rule(read_native(jump(", with: {warm_up: 1}")).config, {});
  FakeWorker worker;
  for (int i = 0; i < 6; ++i) {
    rule.feed(worker.summary(core::Mode::train, i,
                             {row_of("fc.weight", core::Role::weight, 4, i == 4 ? 500 : 2, 1)}));
  }
  EXPECT_TRUE(rule.firing().empty());
}

TEST(Native, ItsStateOutlivesTheEngine) {
  const auto run = [](int kill_behind) {
    StateTopic topic(read_native(jump(", with: {warm_up: 3}")).config);
    FakeWorker worker;
    for (int i = 0; i < 8; ++i) {
      topic.feed(gradient(worker, i, i == 6 ? 50 : 2));
      while (i == 1 && topic.piece(1U << 20)) {
      }
      topic.commit();
      if (i == kill_behind) topic.restart();
    }
    return topic.told();
  };
  const auto undisturbed = run(-1);
  ASSERT_FALSE(undisturbed.empty());
  for (int behind = 0; behind < 8; ++behind) EXPECT_EQ(run(behind), undisturbed) << behind;
}

TEST(Native, AnErrorIsTheStatusErrorWithItsNumber) {
  const ReadRules rules = read_native("{name: faulty, library: " + library("native_fails") + "}");
  ASSERT_EQ(rules.errors, "");
  RuleHarness rule(rules.config, {});
  FakeWorker worker;
  const auto loss = [&](std::int64_t step, double value) {
    rule.feed(worker.scalars(core::Mode::train, {{"loss", step, value}}));
  };
  loss(0, 1);
  EXPECT_EQ(rule.rule_state("faulty"), "InProgress");
  loss(1, 101);
  EXPECT_EQ(rule.rule_state("faulty"), "Error");
  std::string reason;
  for (const Event& event : rule.events()) {
    if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) reason = status->reason;
  }
  EXPECT_NE(reason.find("answered -5"), std::string::npos) << reason;
  loss(2, 3);
  EXPECT_EQ(rule.firing().size(), 1U);  // it goes on judging
}

TEST(Native, WhatIsRefusedSaysWhy) {
  const auto refused = [](const std::string& item, const std::string& plugins = "{native: true}") {
    const ReadRules read = read_native(item, plugins);
    EXPECT_TRUE(read.config.rules.empty()) << item;
    return read.errors;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const auto named = [](const std::string& name) { return "{library: " + library(name) + "}"; };
  has(refused(jump(), "{native: false}"), "plugins: {native: true}");
  has(refused(jump(", options: {min_hits: 2}"), "{}"), "plugins: {native: true}");
  has(refused("{library: libnorm_jump.so}"), "is no absolute path");
  has(refused("{library: /nowhere/lib.so}"), "No such file");
  has(refused(named("native_wrong_abi")), "is built for version 2 of the ABI of rules");
  has(refused(named("native_no_update")), "has no function tocsin_rule_update");
  has(refused(named("native_no_json")), "does not describe itself");
  has(refused(named("native_no_state_bytes")), "state_bytes must be a number");
  has(refused(jump(", with: {facter: 3}")), "did you mean factor?");
  has(refused(jump(", with: {factor: much}")), "expected a value like 10");
  has(refused(jump(", with: {factor: 0.5}")), "factor: expected more than 1");
  has(read_native("{type: python, library: " + library("norm_jump") + "}").errors, "native");
}

TEST(Native, WhatEverybodyMayWriteIsNotLoaded) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "tocsin_native_test";
  fs::create_directories(folder);
  const fs::path copy = folder / "lib.so";
  fs::copy_file(library("norm_jump"), copy, fs::copy_options::overwrite_existing);
  const std::string item = "{library: " + copy.string() + "}";
  EXPECT_EQ(read_native(item).errors, "");
  fs::permissions(copy, fs::perms::others_write, fs::perm_options::add);
  EXPECT_NE(read_native(item).errors.find("may be written by everybody"), std::string::npos);
  fs::permissions(copy, fs::perms::others_write, fs::perm_options::remove);
  fs::permissions(folder, fs::perms::others_write, fs::perm_options::add);
  EXPECT_NE(read_native(item).errors.find("may be written by everybody"), std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tocsin::rules
