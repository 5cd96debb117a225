// What `tocsin check` says of configurations that are valid and would still stay silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "actions/actions.h"
#include "app/config/app_config.h"
#include "app/health/own_issues.h"
#include "routing/routing.h"
#include "rules/rules.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A folder of its own with one file `t.yaml` in it.
class AlarmCheck : public ::testing::Test {
 protected:
  ~AlarmCheck() override { fs::remove_all(folder_); }

  std::vector<std::string> findings(const std::string& yaml,
                                    fs::perms mode = fs::perms(0600)) const {
    const std::string path = (folder_ / "t.yaml").string();
    std::ofstream(path) << yaml;
    fs::permissions(path, mode);
    config::Diagnostics diagnostics;
    (void)load_config(
        path, [](const std::string&) { return std::nullopt; }, diagnostics);
    std::vector<std::string> out;
    for (const auto& item : diagnostics.items()) {
      out.push_back(config::to_text(item).substr(folder_.string().size() + 1));
    }
    return out;
  }

  const fs::path folder_ = [] {
    std::string name = (fs::temp_directory_path() / "tocsin-check-XXXXXX").string();
    return fs::path(mkdtemp(name.data()));
  }();
};

const std::string kTold = "route: {receiver: a}\nreceivers: {a: {publish_metric: {}}}\n";

struct Case {
  const char* name;
  std::string yaml;
  std::string finding;  // how the line begins
  std::string words;    // and what it says
};

class Findings : public AlarmCheck, public ::testing::WithParamInterface<Case> {};

TEST_P(Findings, StandAtTheirPlaceWithTheRemedy) {
  const auto found = findings(GetParam().yaml);
  EXPECT_THAT(found, Contains(::testing::AllOf(StartsWith(GetParam().finding),
                                               HasSubstr(GetParam().words))))
      << ::testing::PrintToString(found);
}

INSTANTIATE_TEST_SUITE_P(
    AlarmCheck, Findings,
    ::testing::Values(
        Case{"NoRules", "cluster: a\n", "t.yaml:1:1: warning", "no rules: nothing is judged"},
        Case{"EmptyRules", "rules: []\n", "t.yaml:1:8: warning", "no rules: nothing is judged"},
        Case{"MetricsOfGpusThatAreNotLookedAt",
             kTold + "collect: {collectors: [cpu]}\nrules: [cpu_bottleneck]\n", "t.yaml:4:9: note",
             "judges hw.gpu.utilization, which is gathered where `collect.collectors` names gpu"},
        Case{"MetricsOfACollectorThatIsNotNamed",
             kTold + "collect: {collectors: [memory]}\nrules: [{use: cpu_bottleneck}]\n",
             "t.yaml:4:9: note", "gathered where `collect.collectors` names cpu"},
        Case{"InputThatNobodyHereSends", kTold + "rules: [{use: operator_latency}]\n",
             "t.yaml:3:9: note", "Tocsin itself sends no operator calls"},
        Case{"ReplicasOfWhichOneRankTells",
             kTold + "capture: {workers: one}\nrules: [replica_divergence]\n",
             "t.yaml:4:9: warning",
             "replica_divergence will have nothing to judge: with capture.workers: one"},
        Case{"PhaseThatIsNotTimed", kTold + "capture: {phases: [forward]}\nrules: [data_wait]\n",
             "t.yaml:4:9: warning", "capture.phases leaves out data_wait"},
        Case{"NobodyTold", "rules: [overfit]\n", "t.yaml:1:8: warning",
             "no issue notifies anybody"},
        Case{
            "RuleWithoutActions",
            "rules: [overfit, {use: all_zero, actions: [a], with: {collection_names: [weights]}}]\n"
            "receivers: {a: {publish_metric: {}}}\n",
            "t.yaml:1:9: warning", "issues of overfit notify nobody: add a `route`"},
        Case{"RoutedToNobody",
             "rules: [overfit]\nroute:\n  receiver: a\n  routes:\n"
             "    - {matchers: ['rule=\"overfit\"'], receiver: b}\n"
             "receivers: {a: {publish_metric: {}}, b: {}}\n",
             "t.yaml:1:9: warning", "no route leads them"},
        Case{"OnlyShadow",
             "rules: [overfit]\nroute: {receiver: a}\nreceivers: {a: {publish_metric: {shadow: "
             "true}}}\n",
             "t.yaml:1:9: warning", "no route leads them"},
        Case{"UnusedReceiver",
             "rules: [overfit]\nroute: {receiver: a}\nreceivers:\n  a: {publish_metric: {}}\n"
             "  b: {publish_metric: {}}\n",
             "t.yaml:5:6: warning", "receiver \"b\" is unused"},
        Case{"BackupsInACircle",
             "rules: [overfit]\nroute: {receiver: a}\nreceivers:\n"
             "  a: {webhook: {url: 'https://a.example.org/', fallback: b}}\n"
             "  b: {webhook: {url: 'https://b.example.org/', fallback: a}}\n",
             "t.yaml:4:58: error", "in a circle: a → b → a"},
        Case{"NoSuchBackup",
             "rules: [overfit]\nroute: {receiver: a}\nreceivers:\n"
             "  a: [{webhook: {url: 'https://a.example.org/', fallback: bee}}]\n  bees: {}\n",
             "t.yaml:4:59: error", "did you mean 'bees'?"},
        Case{"StopNotArmed",
             "rules: [{use: overfit, actions: [s]}]\nreceivers: {s: {stop_training: {}}}\n",
             "t.yaml:2:32: warning", "not armed"},
        Case{"StopDisarmed",
             "rules: [{use: overfit, actions: [s]}]\nreceivers: {s: [{stop_training: {armed: "
             "false}}]}\n",
             "t.yaml:2:41: warning", "`armed: true` arms it"},
        Case{"LabelInMatcher",
             "rules: [overfit]\nroute: {receiver: a, routes: [{matchers: ['sevrity=\"error\"']}]}\n"
             "receivers: {a: {publish_metric: {}}}\n",
             "t.yaml:2:43: warning", "did you mean \"severity\"?"},
        Case{"SeverityInMatcher",
             "rules: [overfit]\nroute: {receiver: a, routes: [{matchers: 'severity=\"eror\"'}]}\n"
             "receivers: {a: {publish_metric: {}}}\n",
             "t.yaml:2:42: warning", "did you mean \"error\"?"},
        Case{"SeverityOfARule", "rules: [{use: overfit, severity: warn}]\n" + kTold,
             "t.yaml:1:34: error", "did you mean \"warning\"?"},
        Case{"SeverityOfARuleAsAParameter",
             "rules: [{use: overfit, with: {severity: errro}}]\n" + kTold, "t.yaml:1:41: error",
             "did you mean \"error\"?"},
        Case{"ModeOfARule", "rules: [{use: vanishing_gradient, with: {modes: [trian]}}]\n" + kTold,
             "t.yaml:1:49: error", "did you mean \"train\"?"},
        Case{"RuleInRegex",
             "rules: [overfit]\nroute: {receiver: a, routes: [{matchers: 'rule=~\"overfitt|"
             "job_lost\"'}]}\nreceivers: {a: {publish_metric: {}}}\n",
             "t.yaml:2:42: warning", "did you mean \"overfit\"?"},
        Case{"LabelInGroupBy",
             "rules: [overfit]\nroute: {receiver: a, group_by: [jb]}\n"
             "receivers: {a: {publish_metric: {}}}\n",
             "t.yaml:2:33: warning", "did you mean \"job\"?"},
        Case{"LabelInWhen",
             "rules: [overfit]\nroute: {receiver: a}\n"
             "receivers: {a: {publish_metric: {when: ['tensr=\"x\"']}}}\n",
             "t.yaml:3:41: warning", "did you mean \"tensor\"?"},
        Case{"LabelOfJobs",
             "rules: [overfit]\nroute: {receiver: a, routes: [{matchers: 'project=\"x\"'}]}\n"
             "receivers: {a: {publish_metric: {}}}\n",
             "t.yaml:2:42: note", "watch(labels=…)"},
        Case{"CollectionCaptured", "capture: {collections: [gradints]}\nrules: [overfit]\n" + kTold,
             "t.yaml:1:25: warning", "did you mean \"gradients\"?"},
        Case{"CollectionOfARule",
             "rules:\n  - {use: all_zero, with: {collection_names: [wieghts]}}\n" + kTold,
             "t.yaml:2:47: warning", "did you mean \"weights\"?"},
        Case{"CollectionOfARuleOfOnesOwn",
             "rules:\n  - {name: a, select: 'collection(\"gradiants\")', when: l2 > 1}\n" + kTold,
             "t.yaml:2:23: warning", "did you mean \"gradients\"?"},
        Case{"CollectionOfALet",
             "rules:\n  - {name: a, let: {g: collection(\"weigths\"), l: metric(\"loss\")}, when: "
             "g.l2 > l.value}\n" +
                 kTold,
             "t.yaml:2:24: warning", "did you mean \"weights\"?"},
        Case{"SeriesOfARuleOfOnesOwn",
             "rules:\n  - {name: a, select: system(\"hw.gpu.utilisation\"), when: value > 1}\n" +
                 kTold,
             "t.yaml:2:23: warning", "did you mean \"hw.gpu.utilization\"?"},
        Case{"SeriesOfAnotherProducer",
             "rules:\n  - {name: a, select: system(\"my.own\"), when: value > 1}\n" + kTold,
             "t.yaml:2:23: note", "only another producer sends it"},
        Case{"RoleOfACollection",
             "capture: {collections: {mine: {roles: [gradeint]}}}\nrules: [overfit]\n" + kTold,
             "t.yaml:1:24: error", "unknown role gradeint"},
        Case{"NoSecretFile",
             "rules: [overfit]\nroute: {receiver: a}\nreceivers: {a: {webhook: {url: "
             "'http://x', secret_file: /nowhere/at/all}}}\n",
             "t.yaml:3:57: warning", "no file /nowhere/at/all"},
        Case{"SecretInAFolder",
             "rules: [overfit]\nroute: {receiver: a}\nreceivers: {a: {webhook: {url: "
             "'http://x', secret_file: /}}}\n",
             "t.yaml:3:57: warning", "/ is a folder: every use of this secret fails"},
        Case{"ListenAddress", "rules: [overfit]\nhttp: {listen: 'localhost:port'}\n" + kTold,
             "t.yaml:2:16: error", "IP:PORT such as 127.0.0.1:9760"},
        Case{"Tab", "rules:\n\t- overfit\n", "t.yaml:2:1: error", "a tab indents this line"},
        Case{"ParameterBesideWith", "rules:\n  - use: vanishing_gradient\n    threshold: 1e-7\n",
             "t.yaml:3:5: error", "write `with: {threshold: …}`"},
        Case{"MisspeltParameterBesideWith",
             "rules:\n  - use: vanishing_gradient\n    threshhold: 1e-7\n", "t.yaml:3:5: error",
             "did you mean \"threshold\"? That is a parameter of vanishing_gradient: write `with: "
             "{threshold: …}`"},
        Case{"ParameterBesideTheWithThatTheRuleNeeds",
             "rules:\n  - use: all_zero\n    threshold: 50\n    with: {collection_names: "
             "[weights]}\n",
             "t.yaml:3:5: error", "it is a parameter of all_zero"},
        Case{"ActionsInsideWith", "rules:\n  - {use: overfit, with: {actions: [a]}}\n",
             "t.yaml:2:27: error", "it belongs beside `with`"},
        Case{"KeyOfAnotherSection", "listen: '127.0.0.1:1'\n", "t.yaml:1:1: error",
             "it belongs into `http`"},
        Case{"NoUnit", "engine: {commit_interval: 300}\n", "t.yaml:1:27: error",
             "write 300s for seconds"},
        Case{"UnitInWords", "engine: {commit_interval: 5 minutes}\n", "t.yaml:1:27: error",
             "write 5m"},
        Case{"UnitTooMany", "rules: [{use: stalled_training_rule, with: {threshold: 30m}}]\n",
             "t.yaml:1:56: error", "without a unit: seconds without progress"},
        Case{"Percent", "rules: [{use: vanishing_gradient, with: {min_fraction: 25%}}]\n",
             "t.yaml:1:56: error", "write 0.25"},
        Case{"YesForTrue", "topics: {create: yes}\n", "t.yaml:1:18: error", "write true"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(AlarmCheck, HasNothingToSayOfAWholeConfiguration) {
  EXPECT_THAT(findings("rules: [overfit, {use: all_zero, actions: [stop], with: {collection_names: "
                       "[mine]}}]\ncapture: {collections: {mine: {include: [w]}}}\n"
                       "labels: {team: nlp}\n"
                       "route:\n  receiver: a\n  routes: [{matchers: ['team=\"nlp\"', "
                       "'rule=~\"job_.*\"', 'reason=\"held_back\"', 'severity!~\"info|warning\"', "
                       "'rule!=\"router_overflow\"', 'device=\"0\"', 'route!=\"r\"'], "
                       "receiver: nobody}]\n"
                       "receivers:\n  a: {publish_metric: {}}\n  nobody: {}\n"
                       "  stop: {stop_training: {armed: true}}\n"),
              IsEmpty());
}

// A new one stands in its room's table, or it could not be raised.
TEST_F(AlarmCheck, KnowsWhatTheRoomsTellOfThemselves) {
  std::ifstream file("docs/rules/README.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const auto own :
       {rules::own_issues(), routing::own_issues(), actions::own_issues(), app::own_issues()}) {
    ASSERT_FALSE(own.empty());
    for (const core::OwnIssue& issue : own) {
      const std::string name(issue.name);
      EXPECT_THAT(findings("rules: [overfit]\nreceivers: {a: {publish_metric: {}}}\n"
                           "route: {receiver: a, immediate_on: 'rule=\"" +
                           name + "\"'}\n"),
                  IsEmpty());
      EXPECT_THAT(page.substr(page.find("## Always on")), HasSubstr("`" + name + "`"));
    }
  }
}

TEST_F(AlarmCheck, SortsByLine) {
  const auto found =
      findings("http: {listen: x}\nreceivers: {b: {}}\nlog: {level: loud}\nrulez: 1\n");
  ASSERT_GE(found.size(), 4U);
  EXPECT_THAT(found[0], StartsWith("t.yaml:1:1: warning"));
  EXPECT_THAT(found[1], StartsWith("t.yaml:1:16: error"));
  EXPECT_THAT(found[2], StartsWith("t.yaml:2:16: warning"));
  EXPECT_THAT(found[3], StartsWith("t.yaml:3:14: error"));
  EXPECT_THAT(found[4], StartsWith("t.yaml:4:1: error"));
}

TEST_F(AlarmCheck, MindsWhoMayReadACredential) {
  const std::string yaml =
      "rules: [overfit]\nroute: {receiver: a}\nreceivers: {a: {webhook: {url: "
      "'http://x', bearer_token: hunter2}}}\n";
  EXPECT_THAT(findings(yaml), IsEmpty());
  EXPECT_THAT(findings(yaml, fs::perms(0644)), Contains(HasSubstr("every user on this machine")));
  EXPECT_THAT(findings(yaml, fs::perms(0644)), Not(Contains(HasSubstr("hunter2"))));

  const std::string secret = (folder_ / "secret").string();
  std::ofstream(secret) << "x\n";
  fs::permissions(secret, fs::perms(0644));
  const std::string file =
      "rules: [overfit]\nroute: {receiver: a}\nreceivers: {a: {webhook: {url: "
      "'http://x', bearer_token_file: " +
      secret + "}}}\n";
  EXPECT_THAT(findings(file, fs::perms(0644)), Contains(HasSubstr("fix it with chmod 600")));
  fs::permissions(secret, fs::perms(0600));
  EXPECT_THAT(findings(file, fs::perms(0644)), IsEmpty());
}

TEST_F(AlarmCheck, SaysHowLongWindowsOfSamplesLast) {
  EXPECT_THAT(
      findings("rules: [batch_size, low_gpu_utilization]\n" + kTold),
      Contains(HasSubstr("batch_size, low_gpu_utilization judge after 1000 samples: 8m20s at "
                         "collect.interval 500ms")));
  EXPECT_THAT(
      findings("collect: {interval: 2s}\nrules: [{use: batch_size, with: {patience: 60}}]\n" +
               kTold),
      Contains(HasSubstr("batch_size judges after 60 samples: 2m at collect.interval 2s")));
  EXPECT_THAT(
      findings("collect: {interval: 2s}\nrules: [{use: batch_size, with: {window_seconds: 60}}]\n" +
               kTold),
      Contains(HasSubstr("batch_size: window_seconds counts two samples a second, and there is one "
                         "in 2s: give window in samples")));
  EXPECT_THAT(findings("rules: [exploding_tensor]\n" + kTold), Not(Contains(HasSubstr("samples"))));
}

TEST_F(AlarmCheck, SaysWhichParameterOfTheOriginalHasNoEffect) {
  const auto with = [&](const std::string& parameters) {
    return findings("rules: [{use: class_imbalance, with: {" + parameters + "}}]\n" + kTold);
  };
  EXPECT_THAT(with("argmax: true"), Contains(HasSubstr("warning: has no effect")));
  EXPECT_THAT(with("predictions_regex: '.*scores'"), Contains(HasSubstr("has no effect")));
  EXPECT_THAT(with("argmax: false"), Not(Contains(HasSubstr("has no effect"))));
}

}  // namespace
}  // namespace tocsin::app
