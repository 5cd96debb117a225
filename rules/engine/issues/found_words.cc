#include "rules/engine/issues/found_words.h"

#include <utility>

#include "core/fields/issue.h"
#include "core/fields/json_in.h"
#include "core/fields/out.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kMaxWords = std::size_t{1} << 20;

}  // namespace

// Only what the resolve takes: stage times are not the same after a replay, and state has to be.
std::string found_words(const core::Issue& report) {
  core::Issue words;
  words.summary = report.summary;
  words.description = report.description;
  words.recommendation = report.recommendation;
  words.runbook_url = report.runbook_url;
  words.severity = report.severity;
  words.step = report.step;
  words.global_step = report.global_step;
  words.mode = report.mode;
  words.epoch = report.epoch;
  words.evidence = report.evidence;
  words.evidence.parameters.clear();  // of its rule, which is known
  words.evidence.data_refs.clear();   // of the present record, which a replay need not have
  return core::write_json(words);
}

void tell_end(core::Issue& resolve, const std::string& words, std::string how) {
  resolve.ending = core::Ending{std::move(how), {}, resolve.step, resolve.global_step};
  core::Issue found;
  // A field that cannot be read keeps its default; the others are worth telling all the same.
  if (!words.empty()) (void)core::read_json(words, kMaxWords, found);
  if (found.summary.empty()) {
    resolve.summary = resolve.ending->summary;
    return;
  }
  resolve.summary = std::move(found.summary);
  resolve.description = std::move(found.description);
  resolve.recommendation = std::move(found.recommendation);
  resolve.runbook_url = std::move(found.runbook_url);
  resolve.annotations = std::move(found.annotations);
  resolve.severity = found.severity;
  resolve.labels.set("severity", core::to_string(found.severity));
  resolve.step = found.step;
  resolve.global_step = found.global_step;
  resolve.mode = found.mode;
  resolve.epoch = found.epoch;
  found.evidence.parameters = std::move(resolve.evidence.parameters);
  found.evidence.data_refs = std::move(resolve.evidence.data_refs);
  resolve.evidence = std::move(found.evidence);
}

}  // namespace tocsin::rules
