#include "app/cli/report_command.h"

#include <filesystem>
#include <iostream>
#include <map>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/version.h"
#include "app/recordings/moment.h"
#include "app/recordings/recording.h"
#include "app/replay/judge.h"
#include "app/report/aftermath.h"
#include "app/report/bundle.h"
#include "app/report/curve_sections.h"
#include "app/report/gather.h"
#include "app/report/page_file.h"
#include "app/report/page_size.h"
#include "app/report/recorded_curves.h"
#include "app/report/report_time.h"
#include "app/view/topic_view.h"
#include "app/view/which_run.h"
#include "core/system_clock.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using report::Gathering;
using report::report_time;
using report::RunReport;

constexpr auto kReportPatience = 60s;

/// What a recording is judged by unless somebody says otherwise: with all that a report shows.
constexpr const char* kReportRules = "default,profiler_report,create_xgboost_report";

int say(int code, const std::string& message) {
  std::cerr << "tocsin: " << message << "\n";
  return code;
}

/// Of each run the newest attempt, as which_run() wants them.
std::map<core::RunUid, core::JobEvent> runs_of(const Gathering::Attempts& attempts) {
  std::map<core::RunUid, core::JobEvent> out;
  for (const auto& [key, of] : attempts) {  // attempts of a run come in order
    core::JobEvent& run = out[key.first];
    run.run = of.run;
    run.phase = of.outcome.empty() ? core::JobPhase::heartbeat : core::JobPhase::ended;
    run.outcome = of.outcome;
    if (of.newest) run.time = *of.newest;
  }
  return out;
}

/// "there are 3 runs; name one: boost b69b40f6-…, …"
core::Error several(const std::map<core::RunUid, core::JobEvent>& runs) {
  constexpr std::size_t kMostNamed = 5;
  std::string text = "there are " + std::to_string(runs.size()) + " runs; name one:";
  std::size_t named = 0;
  for (const auto& [uid, run] : runs) {
    if (named == kMostNamed) break;
    text += (named++ == 0 ? " " : ", ") + core::visible(run.run.job) + " " + core::to_text(uid);
  }
  return core::Error{core::Code::failed_precondition,
                     text + (runs.size() > kMostNamed ? ", …" : "")};
}

/// The newest attempt of the run that is meant.
core::Result<const RunReport*> chosen(const Gathering::Attempts& attempts,
                                      const ReportOptions& options) {
  const auto runs = runs_of(attempts);
  core::RunUid uid;
  if (options.run.empty() && options.job.empty()) {
    if (runs.size() > 1) return several(runs);
    uid = runs.begin()->first;
  } else {
    const bool job_alone = options.run.empty();
    auto found = which_run(runs, job_alone ? options.job : options.run,
                           job_alone ? std::string() : options.job);
    if (!found) return found.error();
    uid = found->run.uid;
  }
  return &(--attempts.upper_bound({uid, UINT32_MAX}))->second;
}

/// Where something is written, and whether that is standard output.
int write(const std::string& file, const std::string& text, const RunReport& run) {
  if (file == "-") {
    std::cout << text;
    return kOk;
  }
  if (const auto done = report::write_page(file, text); !done) {
    return say(kFailed, done.error().message);
  }
  std::cerr << file << ": " << run.issues.size()
            << (run.issues.size() == 1 ? " issue, " : " issues, ") << text.size() << " bytes\n";
  return kOk;
}

/// How the training went: from a directory, which is read for it. A cluster's telemetry is not.
report::Section curves_of(ingest::Transport& transport, const RunReport& run) {
  if (transport.is_kafka()) return {};
  const auto recorded = report::RecordedCurves::of(transport, run.run.uid);
  auto reader = recorded ? (*recorded)->reader()
                         : core::Result<std::unique_ptr<insights::SeriesReader>>(recorded.error());
  auto section =
      reader ? report::curve_section(**reader, run) : core::Result<report::Section>(reader.error());
  if (section) return std::move(*section);
  std::cerr << "tocsin: the report has no curves: " << section.error().message << "\n";
  return {};
}

/// Where a notebook opens the run: the directory of it. Of a cluster nobody but its reader knows.
report::NotebookSource place_of(ingest::Transport& transport) {
  constexpr std::string_view kJournal = "journal ";
  const std::string described = transport.describe();
  if (transport.is_kafka() || !described.starts_with(kJournal)) return {};
  std::error_code error;
  const auto path = std::filesystem::absolute(described.substr(kJournal.size()), error);
  return {error ? std::string() : path.lexically_normal().string()};
}

int write_folder(const ReportOptions& options, const RunReport& run, const report::Page& page,
                 ingest::Transport& transport) {
  const auto files = report::bundle_of(run, page, place_of(transport));
  if (const auto done = report::write_bundle(options.bundle, files); !done) {
    return say(kFailed, done.error().message);
  }
  std::cerr << options.bundle << ": " << files.size() << " files\n";
  return kOk;
}

int show(RunReport run, const ReportOptions& options, ingest::Transport& transport) {
  const report::Page page = compose(run, curves_of(transport, run), version_text(), report_time());
  if (!options.html.empty()) {
    if (const int code = write(options.html, report::page_within(page), run); code != kOk)
      return code;
  }
  if (!options.markdown.empty()) {
    const std::string text = page_markdown(page, report::kMarkdownSections);
    if (const int code = write(options.markdown, text, run); code != kOk) return code;
  }
  if (!options.bundle.empty()) {
    if (const int code = write_folder(options, run, page, transport); code != kOk) return code;
  }
  if (options.json) {
    std::cout << report_json(run) << "\n";
  } else if (options.html.empty() && options.markdown.empty() && options.bundle.empty()) {
    std::cout << page_text(page);
  }
  return std::cout.flush().good() ? kOk : kFailed;
}

/// The run that is meant, with where it was read and what it was judged by.
core::Result<RunReport> meant(const Gathering::Attempts& attempts, const ReportOptions& options,
                              const std::string& source, std::string judged_by,
                              std::uint64_t gaps) {
  if (attempts.empty()) return core::Error{core::Code::not_found, "no run in " + source};
  const auto found = chosen(attempts, options);
  if (!found) return found.error();
  RunReport run = **found;
  run.source = source;
  run.judged_by = std::move(judged_by);
  run.gaps = gaps;
  return run;
}

int report_recording(const ReportOptions& options);

// A directory that a hook alone has written: nobody has judged it yet.
bool to_be_judged(const ReportOptions& options, const Gathering& gathering) {
  return gathering.attempts().empty() && !options.out.empty() && options.at.empty() &&
         !options.out.starts_with("kafka://");
}

core::Status read_events(ingest::Transport& transport, core::RecordHandler apply) {
  auto source = view_source(transport);
  if (!source) return source.error();
  return read_to_end(**source, apply, kReportPatience);
}

int report_live(const ReportOptions& options) {
  const auto moment = parse_moment(options.at, core::SystemClock().now());
  if (!moment) return say(kUsage, moment.error().message);
  Looking looking;
  if (const auto opened = looking.open(options.config_file, options.out); !opened) {
    return refuse(opened.error());
  }
  Gathering gathering;
  const auto apply = [&](const core::RecordView& record) {
    const bool event = record.topic == core::topic::kRegistry ||
                       record.topic == core::topic::kIssues || record.topic == core::topic::kAcks;
    if (event && moment->holds(record)) gathering.apply(record);
  };
  if (const auto read = read_events(looking.transport(), apply); !read) return refuse(read.error());
  if (to_be_judged(options, gathering)) return report_recording(options);
  auto run = meant(gathering.attempts(), options, looking.transport().describe() + moment->text(),
                   "the rules of the cluster", 0);
  if (!run) return say(kFailed, run.error().message);
  // Once more: who was told of which issue is known by the issues.
  report::Aftermath aftermath(*run);
  const auto look_on = [&](const core::RecordView& record) {
    if (moment->holds(record)) aftermath.apply(record);
  };
  if (const auto read = read_events(looking.transport(), look_on); !read) {
    return refuse(read.error());
  }
  aftermath.tell(*run);
  return show(std::move(*run), options, looking.transport());
}

int report_recording(const ReportOptions& options) {
  embedded::ChosenRules rules;
  if (const int code = choose_rules(options.rules, rules, kReportRules); code != kOk) return code;
  rules.plugins.out = options.out;
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open_recording(options.out, {}, log, telemetry);
  if (!transport) return say(kUnreachable, transport.error().message);
  auto judge = Judge::create(rules, nullptr);
  if (!judge) return say(kConfiguration, judge.error().message);
  const auto end = read_recording(
      **transport, core::topic::kTelemetry, {},
      [&](const core::RecordView& record) { (*judge)->handle(record); },
      [&] { (*judge)->collect(); });
  if (!end) return say(kUnreachable, end.error().message);
  (*judge)->finish();
  auto run = meant(report::attempts_of((*judge)->judgement(), rules), options,
                   (*transport)->describe(), rules.from, end->gaps);
  if (!run) return say(kFailed, run.error().message);
  return show(std::move(*run), options, **transport);
}

}  // namespace

int report_command(const ReportOptions& options) {
  return options.judge ? report_recording(options) : report_live(options);
}

}  // namespace tocsin::app
