// Fires when a few features carry nearly all of a model's importance.
//
// Reads   the scalars feature_importance/<type>/<feature> of one type of importance.
// Window  one step of one worker and mode; judged when the worker has ended it.
// Fires   the nfeatures largest importances are more than `threshold` of their sum. Preset tocsin: the
//         largest single one, from step 5 on: the first rounds of a healthy booster use few features,
//         later ones spread over all that help, unless one of them knows the label.
// Quiet   preset original: when no more than nfeatures features are used at all: then their share is 1.
// Source  Amazon SageMaker Debugger, FeatureImportanceOverweight;
//         docs/rules/feature_importance_overweight.md.

#include <algorithm>
#include <cmath>
#include <set>

#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

struct FeatureImportanceOverweight {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr bool kPerWorker = true;
  static constexpr std::span<const Sent> kSent{};
  static constexpr std::string_view kPrefix = "feature_importance/";

  struct Config {
    double threshold = 0.8;
    std::uint32_t nfeatures = 3;
    bool original = false;
  };
  struct State {};
  struct Feature {
    double importance = 0;
    std::string name;
  };

  static Defaults defaults(Preset preset) {
    if (preset == Preset::tocsin) {
      return {.modes = kTrainModes, .patterns = {".*feature_importance/gain"}, .start_step = 5};
    }
    // The original's hook knows no modes; our XGBoost callback counts rounds as training steps.
    return {.modes = kTrainModes, .patterns = {".*feature_importance/weight"}};
  }
  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.original = preset == Preset::original;
    if (!cfg.original) cfg.nfeatures = 1;
    in.optional("threshold", cfg.threshold, config::between(0.0, 1.0),
                "share of all importance that a few features may carry");
    in.optional("nfeatures", cfg.nfeatures, config::at_least(1U),
                "how many of the most important features count as a few");
  }
  static std::vector<Need> needs(const Config&) { return {{"feature_importance"}}; }
  // The shares of different types of importance do not add up.
  static void check(config::Reader& in, const Config&, const Program& program) {
    std::string types;
    int matched = 0;
    for (const char* type : {"weight", "gain", "cover", "total_gain", "total_cover"}) {
      Name name;
      name.text = std::string(kPrefix) + type + "/feature";
      if (program.selection.matches(core::Role::other, &name) != Match::yes) continue;
      types += (matched++ == 0 ? "" : ", ") + std::string(type);
    }
    if (matched > 1) in.error("tensor_regex", "one type of importance only, not " + types);
  }

  /// "gain" of "feature_importance/gain/age"; empty: not such a name.
  static std::string_view type_of(std::string_view name) {
    const std::size_t from = name.find(kPrefix);
    if (from == std::string_view::npos) return {};
    name.remove_prefix(from + kPrefix.size());
    return name.substr(0, name.find('/'));
  }

  static void judge(const Config& cfg, State&, const StepSet& set, SetReport& report) {
    std::vector<Feature> features;
    std::set<std::string, std::less<>> types;
    double sum = 0;
    for (const StepRow& row : set.rows) {
      if (row.row.count != 1) continue;
      std::string name = report.scope().text(row.name());
      if (const std::string_view type = type_of(name); !type.empty()) {
        types.emplace(type);
        const std::size_t at = name.find(type, name.find(kPrefix) + kPrefix.size()) + type.size();
        if (at + 1 < name.size()) name.erase(0, at + 1);
      }
      sum += row.row.sum;
      if (row.row.sum != 0) features.push_back({row.row.sum, std::move(name)});
    }
    std::sort(features.begin(), features.end(), [](const Feature& a, const Feature& b) {
      return a.importance != b.importance ? a.importance > b.importance : a.name < b.name;
    });
    double top = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(cfg.nfeatures, features.size()); ++i) {
      top += features[i].importance;
    }
    const double share = top / sum;
    Verdict verdict = share > cfg.threshold ? hit() : kOk;
    if (types.size() > 1) {
      verdict = {EvaluationOutcome::error, 0};
    } else if (!std::isfinite(sum) || !(sum > 0)) {
      verdict = kInsufficient;
    } else if (cfg.original && features.size() <= cfg.nfeatures) {
      verdict = kNotApplicable;
    }
    report.evaluated(
        {},
        types.empty() ? std::string("feature_importance") : std::string(kPrefix) + *types.begin(),
        verdict, [&](const Subject& subject, unsigned) {
          return explain(cfg, features, sum, share, subject);
        });
  }

  static Finding explain(const Config& cfg, const std::vector<Feature>& features, double sum,
                         double share, const Subject& subject) {
    const std::size_t few = std::min<std::size_t>(cfg.nfeatures, features.size());
    std::string names;
    core::ValueList list;
    for (std::size_t i = 0; i < std::min<std::size_t>(features.size(), 10); ++i) {
      if (i < few) names += (i == 0 ? "" : ", ") + features[i].name;
      list.emplace_back(core::ValueList{features[i].name, features[i].importance / sum});
    }
    return Finding::that("share", share)
        .is(">", "threshold", cfg.threshold)
        .titled(subject.name, Verb::is, "concentrated on few features")
        .says(sentence("{} of {} features ({}) carry {} % of {} (limit {} %) at {}.", few,
                       features.size(), names, 100 * share, subject.name, 100 * cfg.threshold,
                       subject.place()))
        .advises(
            "Check that none of them contains the label (an ID, a date, a sum that includes it). "
            "Train once without them and compare.")
        .with("top", std::move(list))
        .with("features", static_cast<std::uint64_t>(features.size()));
  }
};

}  // namespace

RuleDescriptor feature_importance_overweight() {
  return {
      .name = "feature_importance_overweight",
      .original_name = "FeatureImportanceOverweight",
      .title = "A few features carry nearly all of a model's importance.",
      .unit = "worker",
      .needs = "scalars feature_importance/<type>/<feature>",
      .presets =
          "tocsin looks at gain, from round 5 on, at the largest feature alone, even if it is the "
          "only one: a leak looks like that. original looks at the three largest, by weight.",
      .severity = core::Severity::info,
      .version = "4",
      .groups = group::kXGBoost,
      .read = &read_step_set_rule<FeatureImportanceOverweight>};
}

}  // namespace tocsin::rules
