#include "rules/engine/issues/failure.h"

#include <string_view>

#include "core/console_value.h"
#include "core/text.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kMostOfASummary = 240;  // bytes of an error in a sentence
constexpr std::size_t kMostOfAnError = 500;   // bytes of its value in the evidence
constexpr std::size_t kMostKept = 2048;  // bytes of an error with what the process said after it

// Its first line, without the full stop that ends our sentence.
std::string_view in_short(std::string_view error) {
  std::string_view line = error.substr(0, error.find_first_of("\r\n"));
  if (line.size() > kMostOfASummary) return core::cut_utf8(line, kMostOfASummary);
  while (line.ends_with('.') || line.ends_with(' ')) line.remove_suffix(1);
  return line;
}

// Its further lines; empty: it has one.
std::string_view further(std::string_view error) {
  const std::size_t end = error.find_first_of("\r\n");
  if (end == std::string_view::npos) return {};
  error.remove_prefix(end);
  const std::size_t begin = error.find_first_not_of("\r\n");
  return begin == std::string_view::npos ? std::string_view() : error.substr(begin);
}

}  // namespace

void note_error(Run& run, const std::string& worker, const core::Lifecycle& body) {
  Job& job = run.job;
  if (!job.error.empty() || body.error.empty() || body.outcome != "failed") return;
  job.error = core::cut_utf8(body.error, kMostKept);
  job.failed_first = worker;
}

Finding failure_of(const Run& run) {
  const Job& job = run.job;
  Finding out;
  out.observed = {"exit_code", static_cast<double>(job.exit_code.value_or(0))};
  std::string said = (job.name.empty() ? "The job" : job.name) + " failed";
  if (job.exit_code) said += " with exit code " + std::to_string(*job.exit_code);
  if (!job.error.empty()) {
    const std::string_view line = in_short(job.error);
    if (!line.empty()) said += ": " + std::string(line) + " (" + job.failed_first + ")";
    out.with("error", std::string(core::cut_utf8(job.error, kMostOfAnError)));
    if (const auto lines = further(job.error); !lines.empty()) {
      out.with(std::string(core::kConsoleValue), std::string(lines));
    }
    out.with("worker", job.failed_first);
  }
  out.titled("job", Verb::has, "failed").says(said + ".");
  return out;
}

}  // namespace tocsin::rules
