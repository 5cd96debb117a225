// Whether what a generator makes is as diverse as the data: collapse's state of one generator, and what it comes to. O(1).
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "rules/builtin/data/embedding_course.h"
#include "rules/builtin/shared/ledger_rows.h"
#include "rules/builtin/shared/pairing_course.h"
#include "rules/contract/finding.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"
#include "rules/evidence/doubled_looks.h"

namespace tocsin::rules {

/// Directions of samples and data in one step, `ledger/samples/<name>/made` and `…/data`, by name: Σ of logarithms over workers.
struct SampleStep {
  double made = 0;
  double data = 0;
  double made_words = 0;
  double data_words = 0;

  [[nodiscard]] bool whole() const { return made_words > 0 && made_words == data_words; }
  static std::map<std::string, SampleStep> of(const StepSet& set, const Scope& scope) {
    constexpr std::string_view kPrefix = "samples/";
    std::map<std::string, SampleStep> out;
    for (const StepRow& row : set.rows) {
      const Name* name = row.scalar && row.row.sum >= 1 ? scope.find(row.name()) : nullptr;
      const auto read = name != nullptr ? LedgerName::read(name->text) : std::nullopt;
      if (!read || !read->call.starts_with(kPrefix) || !std::isfinite(row.row.sum)) continue;
      SampleStep& step = out[std::string(read->call)];
      if (read->field == "made") {
        step.made += std::log(row.row.sum);
        ++step.made_words;
      } else if (read->field == "data") {
        step.data += std::log(row.row.sum);
        ++step.data_words;
      }
    }
    return out;
  }
};

/// Trivially copyable, without padding.
struct SampleCourse {
  static constexpr double kHalf = 0.5;  // of the directions of the data
  static constexpr double kArrival =
      0.01;  // of the bound that says that half of them will not be reached

  DoubledLooks looks;  // of ln(directions of the samples / directions of the data)
  double made = 0;     // logarithms of the newest
  double data = 0;
  std::uint64_t fine = 0;  // at the newest look surely more than half
  std::uint64_t standing = 0;
  double told_at = 0;
  double share = 0;  // over the window of the newest look

  void train(const SampleStep& step, const PairingRun& run, double alpha) {
    if (!step.whole()) return;
    made = step.made / step.made_words;
    data = step.data / step.data_words;
    if (!looks.add(1, made - data, 1, run.updates)) return;
    const BlockMean mean = looks.mean(0);
    const double spent = alpha * std::exp2(-looks.looks);
    const double half = std::log(kHalf);
    share = std::exp(mean.mean);
    fine = mean.lower(spent) > half ? 1 : 0;
    const bool warm = looks.from() >= run.rate_at;
    const bool few = mean.upper(spent) < half && mean.upper_at(run.end(), kArrival) < half;
    if (few && warm && standing == 0) told_at = run.updates;
    standing = few && warm ? 1 : 0;
  }
};

inline std::string_view sample_answer(const SampleCourse& course) {
  return course.standing != 0 ? "hit" : course.fine != 0 ? "ok" : "undecided";
}

inline core::ValueMap sample_numbers(const SampleCourse& course) {
  core::ValueMap out;
  if (course.standing != 0) out.emplace_back("kind", std::string("mode"));
  out.emplace_back("made_directions", std::exp(course.made));
  out.emplace_back("data_directions", std::exp(course.data));
  if (course.looks.looks > 0) out.emplace_back("share", course.share);
  if (course.standing == 0 && course.fine == 0) {
    out.emplace_back("needs_words", course.looks.missing());
  }
  return out;
}

inline Finding sample_finding(const Subject& subject, const SampleCourse& course,
                              const PairingRun& run) {
  Finding out = Finding::that("share", course.share);
  out.is("<", "limit", SampleCourse::kHalf)
      .titled("the generator", Verb::has, "few kinds of samples")
      .says(sentence("After {} updates, {} have {} times the diversity of the data ({} against {} "
                     "directions in the newest batch), and will not reach half of it.",
                     course.told_at, subject.name, course.share, std::exp(course.made),
                     std::exp(course.data)))
      .advises(
          "Look at a batch of samples. Most probable first: a generator that trains more often or "
          "faster than its opponent; an opponent that no longer trains; noise that does not reach "
          "the samples; a learning rate that is too high.")
      .with("made", std::exp(course.made))
      .with("data", std::exp(course.data));
  if (run.planned > 0) out.with("planned_updates", run.planned);
  return out;
}

}  // namespace tocsin::rules
