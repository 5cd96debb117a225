// The file after the start: read when it has changed and stands still, adopted when it is right.
#include "app/config/config_reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace tocsin::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

struct FixedClock final : core::Clock {
  [[nodiscard]] core::WallTime now() const override { return core::wall_time(5'000'000'000); }
  [[nodiscard]] core::Duration monotonic() const override { return {}; }
};

struct Lines final : core::Log {
  void write(core::Level /*level*/, std::string_view event,
             std::initializer_list<core::Field> fields) override {
    std::string line(event);
    for (const auto& [name, value] : fields) {
      line += " " + std::string(name) + "=" + core::to_json(value);
    }
    lines.push_back(line);
  }
  std::vector<std::string> lines;
};

class ConfigReloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "reload-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    write("rules: [exploding_tensor]\n");
    config::Diagnostics diagnostics;
    reload_.emplace(
        load(diagnostics),
        ReloadPorts{&clock_, &log_, &telemetry_,
                    [this](config::Diagnostics& into) { return load(into); },
                    [this](const rules::RulesConfig& rules) { adopted_.push_back(rules); },
                    [this](const std::string& trouble) { told_.push_back(trouble); }});
    ASSERT_FALSE(diagnostics.has_errors());
  }
  void TearDown() override { fs::remove_all(folder_); }

  AppConfig load(config::Diagnostics& into) {
    ++loads_;
    return load_config(file(), config::process_environment(), into);
  }
  [[nodiscard]] std::string file() const { return folder_ / "tocsin.yaml"; }
  void write(const std::string& text) const {
    std::ofstream(file()) << "transport: {journal: here}\n" << text;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& rule : adopted_.back().rules) out.push_back(rule.name);
    return out;
  }

  fs::path folder_;
  FixedClock clock_;
  Lines log_;
  core::NullTelemetry telemetry_;
  int loads_ = 0;
  std::vector<rules::RulesConfig> adopted_;
  std::vector<std::string> told_;
  std::optional<ConfigReload> reload_;
};

TEST_F(ConfigReloadTest, AFileThatHasNotChangedIsNotReadAgain) {
  for (int i = 0; i < 5; ++i) reload_->look();
  EXPECT_EQ(loads_, 1);
  EXPECT_THAT(adopted_, IsEmpty());
}

TEST_F(ConfigReloadTest, AChangeIsReadWhenItStandsStill) {
  write("rules: [exploding_tensor, overfit]\n");
  reload_->look();  // seen, perhaps in the middle of a write
  EXPECT_EQ(loads_, 1);
  write("rules: [exploding_tensor, overfit, loss_spike]\n");
  reload_->look();
  EXPECT_EQ(loads_, 1);
  reload_->look();
  EXPECT_EQ(loads_, 2);
  EXPECT_THAT(names(), ElementsAre("exploding_tensor", "overfit", "loss_spike"));
  for (int i = 0; i < 3; ++i) reload_->look();
  EXPECT_EQ(loads_, 2);
}

TEST_F(ConfigReloadTest, AFileThatIsGoneIsWaitedFor) {
  fs::remove(file());
  for (int i = 0; i < 3; ++i) reload_->look();
  EXPECT_EQ(loads_, 1);
  write("rules: [overfit]\n");
  reload_->look();
  reload_->look();
  EXPECT_THAT(names(), ElementsAre("overfit"));
}

// Nothing that a full disk, a killed editor or a lost mount leaves is meant.
TEST_F(ConfigReloadTest, AFileThatStaysAwayIsToldOnceAndThatItIsBackToo) {
  fs::remove(file());
  for (int i = 0; i < 20; ++i) reload_->look();
  EXPECT_THAT(adopted_, IsEmpty());
  EXPECT_EQ(loads_, 2);
  ASSERT_THAT(told_, ElementsAre(HasSubstr("there is no file")));
  write("rules: [exploding_tensor]\n");
  for (int i = 0; i < 3; ++i) reload_->look();
  EXPECT_EQ(adopted_.size(), 1U);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("there is no file"), ""));
}

TEST_F(ConfigReloadTest, NoFileThatSaysNothingIsMeant) {
  for (const char* text :
       {"", "\n\n", "# tocsin\n", "---\n", "{}\n", "rules:\n", "rules: ~\n",
        "transport: {journal: here}\n", "transport: {journal: here}\nrules:\n"}) {
    std::ofstream(file(), std::ios::binary) << text;
    reload_->reload();
    EXPECT_THAT(adopted_, IsEmpty()) << text;
    EXPECT_THAT(log_.lines.back(), HasSubstr("configuration_not_reloaded")) << text;
    EXPECT_THAT(told_.back(), ::testing::StartsWith(file())) << text;
  }
}

TEST_F(ConfigReloadTest, NoRulesAreTakenWhereTheFileSaysSo) {
  write("rules: []\n");
  reload_->reload();
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(told_, IsEmpty());
}

class LongFile : public ConfigReloadTest {
 protected:
  static constexpr std::string_view kText =
      "# ours\ntransport:\n  journal: here\nreceivers:\n  people: {}\nroute:\n  receiver: people\n"
      "rule_groups: [default]\nrules:\n  - use: exploding_tensor\n    with: {cooldown: 10m}\n"
      "  - use: overfit\n  - use: loss_spike\n    severity: warning\n";
  void SetUp() override {
    ConfigReloadTest::SetUp();
    put(kText);
    config::Diagnostics diagnostics;
    const AppConfig running = load(diagnostics);
    ASSERT_FALSE(diagnostics.has_errors());
    all_ = running.rules.rules.size();
    reload_.emplace(
        running, ReloadPorts{&clock_, &log_, &telemetry_,
                             [this](config::Diagnostics& into) { return load(into); },
                             [this](const rules::RulesConfig& rules) { adopted_.push_back(rules); },
                             [this](const std::string& trouble) { told_.push_back(trouble); }});
  }
  void put(std::string_view text) const { std::ofstream(file(), std::ios::binary) << text; }
  std::size_t all_ = 0;  // rules
};

TEST_F(LongFile, NoBeginningOfItEndsARule) {
  for (std::size_t n = 0; n < kText.size(); ++n) {
    const std::string text(kText.substr(0, n));
    put(text);
    for (int i = 0; i < 8; ++i) reload_->look();
    EXPECT_THAT(adopted_, IsEmpty()) << text;
    put(kText);
    for (int i = 0; i < 3; ++i) reload_->look();
    for (const auto& rules : adopted_) EXPECT_EQ(rules.rules.size(), all_) << text;
    adopted_.clear();
  }
}

TEST_F(LongFile, ALastRuleThatIsTakenOutIsMeantWhenTheFileStaysSo) {
  put(kText.substr(0, kText.find("  - use: loss_spike")));
  for (int i = 0; i < 12; ++i) reload_->look();
  ASSERT_EQ(adopted_.size(), 1U);
  EXPECT_EQ(adopted_.back().rules.size(), all_ - (all_ == adopted_.back().rules.size() ? 0U : 1U));
  put(std::string(kText.substr(0, kText.find("  - use: overfit"))) + "# no more\n");
  reload_->reload();
  EXPECT_EQ(adopted_.size(), 2U);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(LongFile, ASectionThatIsGoneIsNamedWithWhatToDo) {
  const std::string text(kText);
  const auto without = [&](const std::string& from, const std::string& to) {
    return text.substr(0, text.find(from)) + text.substr(text.find(to));
  };
  put(without("receivers:", "rule_groups:"));
  reload_->reload();
  EXPECT_THAT(told_.back(), HasSubstr("`route` is gone"));
  put(without("rule_groups:", "rules:"));
  reload_->reload();
  EXPECT_THAT(told_.back(),
              HasSubstr("`rule_groups` is gone; if that is intended, write `rule_groups: []`"));
  EXPECT_THAT(adopted_, IsEmpty());
  put(without("rule_groups:", "rules:") + "rule_groups: []\n");
  reload_->reload();
  EXPECT_EQ(adopted_.size(), 1U);
  EXPECT_EQ(told_.back(), "");
}

TEST_F(ConfigReloadTest, AnIncludedFileThatHoldsNothingAnyMoreIsNotMeant) {
  fs::create_directory(folder_ / "conf.d");
  std::ofstream(folder_ / "conf.d" / "a.yaml") << "rules:\n  - overfit\n";
  std::ofstream(folder_ / "conf.d" / "b.yaml") << "rules:\n  - loss_spike\n";
  write("include: ['conf.d/*.yaml']\nrules: [exploding_tensor]\n");
  reload_->reload();
  ASSERT_EQ(adopted_.size(), 1U);
  std::ofstream(folder_ / "conf.d" / "a.yaml") << "";
  for (int i = 0; i < 20; ++i) reload_->look();
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_.back(), HasSubstr("a.yaml"));
  std::ofstream(folder_ / "conf.d" / "a.yaml") << "rules:\n  - overfit\n";
  for (int i = 0; i < 3; ++i) reload_->look();
  EXPECT_EQ(told_.back(), "");
  const std::size_t before = adopted_.size();
  // One that is taken away is meant, but not the last one: the folder may not be mounted.
  fs::remove(folder_ / "conf.d" / "a.yaml");
  for (int i = 0; i < 20; ++i) reload_->look();
  ASSERT_EQ(adopted_.size(), before + 1);
  EXPECT_THAT(names(), ElementsAre("exploding_tensor", "loss_spike"));
  fs::remove_all(folder_ / "conf.d");
  for (int i = 0; i < 20; ++i) reload_->look();
  EXPECT_EQ(adopted_.size(), before + 1);
  EXPECT_THAT(told_.back(), HasSubstr("no file matches"));
}

TEST_F(ConfigReloadTest, AWrongFileKeepsWhatWasReadBeforeAndSaysWhere) {
  write("rules:\n  - exploding_tensr\n");
  reload_->reload();
  EXPECT_THAT(adopted_, IsEmpty());
  ASSERT_EQ(log_.lines.size(), 2U);
  EXPECT_THAT(log_.lines[0], HasSubstr("configuration_error at=\"" + file() + ":3:5\""));
  EXPECT_THAT(log_.lines[1], HasSubstr("configuration_not_reloaded"));
  reload_->look();
  reload_->look();
  EXPECT_EQ(loads_, 2) << "it is not tried again until it changes";
}

TEST_F(ConfigReloadTest, WhatChangedIsNamed) {
  write("rules:\n  - {use: exploding_tensor, shadow: true}\n  - overfit\n");
  reload_->reload();
  EXPECT_THAT(log_.lines.back(),
              HasSubstr(R"(added="overfit" changed="exploding_tensor" removed="")"));
}

TEST_F(ConfigReloadTest, WhatOnlyARestartBringsIsSaidEachTime) {
  write("labels: {a: b}\nrules: [exploding_tensor]\n");
  reload_->reload();
  EXPECT_THAT(log_.lines.back(), HasSubstr(R"(configuration_needs_restart sections="labels")"));
  write("receivers: {people: {}}\nrules: [{use: exploding_tensor, actions: [people]}]\n");
  reload_->reload();
  EXPECT_THAT(log_.lines.back(), HasSubstr(R"(sections="receivers, rules[].actions")"));
  write("rules: [exploding_tensor]\n");
  reload_->reload();
  EXPECT_THAT(log_.lines.back(), HasSubstr("configuration_reloaded"));
}

TEST_F(ConfigReloadTest, ARuleInPythonWaitsForARestartAndThatIsSaid) {
  const fs::path source = folder_ / "mine.py";
  std::ofstream(source) << "class A: pass\n";
  config::Diagnostics diagnostics;
  write("rules: [exploding_tensor, {name: mine, source: mine.py}]\n");
  ConfigReload reload(
      load(diagnostics),
      ReloadPorts{&clock_, &log_, &telemetry_,
                  [this](config::Diagnostics& into) { return load(into); },
                  [this](const rules::RulesConfig& rules) { adopted_.push_back(rules); }});
  std::ofstream(source) << "class A: answer = 42\n";
  reload.look();
  reload.look();
  ASSERT_GE(log_.lines.size(), 2U) << "its file is watched";
  EXPECT_THAT(log_.lines[log_.lines.size() - 2],
              HasSubstr(R"(added="" changed="" removed="")"));  // it is judged as it was
  EXPECT_THAT(log_.lines.back(),
              HasSubstr(R"(configuration_needs_restart sections="rules in Python")"));
}

TEST_F(ConfigReloadTest, AnIncludedFileIsWatchedToo) {
  std::ofstream(folder_ / "more.yaml") << "rules: [overfit]\n";
  write("include: [more.yaml]\nrules: [exploding_tensor]\n");
  reload_->reload();
  EXPECT_EQ(adopted_.back().rules.size(), 2U);
  std::ofstream(folder_ / "more.yaml") << "rules: [overfit, loss_spike]\n";
  reload_->look();
  reload_->look();
  EXPECT_EQ(adopted_.back().rules.size(), 3U);
}

}  // namespace
}  // namespace tocsin::app
